// A step in sentences, and the numbers that were compared. Everything said comes from the trace.
import type { Answer, RunView, TraceStep } from "../api.types";
import { coded, list, t } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";
import { once, owner } from "./runs";
import { decides } from "./deciding";

export function sentences(answer: Answer, run: RunView, place: number): string[] {
  const step = run.steps[place];
  if (!step) return [t("sayNothing")];
  switch (answer.layer) {
    case "cpu":
      return cpu(run, step, place);
    case "router":
      return router(run, step);
    case "link":
      return link(run, step);
    case "cluster":
      return cluster(step);
    case "engine":
      return engine(run, step);
    default:
      return [reason(step)];
  }
}

const say = (value: unknown): string => show(value, lang.value, 3);

function reason(step: TraceStep): string {
  if (!step.why) return "";
  const values = Object.fromEntries(Object.entries(step.why.values).map(([name, value]) => [name, say(value)]));
  return coded("why", step.why.code, "why_other", values);
}

function cpu(run: RunView, step: TraceStep, place: number): string[] {
  const { what } = step;
  const found: string[] = [];
  if (step.kind === "initial") found.push(t("sayInitial"));
  else {
    const ran: string[] = (what["ran"] as (string | null)[]).filter((id): id is string => id !== null);
    const span = { from: num(step.time) - 1, to: num(step.time), who: list(ran) };
    if (!ran.length) found.push(t("sayIdle", span));
    else if (decides(run.steps, place)) found.push(t("sayRan", span), reason(step));
    else found.push(t("sayGoesOn", span));
  }
  const told = [
    ["finished", "sayFinished"], ["aborted", "sayAborted"], ["expired", "sayExpired"], ["blocked", "sayBlocked"],
    ["slept", "saySlept"], ["woken", "sayWoken"], ["arrived", "sayArrived"],
  ] as const;
  for (const [kind, key] of told) {
    const who = what[kind] as string[] | undefined;
    if (who?.length && !(kind === "arrived" && step.kind === "initial" && who.length > 6)) found.push(t(key, { who: list([...new Set(who)]) }));
  }
  return found;
}

const hasMeters = once((run: RunView) => run.steps.some((each) => each.show["meters"]));

function router(run: RunView, step: TraceStep): string[] {
  const { what } = step;
  const joined = (what["joined"] ?? []) as string[];
  if (step.kind === "initial") return [joined.length ? t("sayInitialRouter", { names: list(joined) }) : t("sayInitial")];
  const found: string[] = [];
  const tagged = hasMeters(run);
  if (step.kind === "idle") {
    found.push(t("sayIdleStep", { time: say(step.time), who: list(joined) }));
    if (what["reset"] != null) found.push(t("sayReset", { v: say(what["reset"]) }));
    return found;
  }
  if (joined.length) {
    found.push(t("sayJoined", { who: list(joined) }));
    const before = what["before"]?.["meters"] as Record<string, unknown> | undefined;
    for (const who of joined)
      if (before && num(before[who]) === num(what["before"]["virtual_time"]) && num(before[who]) > 0)
        found.push(t("sayLifted", { who, meter: say(before[who]) }));
  }
  const who: string = what["tenant"];
  found.push(t("sayDispatch", { time: say(step.time), who, cost: say(what["cost"]) }), reason(step));
  if (tagged) {
    found.push(t("sayClock", { v: say(what["virtual_time"]) }));
    found.push(t("sayCharged", { who, from: say(what["before"]?.["meters"]?.[who]), to: say(step.show["meters"]?.[who]) }));
  }
  if (what["reset"] != null) found.push(t("sayReset", { v: say(what["reset"]) }));
  return found;
}

function link(run: RunView, step: TraceStep): string[] {
  const packets = (step.what["packets"] ?? [step.what["packet"]]) as string[];
  const shown = packets.length > 8 ? [...packets.slice(0, 8), "…"] : packets;
  const values = { time: say(step.time), who: list(shown) };
  if (step.kind === "arrive") return [t("sayPacketArrived", values)];
  if (step.kind === "finish") return [t("sayPacketDone", values)];
  return [t(run.policy === "gps" ? "sayFluidOut" : "sayPacketStart", values), reason(step)];
}

function cluster(step: TraceStep): string[] {
  const values = { time: say(step.time), who: String(step.what["user"]), share: say(step.what["share"]) };
  return step.kind === "start" ? [t("sayTaskStarted", values), reason(step)] : [t("sayTaskDone", values)];
}

const clientsOf = once((run: RunView) => new Map((run.result["jobs"] as Record<string, any>[]).map((job) => [job["id"] as string, job["client"] as string])));

/** Whose request it is. */
export function clientOf(run: RunView, id: string): string {
  return clientsOf(run).get(id) ?? "";
}

function engine(run: RunView, step: TraceStep): string[] {
  const { what } = step;
  const named = (ids: string[]) => list([...ids.slice(0, 6).map((id) => `${clientOf(run, id)} #${id}`), ...(ids.length > 6 ? ["…"] : [])]);
  const found = [t("sayIteration", { time: say(step.time), decoding: what["decoding"], prefilled: what["prefilled"] })];
  if (what["admitted"].length) found.push(t("sayAdmitted", { who: named(what["admitted"]) }), reason(step));
  if (what["arrived"].length) found.push(t("sayArrived", { who: named(what["arrived"]) }));
  if (what["first"].length) found.push(t("sayFirst", { who: named(what["first"]) }));
  if (what["finished"].length) found.push(t("sayFinished", { who: named(what["finished"]) }));
  return found;
}

