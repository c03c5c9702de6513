// Which values of a scenario each mode lets the reader change: those of its rows, and those of the whole.
import type { Key } from "../i18n";
import type { Mode } from "./modes";

export interface Field {
  key: string;
  label: Key;
  least: number;
  whole: boolean;
  fallback: number | "";
}

const field = (key: string, label: Key, fallback: number | "", least = 0, whole = true): Field => ({ key, label, least, whole, fallback });
const WEIGHT = field("weight", "weight", 1, 0, false);

export interface Rows {
  list: string;
  name: Key;
  id: string;
  when: string; // the field that says when a row begins
  fields: Field[];
  fresh: Record<string, any>;
  single: boolean; // may several rows have one name?
}

const REQUESTS: Rows = {
  list: "requests", name: "client", id: "client", when: "at", single: false, fresh: { prompt: 256, output: 256 },
  fields: [field("at", "arrival", 0, 0, false), field("prompt", "promptTokens", "", 1), field("output", "outputTokens", "", 0), field("count", "count", 1, 1), field("every", "every", 0, 0, false)],
};

export const ROWS: Record<Exclude<Mode, "ledger">, Rows> = {
  cpu: { list: "tasks", name: "task", id: "id", when: "arrival", single: true, fields: [field("arrival", "arrival", 0), field("burst", "burst", "", 1)], fresh: { burst: 3 } },
  router: { list: "tenants", name: "tenant", id: "id", when: "join", single: true, fields: [field("cost", "cost", "", 1), field("count", "count", "", 1), WEIGHT, field("join", "join", 0)], fresh: { cost: 4, count: 4 } },
  link: { list: "packets", name: "flow", id: "flow", when: "arrival", single: false, fields: [field("arrival", "arrival", 0), field("size", "size", "", 1), field("count", "count", 1, 1), field("every", "every", 0)], fresh: { arrival: 0, size: 4 } },
  engine: REQUESTS,
  fleet: REQUESTS,
  cluster: { list: "users", name: "user", id: "id", when: "arrival", single: true, fields: [WEIGHT, field("tasks", "tasksOf", "", 1), field("duration", "duration", "", 1)], fresh: {} },
  periodic: { list: "tasks", name: "task", id: "id", when: "offset", single: true, fields: [field("period", "period", "", 1), field("wcet", "wcet", "", 1), field("deadline", "deadline", "", 1), field("offset", "offset", 0)], fresh: { period: 10, wcet: 1 } },
  locks: { list: "tasks", name: "task", id: "id", when: "arrival", single: true, fields: [field("arrival", "arrival", 0), field("burst", "burst", "", 1), field("priority", "priority", 0, -1000)], fresh: { burst: 3 } },
};

/** Fields of CPU tasks that only some scenarios use. */
export function extras(mode: Mode, rows: Record<string, any>[]): Field[] {
  if (mode !== "cpu") return [];
  const keys: [string, Key][] = [["priority", "priority"], ["weight", "weight"], ["estimate", "estimate"], ["deadline", "deadline"]];
  return keys.filter(([key]) => rows.some((row) => row[key] !== undefined)).map(([key, label]) => field(key, label, key === "weight" ? 1 : key === "priority" ? 0 : "", key === "priority" ? -1000 : 0, key !== "weight"));
}

export interface Value {
  key: string;
  label: Key;
  kind: "whole" | "text" | "switch" | "choice";
  fallback: string | number | boolean;
  choices?: string[];
  least?: number;
  only?: "traced" | "drawn"; // where the requests are from a trace, or from a workload
}

const whole = (key: string, label: Key, fallback: number | "" = "", least = 1): Value => ({ key, label, kind: "whole", fallback, least });
const choice = (key: string, label: Key, ...choices: string[]): Value => ({ key, label, kind: "choice", fallback: choices[0]!, choices });

const ENGINE: Value[] = [
  { key: "workload", label: "workload", kind: "text", fallback: "", only: "drawn" },
  { ...whole("first", "firstRequests"), only: "traced" },
  { key: "speed", label: "traceSpeed", kind: "text", fallback: 1, only: "traced" },
  { key: "tenants_by", label: "tenantsBy", kind: "text", fallback: "", only: "traced" },
  { key: "preset", label: "preset", kind: "text", fallback: "a10g-llama2-7b" },
  whole("pool_tokens", "poolTokens"), whole("max_sequences", "maxSequences"), whole("step_tokens", "stepTokens"),
  choice("prefill", "prefill", "", "chunked", "first"),
  { key: "prefix_cache", label: "prefixCache", kind: "switch", fallback: false },
];

export const VALUES: Record<Mode, Value[]> = {
  cpu: [whole("switch_cost", "switchCost", 0, 0), whole("cpus", "cpus", 1)],
  router: [],
  link: [{ key: "rate", label: "rate", kind: "text", fallback: 1 }, whole("buffer", "buffer")],
  engine: ENGINE,
  fleet: [whole("engines", "engines", 2), { key: "router", label: "routerPolicy", kind: "text", fallback: "sfq" }, whole("slots", "slots", 0, 0), ...ENGINE],
  cluster: [whole("horizon", "horizon")],
  periodic: [whole("horizon", "horizon"), choice("on_miss", "onMiss", "continue", "abort"), whole("switch_cost", "switchCost", 0, 0)],
  locks: [choice("lock_attempt", "lockAttempt", "free", "tick"), whole("switch_cost", "switchCost", 0, 0)],
  ledger: [],
};
