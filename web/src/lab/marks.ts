// A run as lanes of marks on a time axis: what the time line draws, and what its table says.
import type { Answer, RunView } from "../api.types";
import type { Key } from "../i18n";
import { num } from "../numbers";
import { entities, indexOf } from "./runs";

export interface Mark {
  lane: number; // -1: of all lanes
  row?: number; // of the lane's rows
  start: number;
  end: number;
  state: State;
  label: string;
  title: string; // of the job, for the table
  share?: number; // of the lane's height
  who?: number; // whose it is, where lanes are no entities
}

export type State = "run" | "idle" | "blocked" | "switch" | "wait" | "hold";

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
  under?: number[]; // rows below each lane's own: locks that are held
  rows?: number[]; // how many marks of a lane may be beside each other
  coloured?: boolean; // lanes are entities though they have rows
  states: Partial<Record<State, Key>>;
}

const known = new WeakMap<RunView, Lines>();

export function linesOf(answer: Answer, run: RunView): Lines {
  let lines = known.get(run);
  if (!lines) {
    known.set(run, (lines = made(answer, run)));
    lines.marks.sort((a, b) => a.start - b.start);
  }
  return lines;
}

function made(answer: Answer, run: RunView): Lines {
  switch (answer.layer) {
    case "cpu":
      return cpuLines(answer, run);
    case "router":
      return routerLines(answer, run);
    case "link":
      return linkLines(answer, run);
    case "engine":
    case "fleet":
      return engineLines(answer, run);
    case "ledger":
      return ledgerLines(answer, run);
    default:
      return clusterLines(answer, run);
  }
}

const RUNS: Lines["states"] = { run: "stateRun", idle: "stateIdle", blocked: "stateBlocked", switch: "stateSwitch", hold: "stateHold" };

