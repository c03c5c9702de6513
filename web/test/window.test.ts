import assert from "node:assert/strict";
import { test } from "node:test";
import { asScenario, quantile, verdict, waitedPart } from "../src/dash/window";

test("nearest-rank quantiles", () => {
  const sorted = Array.from({ length: 100 }, (_, n) => n + 1);
  assert.equal(quantile(sorted, 0.5), 50);
  assert.equal(quantile(sorted, 0.99), 99);
  assert.equal(quantile([7], 0.95), 7);
  assert.equal(quantile([], 0.5), null);
});

test("decisions become a scenario: who had come by then joins then", () => {
  const one = (id: string, tenant: string, charge: number, time: number, wait: number) => ({ id, tenant, charge, time, wait });
  const found = asScenario([one("1", "a", 8, 10, 0), one("2", "b", 2, 20, 15), one("3", "b", 2, 30, 25), one("4", "a", 8, 40, 5)], { a: "1", b: "3/2" });
  assert.deepEqual(found, {
    tenants: [
      { id: "a", batches: [{ join: 0, cost: 8, count: 1 }, { join: 3, cost: 8, count: 1 }] },
      { id: "b", weight: "3/2", batches: [{ join: 0, cost: 2, count: 2 }] },
    ],
  });
});

test("who is starved and who floods is said in a word", () => {
  const tenant = { paused: false, waiting: 3, backlogged: true, share: 0.5, entitled: 0.5 };
  assert.equal(verdict(tenant, 6, 1), "fair");
  assert.equal(verdict({ ...tenant, share: 0.1 }, 6, 1), "under");
  assert.equal(verdict({ ...tenant, share: 0.1 }, 6, 0.5), "fair"); // it got what it asked for, and now and then waits a little
  assert.equal(verdict({ ...tenant, waiting: 90 }, 100, 1), "flood");
  assert.equal(verdict({ ...tenant, share: 0.9 }, 6, 1), "over");
  assert.equal(verdict({ ...tenant, paused: true }, 6, 1), "paused");
  assert.equal(verdict({ ...tenant, waiting: 0, backlogged: false, share: 0.1 }, 6, 1), "served");
  assert.equal(verdict({ ...tenant, waiting: 0, backlogged: false, share: null, entitled: null }, 6, 1), "idle");
});

test("the part of the time in which there was work waiting", () => {
  const points = [{ waiting: { a: 1 } }, { waiting: { a: 0, b: 2 } }, { waiting: { a: 3 } }, { waiting: {} }];
  assert.equal(waitedPart(points, "a"), 0.5);
  assert.equal(waitedPart([], "a"), 0);
});
