// What is asked of a run again and again while the clock moves, found out once.
import type { Answer, RunView, TraceStep } from "../api.types";
import { num } from "../numbers";

/** Computes once for each key. */
export function once<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, (value = compute(key)));
    return value;
  };
}

/** How many of the ascending numbers are not above `limit`. */
export function upTo(ascending: ArrayLike<number>, limit: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

const byKind = once((run: RunView) => {
  const found = new Map<string, number[]>();
  run.steps.forEach((step, place) => {
    const places = found.get(step.kind) ?? [];
    if (!places.length) found.set(step.kind, places);
    places.push(place);
  });
  return found;
});

/** Places of the steps of a kind, in order. */
export function placesOf(run: RunView, kind: string): readonly number[] {
  return byKind(run).get(kind) ?? [];
}

/** The last `most` steps of a kind until `place`, and how many there were in all. */
export function recent(run: RunView, kind: string, place: number, most: number): { steps: TraceStep[]; count: number } {
  const places = placesOf(run, kind);
  const count = upTo(places, place);
  return { steps: places.slice(Math.max(0, count - most), count).map((at) => run.steps[at]!), count };
}

/** The largest of the numbers that each step has, at least `least`. */
export function largest(steps: readonly TraceStep[], read: (step: TraceStep) => Iterable<unknown>, least: number): number {
  let most = least;
  for (const step of steps)
    for (const value of read(step)) {
      const number = num(value);
      if (number > most) most = number;
    }
  return most;
}

/** Names of what competes, in the scenario's order. */
export const entities = once((answer: Answer): string[] => {
  const of = (list: Record<string, any>[] | undefined) => (list ?? []).map((each) => String(each["id"]));
  const { scenario } = answer;
  if (answer.layer === "cpu") return of(scenario["tasks"]);
  if (answer.layer === "router" || answer.layer === "ledger") return of(scenario["tenants"]);
  if (answer.layer === "cluster") return of(scenario["users"]);
  if (answer.layer === "engine" || answer.layer === "fleet") return Object.keys(answer.runs[0]?.result["clients"] ?? {});
  if (scenario["flows"]?.length) return of(scenario["flows"]);
  return [...new Set<string>((scenario["packets"] ?? []).map((packet: Record<string, any>) => String(packet["flow"])))];
});

/** The task of a job ("T1#0"), the flow of a packet, the tenant of a request. */
export function owner(id: string): string {
  const at = id.lastIndexOf("#");
  return at < 0 ? id : id.slice(0, at);
}

export function indexOf(names: readonly string[], id: string): number {
  const exact = names.indexOf(id);
  return exact >= 0 ? exact : names.indexOf(owner(id));
}

/** Sums over the members of each group whose moment has come: ascending moments, and running totals at each. */
export interface Sums {
  moments: number[];
  totals: number[][]; // one row for each measure; row[n] is over the first n + 1
  highest: number[]; // of the first measure
}

export function sums(rows: readonly Record<string, any>[], group: string, moment: (row: Record<string, any>) => number, measures: ((row: Record<string, any>) => number)[]): Map<string, Sums> {
  const found = new Map<string, Sums>();
  const dated = rows.map((row) => ({ row, at: moment(row) })).filter(({ at }) => Number.isFinite(at));
  for (const { row, at } of dated.sort((a, b) => a.at - b.at)) {
    let one = found.get(row[group]);
    if (!one) found.set(row[group], (one = { moments: [], totals: measures.map(() => []), highest: [] }));
    one.moments.push(at);
    measures.forEach((measure, index) => {
      const value = measure(row);
      one.totals[index]!.push((one.totals[index]!.at(-1) ?? 0) + value);
      if (!index) one.highest.push(Math.max(one.highest.at(-1) ?? -Infinity, value));
    });
  }
  return found;
}