function cpuLines(answer: Answer, run: RunView): Lines {
  const lanes = entities(answer);
  const lane = new Map(lanes.map((name, index) => [name, index]));
  const slices: Record<string, any>[] = run.result["timeline"];
  const end = Math.max(0, ...slices.map((slice) => slice["end"]));
  const ends = new Map<string, number[]>(); // of the jobs of each periodic task
  for (const job of (run.result["jobs"] ?? []) as Record<string, any>[]) ends.set(job["task"], [...(ends.get(job["task"]) ?? []), job["completion"] ?? Infinity]);
  const marks: Mark[] = slices
    .filter((slice) => slice["task"] !== null || slice["state"] !== "idle")
    .flatMap((slice) => byJob(ends.get(slice["task"]) ?? [], slice))
    .map((slice) => ({
      lane: slice["task"] === null ? -1 : lane.get(slice["task"])!,
      start: slice["start"],
      end: slice["end"],
      state: slice["state"],
      label: slice["task"] ?? "",
      title: slice["job"] ?? slice["task"] ?? slice["state"],
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
  const holds = holdsOf(answer, slices, lane, end);
  if (!holds.length) return { lanes, marks, spans, signs, end, unit: "time", states: RUNS };
  const under = lanes.map((_, at) => Math.max(0, ...holds.filter((mark) => mark.lane === at).map((mark) => mark.row! + 1)));
  return { lanes, marks: [...marks, ...holds], spans, signs, end, unit: "time", states: RUNS, under };
}

/** Who holds which lock when: from a task's own tick `at`, when it is given the lock, until `for` more of its ticks are done. */
function holdsOf(answer: Answer, slices: Record<string, any>[], lane: Map<string, number>, end: number): Mark[] {
  const found: Mark[] = [];
  for (const task of (answer.scenario["tasks"] ?? []) as Record<string, any>[]) {
    const locks = (task["locks"] ?? []) as Record<string, any>[];
    if (!locks.length || task["wcet"] !== undefined) continue;
    const id = String(task["id"]);
    const own = slices.filter((slice) => slice["task"] === id && slice["state"] === "run").flatMap((slice) => Array.from({ length: slice["end"] - slice["start"] }, (_, tick) => slice["start"] + tick));
    const free: number[] = [];
    for (const hold of [...locks].sort((a, b) => num(a["at"]) - num(b["at"]))) {
      const over = num(hold["at"]) + num(hold["for"]);
      const start = own[num(hold["at"])];
      if (start === undefined) continue;
      const stop = own[over - 1] === undefined ? end : own[over - 1]! + 1;
      found.push({ lane: lane.get(id)!, row: rowOf(free, start, stop), start, end: stop, state: "hold", label: String(hold["resource"]), title: `${id}: ${hold["resource"]}` });
    }
  }
  return found;
}

/** A slice of a periodic task, cut where one job ends and the next goes on. `ends`: of its jobs, in order. */
function byJob(ends: number[], slice: Record<string, any>): Record<string, any>[] {
  if (!ends.length) return [slice];
  const found: Record<string, any>[] = [];
  for (let from: number = slice["start"]; from < slice["end"]; ) {
    const nth = ends.findIndex((end) => end > from);
    const to = Math.min(slice["end"], nth < 0 ? Infinity : ends[nth]!);
    found.push({ ...slice, start: from, end: to, job: nth < 0 ? undefined : `${slice["task"]}#${nth}` });
    from = to;
  }
  return found;
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
  return { lanes, marks, spans, signs, end, unit: "dispatch", states: RUNS };
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
  for (const flood of run.fluid ?? [])
    for (const [flow, share] of Object.entries(flood.shares))
      marks.push({ lane: lane.get(flow)!, start: flood.start, end: flood.end, state: "run", label: "", title: `${flow} ${Math.round(100 * share)} %`, share });
  return { lanes, marks, spans: run.fluid ? [] : spans, signs, end, unit: "time", states: RUNS };
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
  return { lanes, marks, spans: [], signs: [], end: marks.length, unit: "dispatch", states: RUNS };
}

const NS = 1e9;

/** The first row that is free at `start`; it is taken until `end`. */
function rowOf(free: number[], start: number, end: number): number {
  const found = free.findIndex((until) => until <= start);
  const row = found < 0 ? free.length : found;
  free[row] = end;
  return row;
}

/** A lane for each engine; its rows are places in the batch. A request's prompt is light, its answer full. */
function engineLines(answer: Answer, run: RunView): Lines {
  const names = entities(answer);
  const jobs = (run.result["jobs"] as Record<string, any>[]).filter((job) => job["admitted"] !== null).sort((a, b) => a["admitted"] - b["admitted"]);
  const engines: string[] = ((run.result["engines"] ?? [{ name: "" }]) as Record<string, any>[]).map((one) => one["name"]);
  const free: number[][] = engines.map(() => []); // when each row is free again
  const marks: Mark[] = [];
  let end = 0;
  for (const job of jobs) {
    const lane = Math.max(0, engines.indexOf(job["engine"] ?? ""));
    const over = job["finish"] ?? job["admitted"];
    const first = job["first_token"] ?? over;
    const row = rowOf(free[lane]!, job["admitted"], over);
    const common = { lane, row, label: "", title: `${job["client"]} #${job["id"]}`, who: names.indexOf(job["client"]) };
    marks.push({ ...common, start: job["admitted"] / NS, end: first / NS, state: "switch" });
    marks.push({ ...common, start: first / NS, end: over / NS, state: "run" });
    end = Math.max(end, over / NS);
  }
  return {
    lanes: engines, marks, spans: [], signs: [], end, unit: "time",
    rows: free.map((rows) => Math.max(rows.length, 1)),
    states: { run: "legendDecode", switch: "legendPrefill" },
  };
}

/** A lane for each tenant: its requests, one above the other while they wait (light) or are in flight (full). */
function ledgerLines(answer: Answer, run: RunView): Lines {
  const lanes = entities(answer);
  const end: number = run.result["until"];
  const requests = run.result["requests"] as Record<string, any>[];
  const free: number[][] = lanes.map(() => []);
  const marks: Mark[] = [];
  for (const one of requests) {
    const lane = indexOf(lanes, one["tenant"]);
    const sent: number | null = one["dispatched"];
    const gone: number = one["freed"] ?? one["ended"] ?? end;
    const row = rowOf(free[lane]!, one["arrival"], Math.max(gone, one["arrival"]));
    const common = { lane, row, label: "", title: `${one["tenant"]} ${one["id"]}` };
    if ((sent ?? gone) > one["arrival"]) marks.push({ ...common, start: one["arrival"], end: sent ?? gone, state: "wait" });
    if (sent !== null) marks.push({ ...common, start: sent, end: gone, state: "run" });
  }
  return {
    lanes, marks, spans: [], signs: [], end, unit: "time", coloured: true,
    rows: free.map((rows) => Math.max(rows.length, 1)),
    states: { wait: "stateWait", run: "stateFlight" },
  };
}
