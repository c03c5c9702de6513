import assert from "node:assert/strict";
import { test } from "node:test";
import { quantile } from "../src/dash/quantile";

test("nearest-rank quantiles", () => {
  const sorted = Array.from({ length: 100 }, (_, n) => n + 1);
  assert.equal(quantile(sorted, 0.5), 50);
  assert.equal(quantile(sorted, 0.99), 99);
  assert.equal(quantile([7], 0.95), 7);
  assert.equal(quantile([], 0.5), null);
});
