import assert from "node:assert/strict";
import { test } from "node:test";
import { pack, read, unpacked, written } from "../src/lab/address";

const defaults = { scenario: "cpu/lab", policies: ["fcfs", "srtf"] };

test("only what differs from the defaults is in the address", () => {
  assert.equal(written({ scenario: "cpu/lab", custom: null, policies: ["fcfs", "srtf"], step: 0, predict: false, recent: null, broken: false }, defaults), "");
  assert.equal(written({ scenario: "cpu/convoy", custom: null, policies: ["rr:quantum=2"], step: 4, predict: true, recent: null, broken: false }, defaults), "s=cpu/convoy&p=rr:quantum=2&step=4&predict=1");
});

test("what is written is read back", () => {
  const shown = { scenario: null, custom: { tasks: [{ id: "長い", burst: 7, priority: -1 }] }, policies: ["mlfq:levels=2,quantum=10", "fcfs"], step: 12, predict: false, recent: null, broken: false };
  assert.deepEqual(read(written(shown, defaults)), shown);
});

test("a broken address opens the default", () => {
  for (const text of ["%%%", "e30", "bnVsbA", "W10"]) assert.deepEqual(unpacked(text) ?? {}, {});
  assert.equal(read("step=-3").step, 0);
  assert.equal(read("step=x").step, 0);
});

test("packed text is safe in an address", () => {
  assert.match(pack({ a: "????>>>>~~" }), /^[A-Za-z0-9_-]+$/);
});
