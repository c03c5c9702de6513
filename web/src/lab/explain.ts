// A step in sentences, and the numbers that were compared. Everything said comes from the trace.
import type { Answer, RunView, TraceStep } from "../api.types";
import { coded, list, t, type Key } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";
import { shareOf } from "./called";
import { once } from "./runs";
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
      return cluster(run, step);
    case "engine":
    case "fleet":
      return engine(run, step);
    case "ledger":
      return ledger(run, step);
    default:
      return [reason(step)];
  }
}

export const say = (value: unknown): string => show(value, lang.value, 3);

export function reason(step: TraceStep, more: Record<string, string> = {}): string {
  if (!step.why) return "";
  const given = { ...step.why.values };
  if (given["raised"]) Object.assign(given, { own: given["priority"], priority: num(given["priority"]) + num(given["raised"]) }); // by aging
  const values = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, say(value)]));
  return coded("why", step.why.code, "why_other", { ...values, ...more });
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
  for (const who of missedAt(run).get(num(step.time)) ?? []) found.push(t("sayMissed", { who, time: say(step.time) }));
  const told = [
    ["finished", "sayFinished"], ["aborted", "sayAborted"], ["expired", "sayExpired"], ["blocked", "sayBlocked"],
    ["slept", "saySlept"], ["woken", "sayWoken"], ["arrived", "sayArrived"],
  ] as const;
  for (const [kind, key] of told) {
    const who = what[kind] as string[] | undefined;
    if (who?.length && !(kind === "arrived" && step.kind === "initial" && who.length > 6)) found.push(t(key, { who: list([...new Set(who)]) }));
  }
  const lock = run.result["deadlock"] as Record<string, any> | undefined;
  if (lock && lock["time"] <= num(step.time)) found.push(`⚠ ${t("deadlockAt", { time: lock["time"], names: list((lock["cycle"] as Record<string, string>[]).map((each) => each["task"]!)) })}`);
  return found;
}

/** Deadline -> the tasks and jobs (the nth of T is T#n) that were not done by it. */
const missedAt = once((run: RunView) => {
  const found = new Map<number, string[]>();
  const count = new Map<string, number>();
  const see = (name: string, one: Record<string, any>) => one["missed"] && found.set(one["deadline"], [...(found.get(one["deadline"]) ?? []), name]);
  for (const one of (run.result["tasks"] ?? []) as Record<string, any>[]) see(one["id"], one);
  for (const one of (run.result["jobs"] ?? []) as Record<string, any>[]) {
    const nth = count.get(one["task"]) ?? 0;
    count.set(one["task"], nth + 1);
    see(`${one["task"]}#${nth}`, one);
  }
  return found;
});

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

function cluster(run: RunView, step: TraceStep): string[] {
  const values = { time: say(step.time), who: String(step.what["user"]), share: say(step.what["share"]) };
  return step.kind === "start" ? [t("sayTaskStarted", values), reason(step, { kind: shareOf(run) })] : [t("sayTaskDone", values)];
}

const clientsOf = once((run: RunView) => new Map((run.result["jobs"] as Record<string, any>[]).map((job) => [job["id"] as string, job["client"] as string])));

/** Whose request it is. */
export function clientOf(run: RunView, id: string): string {
  return clientsOf(run).get(id) ?? "";
}

function few(names: string[]): string {
  return list([...names.slice(0, 6), ...(names.length > 6 ? ["…"] : [])]);
}

function engine(run: RunView, step: TraceStep): string[] {
  const { what } = step;
  const named = (ids: string[]) => few(ids.map((id) => `${clientOf(run, id)} #${id}`));
  if (step.kind === "place") return placed(run, step);
  const values = { time: say(num(step.time)), decoding: what["decoding"], prefilled: say(what["prefilled"]), engine: what["engine"] ?? "" };
  const found = [what["engine"] ? t("sayEngine", values) : "", t(what["prefilled"] ? "sayIteration" : "sayDecodes", values)];
  if (what["admitted"].length) found.push(t("sayAdmitted", { who: named(what["admitted"]) }), reason(step));
  if (what["arrived"].length) found.push(t("sayArrived", { who: named(what["arrived"]) }));
  if (what["first"].length) found.push(t("sayFirst", { who: named(what["first"]) }));
  if (what["finished"].length) found.push(t("sayFinished", { who: named(what["finished"]) }));
  return found;
}

