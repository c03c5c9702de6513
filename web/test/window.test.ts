import assert from "node:assert/strict";
import { test } from "node:test";
import { asScenario, quantile } from "../src/dash/window";

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
