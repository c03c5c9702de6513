import assert from "node:assert/strict";
import { test } from "node:test";
import { num, show, ticks } from "../src/numbers";

test("rationals are numbers in pictures and decimals in texts", () => {
  assert.equal(num("7/2"), 3.5);
  assert.equal(num("24"), 24);
  assert.equal(show("7/2", "en"), "3.5");
  assert.equal(show("31/3", "en", 3), "10.333");
  assert.equal(show("100000", "en"), "100,000");
  assert.equal(show(8.755, "en"), "8.76");
  assert.equal(show(null, "ja"), "–");
});

test("an axis has round numbers from 0 to its end", () => {
  assert.deepEqual(ticks(15, 15), Array.from({ length: 16 }, (_, n) => n));
  assert.deepEqual(ticks(601, 6), [0, 200, 400, 600]);
  assert.deepEqual(ticks(0, 5), [0]);
});
