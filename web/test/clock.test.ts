import assert from "node:assert/strict";
import { test } from "node:test";
import { places, positions } from "../src/lab/clock";

const at = (...times: (number | string)[]) => ({ steps: times.map((time) => ({ time })) });

test("runs with the same times share each position", () => {
  const runs = [at(0, 1, 2), at(0, 1, 2)];
  const all = positions(runs);
  assert.deepEqual(all.map(({ time }) => time), [0, 1, 2]);
  for (const run of runs) assert.deepEqual([...places(run.steps, all)], [0, 1, 2]);
});

test("a run stands at its last step that is not later", () => {
  const [gps, wfq] = [at(0, "3/2", 3), at(0, 2, 3, 3)];
  const all = positions([gps, wfq]);
  assert.deepEqual(all, [{ time: 0, nth: 0 }, { time: 1.5, nth: 0 }, { time: 2, nth: 0 }, { time: 3, nth: 0 }, { time: 3, nth: 1 }]);
  assert.deepEqual([...places(gps.steps, all)], [0, 1, 1, 2, 2]);
  assert.deepEqual([...places(wfq.steps, all)], [0, 0, 1, 2, 3]);
});

test("before its first step a run stands nowhere", () => {
  const all = positions([at(0, 1), at(1)]);
  assert.deepEqual([...places([{ time: 1 }], all)], [-1, 0]);
});

test("ten thousand steps are found at once", () => {
  const run = at(...Array.from({ length: 10_000 }, (_, time) => time));
  const all = positions([run, run]);
  assert.equal(places(run.steps, all).at(-1), 9_999);
});
