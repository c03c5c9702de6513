// The numbers that were compared when a step was decided. The one of the chosen is the number that its reason names:
// a row in which it is another one (from before a task inherited a priority, say) is not shown.
import type { Answer, RunView, TraceStep } from "../api.types";
import { coded, t, type Key } from "../i18n";
import { titleOf } from "./called";
import { decides } from "./deciding";
import { clientOf, reason, say } from "./explain";
import { num } from "../numbers";
import { owner } from "./runs";

export interface Candidate {
  id: string;
  value: unknown;
  chosen: boolean;
}

export interface Row {
  what: string;
  of: Candidate[];
}

/** Which table of `show` a reason compares. */
const TABLE: Record<string, string> = {
  shortest: "size", "least-remaining": "remaining", "most-urgent": "priority", "highest-level": "level",
  "least-pass": "pass", "least-vruntime": "vruntime", "earliest-eligible": "deadline", drawn: "tickets",
  "least-meter": "meters", "cheapest-head": "costs", "next-turn": "rounds", "least-finish": "finish",
  "least-eligible-finish": "finish", "ends-first": "finish", "least-clock": "clocks", "fits-deficit": "deficits",
  "least-share": "shares", "least-counter": "counters",
};

/** Their rows show something else than the number that the reason names, and say so. */
const APART = new Set(["next-in-turn", "drawn"]);

export function compared(answer: Answer, run: RunView, place: number): Row | null {
  const step = run.steps[place];
  if (step?.kind === "place") return placesCompared(step);
  if (!step?.why || !decides(run.steps, place)) return null;
  const before = run.steps[place - 1];
  const kept = Object.keys(step.what["before"] ?? {}).length ? (step.what["before"] as Record<string, any>) : before?.show;
  for (const from of [kept, step.show]) {
    const row = from && (answer.layer === "cpu" ? before && cpuRow(answer, run, before, step, from) : flowRow(answer, run, before, step, from));
    if (row && agrees(step, row)) return row;
  }
  return null;
}

function agrees(step: TraceStep, row: Row): boolean {
  const named = /\[\[(.*?)\]\]/.exec(reason(step))?.[1];
  const chosen = row.of.find((each) => each.chosen);
  if (step.why!.code === "fits-deficit") return chosen !== undefined && num(chosen.value) >= num(step.why!.values["cost"]); // not when it was given more on the way
  return chosen !== undefined && (named === undefined || APART.has(step.why!.code) || say(chosen.value) === named);
}

/** Of the engines: the budgets, else what they hold of the prompt, else how much they have to do. */
function placesCompared(step: TraceStep): Row {
  const { saw, engine } = step.what["placed"] as { saw: Record<string, Record<string, number>>; engine: string };
  const key = saw["budget"] ? "budget" : saw["held_blocks"] ? "held_blocks" : "inflight";
  return { what: t(`saw_${key}` as Key), of: Object.entries(saw[key]!).map(([id, value]) => ({ id, value, chosen: id === engine })) };
}

/** Of flows: those that had something waiting. */
function flowRow(answer: Answer, run: RunView, before: TraceStep | undefined, step: TraceStep, kept: Record<string, any>): Row | null {
  const table = TABLE[step.why!.code];
  const values = table ? (kept[table] as Record<string, unknown> | undefined) : undefined;
  if (!table || !values) return null;
  const chosen = chosenOf(answer, run, step);
  const waiting = waitingBefore(answer, before, step, values);
  const of = Object.entries(values)
    .filter(([id]) => waiting.has(id) || id === chosen)
    .map(([id, value]) => ({ id, value, chosen: id === chosen }));
  // Of a cluster's users, who is further behind was passed over because its task did not fit.
  const least = answer.layer === "cluster" ? num(values[chosen]) : -Infinity;
  const fitting = of.filter((each) => num(each.value) >= least);
  return fitting.length ? { what: titleOf(run, table), of: fitting } : null;
}

function waitingBefore(answer: Answer, before: TraceStep | undefined, step: TraceStep, values: Record<string, unknown>): Set<string> {
  switch (answer.layer) {
    case "ledger":
      return new Set(Object.keys(values));
    case "router":
      return new Set([...Object.keys(step.queues), step.what["tenant"] as string]);
    case "engine":
    case "fleet": {
      const waited = (before?.what["waiting"] ?? {}) as Record<string, number>;
      return new Set(Object.keys(waited).filter((name) => waited[name]! > 0 || step.what["waiting"][name] > 0));
    }
    default:
      return new Set(Object.keys(before?.queues ?? {}));
  }
}

function chosenOf(answer: Answer, run: RunView, step: TraceStep): string {
  const { what } = step;
  switch (answer.layer) {
    case "router":
    case "ledger":
      return what["tenant"];
    case "link":
      return owner(what["packet"]);
    case "cluster":
      return what["user"];
    case "engine":
    case "fleet":
      return clientOf(run, what["admitted"][0] ?? "");
    default:
      return what["ran"]?.[0] ?? "";
  }
}

/** Of tasks: those that were ready or ran. */
function cpuRow(answer: Answer, run: RunView, before: TraceStep, step: TraceStep, shown: Record<string, any>): Row | null {
  const chosen = chosenOf(answer, run, step);
  const refused = new Set((step.what["blocked"] ?? []) as string[]); // a lock: they were tried first, and wait for it now
  const ids = [...new Set([...(before.queues["ready"] ?? []), ...before.running, chosen])].filter((id) => id && !refused.has(id));
  const code = step.why!.code;
  const tasks = new Map<string, Record<string, any>>((answer.scenario["tasks"] ?? []).map((task: Record<string, any>) => [String(task["id"]), task]));
  const taskOf = (id: string) => tasks.get(id) ?? tasks.get(owner(id));
  const due = (id: string): unknown => {
    const task = taskOf(id);
    if (!id.includes("#") || !task?.["wcet"]) return task?.["deadline"];
    const nth = Number(id.slice(id.lastIndexOf("#") + 1));
    return (run.result["jobs"] as Record<string, any>[]).filter((job) => job["task"] === owner(id))[nth]?.["deadline"];
  };
  const values: Record<string, (id: string, index: number) => unknown> = {
    "first-come": (id) => taskOf(id)?.["arrival"] ?? 0,
    "next-in-turn": (_, index) => index + 1,
    "earliest-deadline": due,
    "least-remaining": (id) => before.remaining[id],
    "shortest-period": (id) => taskOf(id)?.["period"],
    "shortest-deadline": (id) => taskOf(id)?.["deadline"] ?? taskOf(id)?.["period"],
  };
  const names: Record<string, string> = {
    "first-come": t("comparedArrival"), "next-in-turn": t("comparedPlace"), "earliest-deadline": t("comparedDeadline"),
    "least-remaining": t("remaining"), "shortest-period": t("comparedPeriod"), "shortest-deadline": t("comparedDeadline"),
  };
  const table = TABLE[code];
  const kept = table ? (shown[table] as Record<string, unknown> | undefined) : undefined;
  const read = values[code] ?? (kept ? (id: string) => kept[id] ?? kept[owner(id)] : null);
  if (!read) return null;
  const of = ids.map((id, index) => ({ id, value: read(id, index), chosen: id === chosen })).filter((each) => each.chosen || each.value !== undefined);
  return { what: names[code] ?? coded("show", table ?? "", "show_other"), of };
}