export interface Candidate {
  id: string;
  value: unknown;
  chosen: boolean;
}

/** Which table of `show` a reason compares. */
const TABLE: Record<string, string> = {
  shortest: "size", "least-remaining": "remaining", "most-urgent": "priority", "highest-level": "level",
  "shortest-period": "priority", "shortest-deadline": "priority",
  "least-pass": "pass", "least-vruntime": "vruntime", "earliest-eligible": "deadline", drawn: "tickets",
  "least-meter": "meters", "cheapest-head": "costs", "next-turn": "rounds", "least-finish": "finish",
  "least-eligible-finish": "finish", "ends-first": "finish", "least-clock": "clocks", "fits-deficit": "deficits",
  "least-share": "shares", "least-counter": "counters",
};

/** What was compared when step `place` was decided: how things stood just before. */
export function compared(answer: Answer, run: RunView, place: number): { what: string; of: Candidate[] } | null {
  const step = run.steps[place];
  const before = run.steps[place - 1];
  if (!step?.why || !decides(run.steps, place)) return null;
  const chosen = answer.layer === "engine" ? clientOf(run, step.what["admitted"][0] ?? "") : chosenOf(answer, step);
  if (answer.layer === "cpu") return before ? cpuCompared(answer, run, before, step, chosen) : null;
  const table = TABLE[step.why.code];
  const kept = ((Object.keys(step.what["before"] ?? {}).length ? step.what["before"] : undefined) ?? before?.show ?? {}) as Record<string, any>;
  const waiting = answer.layer === "engine" ? Object.keys((before?.what["waiting"] ?? {}) as object).filter((name) => before!.what["waiting"][name] > 0 || step.what["waiting"][name] > 0) : answer.layer === "router" ? waitingBefore(step) : before ? Object.keys(before.queues) : [];
  const values = table ? (kept[table] as Record<string, unknown> | undefined) : undefined;
  if (!values || !table) return null;
  const of = Object.entries(values)
    .filter(([id]) => waiting.includes(id) || id === chosen)
    .map(([id, value]) => ({ id, value, chosen: id === chosen }));
  return of.length ? { what: coded("show", table, "show_other"), of } : null;
}

function chosenOf(answer: Answer, step: TraceStep): string {
  const { what } = step;
  if (answer.layer === "router") return what["tenant"];
  if (answer.layer === "link") return owner(what["packet"]);
  if (answer.layer === "cluster") return what["user"];
  return what["ran"]?.[0] ?? "";
}

function waitingBefore(step: TraceStep): string[] {
  return [...new Set([...Object.keys(step.queues), step.what["tenant"] as string])];
}

function cpuCompared(answer: Answer, run: RunView, before: TraceStep, step: TraceStep, chosen: string) {
  const ids = [...new Set([...(before.queues["ready"] ?? []), ...before.running, chosen])].filter(Boolean);
  const code = step.why!.code;
  const tasks = new Map<string, Record<string, any>>((answer.scenario["tasks"] ?? []).map((task: Record<string, any>) => [String(task["id"]), task]));
  const due = (id: string): unknown => {
    const task = tasks.get(owner(id)) ?? tasks.get(id);
    if (!id.includes("#") || !task?.["wcet"]) return task?.["deadline"];
    const nth = Number(id.slice(id.lastIndexOf("#") + 1));
    return (run.result["jobs"] as Record<string, any>[]).filter((job) => job["task"] === owner(id))[nth]?.["deadline"];
  };
  const values: Record<string, (id: string, index: number) => unknown> = {
    "first-come": (id) => tasks.get(id)?.["arrival"] ?? 0,
    "next-in-turn": (_, index) => index + 1,
    "earliest-deadline": due,
    "least-remaining": (id) => before.remaining[id],
    "shortest-period": (id) => tasks.get(owner(id))?.["period"],
  };
  const names: Record<string, string> = {
    "first-come": t("comparedArrival"), "next-in-turn": t("comparedPlace"), "earliest-deadline": t("comparedDeadline"),
    "least-remaining": t("remaining"), "shortest-period": t("comparedPeriod"),
  };
  const value = values[code];
  const table = TABLE[code];
  const kept = table ? (before.show[table] as Record<string, unknown> | undefined) : undefined;
  const read = value ?? (kept ? (id: string) => kept[id] ?? kept[owner(id)] : null);
  if (!read) return null;
  const of = ids.map((id, index) => ({ id, value: read(id, index), chosen: id === chosen }));
  return { what: names[code] ?? coded("show", table ?? "", "show_other"), of };
}

/** Words of the policy's rule that this step carried out; the page lights their lines. */
export function carriedOut(step: TraceStep | undefined): string[] {
  if (!step) return [];
  const { what } = step;
  const found: string[] = [];
  if (step.why) found.push("select", "clock", "visit", "charge", "run", "preempt", "priority", "level");
  if (what["expired"]) found.push("return", "leave");
  if ((what["joined"] as unknown[] | undefined)?.length || what["arrived"] || step.kind === "arrive") found.push("join", "new", "finish");
  if (what["reset"] != null) found.push("idle");
  return found;
}
