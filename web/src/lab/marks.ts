// A run as lanes of marks on a time axis: what the time line draws, and what its table says.
import type { Answer, RunView } from "../api.types";
import { num } from "../numbers";

export interface Mark {
  lane: number;
  start: number;
  end: number;
  state: "run" | "idle" | "blocked" | "switch";
  label: string;
  title: string; // of the job, for the table
  who?: number; // whose it is, where lanes are no entities
}

export interface Span {
  lane: number;
  start: number;
  end: number;
}

export interface Sign {
  lane: number;
  at: number;
  kind: "arrival" | "deadline" | "missed" | "finish";
}

export interface Lines {
  lanes: string[];
  marks: Mark[];
  spans: Span[]; // from arrival to end: where it is in the system
  signs: Sign[];
  end: number;
  unit: "time" | "dispatch";
  dense?: boolean; // many lanes without names of their own
}

export function linesOf(answer: Answer, run: RunView): Lines {
  switch (answer.layer) {
    case "cpu":
      return cpuLines(answer, run);
    case "router":
      return routerLines(answer, run);
    case "link":
      return linkLines(answer, run);
    case "engine":
      return engineLines(answer, run);
    default:
      return clusterLines(answer, run);
  }
}

/** Names of what competes, in the scenario's order. */
export function entities(answer: Answer): string[] {
  const of = (list: Record<string, any>[] | undefined) => (list ?? []).map((each) => String(each["id"]));
  const { scenario } = answer;
  if (answer.layer === "cpu") return of(scenario["tasks"]);
  if (answer.layer === "router") return of(scenario["tenants"]);
  if (answer.layer === "cluster") return of(scenario["users"]);
  if (answer.layer === "engine") return Object.keys(answer.runs[0]?.result["clients"] ?? {});
  if (scenario["flows"]?.length) return of(scenario["flows"]);
  return [...new Set<string>((scenario["packets"] ?? []).map((packet: Record<string, any>) => String(packet["flow"])))];
}

/** The task of a job ("T1#0"), the flow of a packet, the tenant of a request. */
export function owner(id: string): string {
  const at = id.lastIndexOf("#");
  return at < 0 ? id : id.slice(0, at);
}

function cpuLines(answer: Answer, run: RunView): Lines {
  const lanes = entities(answer);
  const lane = new Map(lanes.map((name, index) => [name, index]));
  const slices: Record<string, any>[] = run.result["timeline"];
  const end = Math.max(0, ...slices.map((slice) => slice["end"]));
  const marks: Mark[] = slices
    .filter((slice) => slice["task"] !== null || slice["state"] !== "idle")
    .map((slice) => ({
      lane: slice["task"] === null ? -1 : lane.get(slice["task"])!,
      start: slice["start"],
      end: slice["end"],
      state: slice["state"],
      label: slice["task"] ?? "",
      title: slice["task"] ?? slice["state"],
    }));
  const spans: Span[] = [];
  const signs: Sign[] = [];
  for (const task of run.result["tasks"] as Record<string, any>[]) {
    const at = lane.get(task["id"])!;
    spans.push({ lane: at, start: task["arrival"], end: task["completion"] ?? end });
    signs.push({ lane: at, at: task["arrival"], kind: "arrival" });
    if (task["completion"] !== null) signs.push({ lane: at, at: task["completion"], kind: "finish" });
    if (task["deadline"] != null) signs.push({ lane: at, at: task["deadline"], kind: task["missed"] ? "missed" : "deadline" });
  }
  for (const job of (run.result["jobs"] ?? []) as Record<string, any>[]) {
    const at = lane.get(job["task"])!;
    spans.push({ lane: at, start: job["release"], end: job["completion"] ?? end });
    signs.push({ lane: at, at: job["release"], kind: "arrival" });
    if (job["deadline"] != null && job["deadline"] <= end)
      signs.push({ lane: at, at: job["deadline"], kind: job["missed"] ? "missed" : "deadline" });
  }
  return { lanes, marks, spans, signs, end, unit: "time" };
}