/** A router has sent a request to one of its engines. */
function placed(run: RunView, step: TraceStep): string[] {
  const one = step.what["placed"] as Record<string, any>;
  const saw = one["saw"] as Record<string, Record<string, number>>;
  const held = saw["held_blocks"];
  const found = [t("sayPlaced", { time: say(num(step.time)), who: `${one["client"]} #${one["id"]}`, engine: one["engine"] })];
  const placement = run.spec.slice(run.spec.indexOf("@") + 1).split(":")[0]!;
  if (held && one["blocks"]) found.push(t(held[one["engine"]] ? "sayHolds" : "sayHoldsNothing", { engine: one["engine"], held: say(held[one["engine"]]), blocks: say(one["blocks"]) }));
  if (saw["budget"]) found.push(t("sayBudget", { client: one["client"], engine: one["engine"], budget: say(saw["budget"][one["engine"]]) }));
  if (!held || placement === "least-loaded") found.push(t("sayLeastLoaded", { inflight: say(saw["inflight"]![one["engine"]]) }));
  return found;
}

function ledger(run: RunView, step: TraceStep): string[] {
  const { what } = step;
  const time = { time: say(Number(step.time)) };
  const found: string[] = [];
  const short = (id: string) => id.slice(0, 8);
  if (step.kind === "dispatch") {
    const who: string = what["tenant"];
    found.push(t(what["attempt"] > 1 ? "sayRetried" : "saySent", { ...time, id: short(what["id"]), who, upstream: what["upstream"], cost: say(what["cost"]) }), reason(step));
    if (what["virtual_time"] != null && step.why) {
      const after = step.show["meters"]?.[who];
      found.push(t("sayClock", { v: say(what["virtual_time"]) }));
      if (after !== undefined) found.push(t("sayCharged", { who, from: say(what["before"]["meters"][who]), to: say(after) }));
    }
    if (what["reset"] != null) found.push(t("sayReset", { v: say(what["reset"]) }));
    return found;
  }
  const arrived = ((what["arrived"] ?? []) as string[]).map((id) => `${requestOf(run, id)?.["tenant"] ?? ""} ${short(id)}`);
  const ended = (what["ended"] ?? []) as Record<string, string>[];
  if (arrived.length) found.push(t("sayCame", { ...time, who: few(arrived) }));
  if (ended.length) found.push(t("sayEnded", { ...time, who: few(ended.map((one) => `${one["tenant"]} ${short(one["id"]!)} (${outcome(one["outcome"]!)})`)) }));
  if (what["finished"]) found.push(t("sayFreed", { ...time, who: few((what["finished"] as string[]).map(short)) }));
  if (what["refused"]) found.push(t("sayRefused", { ...time, who: what["refused"]["tenant"] || "–", why: outcome(what["refused"]["outcome"]) }));
  if (what["paused"]) found.push(t("sayPaused", { ...time, who: what["paused"] }));
  if (what["resumed"]) found.push(t("sayResumed", { ...time, who: what["resumed"] }));
  if (what["reconfigured"]) found.push(t("sayReconfigured", { ...time, weights: few(Object.entries(what["reconfigured"] as Record<string, string>).map(([id, weight]) => `${id} ${weight}`)) || "–" }));
  if (what["upstream"]) found.push(t("sayUpstream", { ...time, who: what["upstream"], slots: what["slots"], state: t(`upstream_${what["state"]}` as Key) }));
  if (what["opened"]) found.push(t(what["opened"] === "gap" ? "sayGap" : "sayRestarted", { ...time, lost: what["lost"] ?? 0 }));
  return found;
}

function outcome(code: string): string {
  return coded("outcome", code, "show_other");
}

const requests = once((run: RunView) => new Map((run.result["requests"] as Record<string, any>[]).map((one) => [one["id"] as string, one])));

export function requestOf(run: RunView, id: string): Record<string, any> | undefined {
  return requests(run).get(id);
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
