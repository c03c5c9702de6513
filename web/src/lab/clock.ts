// One clock for runs whose steps differ: a position is a moment, and which of the steps of that moment.
import type { TraceStep } from "../api.types";
import { num } from "../numbers";

export interface Position {
  time: number;
  nth: number;
}

type Timed = Pick<TraceStep, "time">;

/** Every moment at which some run has a step, as often as the run with the most steps there. */
export function positions(runs: readonly { steps: readonly Timed[] }[]): Position[] {
  const most = new Map<number, number>();
  for (const run of runs) {
    let at = NaN;
    let nth = 0;
    for (const step of run.steps) {
      const time = num(step.time);
      nth = time === at ? nth + 1 : 0;
      at = time;
      if (nth + 1 > (most.get(time) ?? 0)) most.set(time, nth + 1);
    }
  }
  return [...most.entries()]
    .sort(([a], [b]) => a - b)
    .flatMap(([time, count]) => Array.from({ length: count }, (_, nth) => ({ time, nth })));
}

/** For each position the step that a run stands at: its last one that is not later. -1 before its first. */
export function places(steps: readonly Timed[], all: readonly Position[]): Int32Array {
  const found = new Int32Array(all.length).fill(-1);
  let next = 0;
  let nth = 0;
  let at = NaN;
  let place = -1;
  all.forEach((position, index) => {
    while (next < steps.length) {
      const time = num(steps[next]!.time);
      const count = time === at ? nth + 1 : 0;
      if (time > position.time || (time === position.time && count > position.nth)) break;
      at = time;
      nth = count;
      place = next++;
    }
    found[index] = place;
  });
  return found;
}