function routerLines(answer: Answer, run: RunView): Lines {
  const lanes = entities(answer);
  const lane = new Map(lanes.map((name, index) => [name, index]));
  const marks: Mark[] = [];
  const spans: Span[] = [];
  const signs: Sign[] = [];
  const joined = new Map<string, number>();
  let end = 0;
  for (const step of run.steps) {
    const time = num(step.time);
    for (const name of (step.what["joined"] ?? []) as string[]) {
      if (!joined.has(name)) joined.set(name, time);
      signs.push({ lane: lane.get(name)!, at: time, kind: "arrival" });
    }
    if (step.kind !== "dispatch") continue;
    const name: string = step.what["tenant"];
    const at = lane.get(name)!;
    end = time + 1;
    marks.push({ lane: at, start: time, end, state: "run", label: String(step.what["cost"]), title: name });
    if (!step.queues[name]?.length) {
      spans.push({ lane: at, start: joined.get(name) ?? 0, end });
      joined.delete(name);
    }
  }
  return { lanes, marks, spans, signs, end, unit: "dispatch" };
}

function linkLines(answer: Answer, run: RunView): Lines {
  const lanes = entities(answer);
  const lane = new Map(lanes.map((name, index) => [name, index]));
  const sent: Record<string, any>[] = run.result["departures"];
  const marks: Mark[] = [];
  const spans: Span[] = [];
  const signs: Sign[] = [];
  let end = 0;
  for (const one of sent) {
    const at = lane.get(one["flow"])!;
    const finish = num(one["finish"]);
    end = Math.max(end, finish);
    const start = one["start"] === null ? null : num(one["start"]);
    if (start !== null)
      marks.push({ lane: at, start, end: finish, state: "run", label: String(one["seq"]), title: `${one["flow"]}#${one["seq"]}` });
    spans.push({ lane: at, start: one["arrival"], end: finish });
    signs.push({ lane: at, at: one["arrival"], kind: "arrival" });
  }
  return { lanes, marks, spans, signs, end, unit: "time" };
}

function clusterLines(answer: Answer, run: RunView): Lines {
  const lanes = entities(answer);
  const lane = new Map(lanes.map((name, index) => [name, index]));
  const marks: Mark[] = run.steps
    .map((step, index) => ({ step, index }))
    .filter(({ step }) => step.kind === "start")
    .map(({ step, index }, nth) => ({
      lane: lane.get(step.what["user"])!,
      start: nth,
      end: nth + 1,
      state: "run" as const,
      label: "",
      title: `${step.what["user"]} ${index}`,
    }));
  return { lanes, marks, spans: [], signs: [], end: marks.length, unit: "dispatch" };
}

const NS = 1e9;

/** Rows of the batch: each request takes the first row that is free. Its prompt is light, its answer full. */
function engineLines(answer: Answer, run: RunView): Lines {
  const names = entities(answer);
  const jobs = (run.result["jobs"] as Record<string, any>[]).filter((job) => job["admitted"] !== null).sort((a, b) => a["admitted"] - b["admitted"]);
  const free: number[] = []; // when each row is free again
  const marks: Mark[] = [];
  let end = 0;
  for (const job of jobs) {
    const found = free.findIndex((until) => until <= job["admitted"]);
    const lane = found < 0 ? free.length : found;
    const over = job["finish"] ?? job["admitted"];
    free[lane] = over;
    const first = job["first_token"] ?? over;
    const common = { lane, label: "", title: `${job["client"]} #${job["id"]}`, who: names.indexOf(job["client"]) };
    marks.push({ ...common, start: job["admitted"] / NS, end: first / NS, state: "switch" });
    marks.push({ ...common, start: first / NS, end: over / NS, state: "run" });
    end = Math.max(end, over / NS);
  }
  return { lanes: free.map((_, index) => String(index + 1)), marks, spans: [], signs: [], end, unit: "time", dense: true };
}
