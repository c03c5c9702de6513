// Made by web/typescript.py from the Python types. Do not edit.

export interface Order {
  layer?: string | null;
  scenario?: Record<string, any> | null;
  yaml?: string | null;
  policies?: string[] | null;
  files?: File[];
}

export interface File {
  name: string;
  data: string;
}

export interface Answer {
  layer: string;
  title: string;
  look_for: string;
  source: string;
  scenario: Record<string, any>;
  yaml: string;
  runs: RunView[];
  file: string;
  again: Record<string, any> | null;
}

export interface RunView {
  spec: string;
  policy: string;
  params: Record<string, any>;
  steps: TraceStep[];
  result: Record<string, any>;
  fluid: Flood[] | null;
}

export interface TraceStep {
  time: number | string;
  kind: string;
  what: Record<string, any>;
  why: Why | null;
  queues: Record<string, string[]>;
  running: string[];
  remaining: Record<string, number>;
  show: Record<string, any>;
}

export interface Why {
  code: string;
  values: Record<string, number | string>;
}

export interface Flood {
  start: number;
  end: number;
  shares: Record<string, number>;
}

export interface Policies {
  policies: PolicyView[];
}

export interface PolicyView {
  name: string;
  unit: string;
  needs: string[];
  layers: string[];
  params: ParamView[];
  file: string;
  source: string;
  rules: Record<string, number>;
  methods: Record<string, [number, number]>;
}

export interface ParamView {
  name: string;
  kind: string;
  default: number | boolean | string;
  low: number | null;
  high: number | null;
  choices: string[];
}

export interface Scenarios {
  scenarios: ScenarioView[];
}

export interface ScenarioView {
  id: string;
  layer: string;
  title: string;
  look_for: string;
  source: string;
  policies: string[];
  scenario: Record<string, any>;
}

export interface LabFailure {
  error: LabProblem;
}

export interface LabProblem {
  code: string;
  message: string;
  places: ((string | number)[])[];
}

export interface State {
  fairq: string;
  time: number;
  connected: boolean;
  since: number;
  complaint: string;
  lag: number;
  unreadable: number;
  pools: PoolView[];
}

export interface PoolView {
  name: string;
  since: number;
  policy: string;
  settlement: string;
  virtual_time: number;
  reach: number;
  minute: Minute;
  waiting: number;
  inflight: number;
  slots: number;
  free: number;
  admitted: number;
  refused: number;
  retries: number;
  outcomes: Record<string, number>;
  last_event: number;
  bounds: Bounds;
  fairness: Fairness;
  record: RecordView;
  tenants: TenantView[];
  more_tenants: number;
  upstreams: UpstreamView[];
}

export interface Minute {
  seconds: number;
  charged: number;
  prompt: number;
  completion: number;
}

export interface Bounds {
  held: boolean;
  decisions: number;
  violations: number;
  worst_margin: number | null;
  checks: Check[];
  pairs: PairReport[];
}

export interface Check {
  name: string;
  text: string;
  promised: boolean;
  held: number;
  violations: number;
  worst: number | null;
  limit: number | null;
  margin: number | null;
  seq: number | null;
  who: string;
  first: string;
}

export interface PairReport {
  tenants: [string, string];
  seconds: number;
  charged: [number, number];
  actual: [number, number];
  gap: number;
}

export interface Fairness {
  jain_minute: number | null;
  jain_charged: number | null;
  jain_actual: number | null;
  sets: TogetherView[];
}

export interface TogetherView {
  tenants: string[];
  seconds: number;
  charged: Record<string, number>;
  actual: Record<string, number>;
  jain_charged: number | null;
  jain_actual: number | null;
}

export interface RecordView {
  events: number;
  decisions: number;
  bytes: number;
  missed: number;
  lost: number;
  gaps: number;
}

export interface TenantView {
  id: string;
  pool: string;
  weight: string | null;
  max_inflight: number | null;
  configured: boolean;
  paused: boolean;
  waiting: number;
  inflight: number;
  backlogged: boolean;
  charged: number;
  actual: number;
  normalized: number;
  meter: number | null;
  lead: number | null;
  standing: Standing;
  share: number | null;
  entitled: number | null;
  fair: number | null;
  wanting: number;
  oldest: number | null;
  oldest_id: string;
  tokens: Tokens;
  outcomes: Record<string, number>;
}

export interface Tokens {
  prompt: number;
  cached: number;
  completion: number;
}

export interface UpstreamView {
  pool: string;
  name: string;
  slots: number;
  inflight: number;
  healthy: boolean;
  draining: boolean;
  queue: number | null;
}

export interface Tenants {
  tenants: TenantView[];
}

export interface Upstreams {
  upstreams: UpstreamView[];
}

export interface Explained {
  words: string[];
  explanation: Explanation;
}

export interface Explanation {
  id: string;
  pool: string;
  policy: string;
  tenant: string;
  model: string;
  arrival: number;
  wall: number;
  position: number;
  rivals: number;
  lead: number | null;
  waited: Record<string, number>;
  served: Served[];
  steps: ExplanationStep[];
  left_out: number;
  own: Dispatch[];
  first_byte: number | null;
  generation: number | null;
  delivery: number | null;
  outcome: string | null;
  status: number;
  finish: string;
  estimate: number;
  charge: number;
  actual: number;
  usage: Usage;
  attempts: number;
  total: number | null;
  lives: number;
  truncated: boolean;
  interrupted: string;
  notes: string[];
}

export interface Served {
  tenant: string;
  requests: number;
  charge: number;
  first: number;
  last: number;
}

export interface ExplanationStep {
  seq: number;
  time: number;
  id: string;
  tenant: string;
  charge: number;
  why: Why;
  lead: number | null;
}

export interface Dispatch {
  is: "Dispatch";
  seq: number;
  time: number;
  id: string;
  tenant: string;
  upstream: string;
  estimate: number;
  charge: number;
  input_tokens: number;
  output_tokens: number;
  why: Why;
  contended?: boolean;
  attempt?: number;
}

export interface Usage {
  prompt?: number;
  completion?: number;
  cached?: number;
  source?: Source;
}

export interface Failure {
  error: Problem;
}

export interface Problem {
  code: string;
  message: string;
}

export interface Happened {
  pool: string;
  wall: number;
  line: Dispatch | Ended | Refused | Paused | Resumed | Reconfigured | UpstreamChanged | UpstreamRemoved | Draining | RecordingGap | Shortened;
}

export interface Ended {
  is: "Ended";
  seq: number;
  time: number;
  id: string;
  tenant: string;
  outcome: Outcome;
  upstream?: string;
  model?: string;
  wait?: number;
  ttft?: number;
  tpot?: number;
  total?: number;
  estimate?: number;
  charge?: number;
  actual?: number;
  meter?: number | string;
  usage?: Usage;
  finish?: string;
  status?: number;
  attempts?: number;
}

export interface Refused {
  is: "Refused";
  seq: number;
  time: number;
  id: string;
  outcome: Outcome;
  tenant?: string;
  status?: number;
}

export interface Paused {
  is: "Paused";
  seq: number;
  time: number;
  tenant: string;
}

export interface Resumed {
  is: "Resumed";
  seq: number;
  time: number;
  tenant: string;
}

export interface Reconfigured {
  is: "Reconfigured";
  seq: number;
  time: number;
  flows: Share[];
  default_flow: Share;
  by?: string;
}

export interface Share {
  id: string;
  weight?: string;
  max_inflight?: number | null;
  paused?: boolean;
}

export interface UpstreamChanged {
  is: "UpstreamChanged";
  seq: number;
  time: number;
  upstream: string;
  slots: number;
  healthy: boolean;
  draining?: boolean;
}

export interface UpstreamRemoved {
  is: "UpstreamRemoved";
  seq: number;
  time: number;
  upstream: string;
}

export interface Draining {
  is: "Draining";
  seq: number;
  time: number;
}

export interface RecordingGap {
  is: "RecordingGap";
  seq: number;
  time: number;
  lost: number;
}

export interface Shortened {
  is: "Shortened";
  seq: number;
  time: number;
  of: string;
  bytes: number;
}

export interface Missed {
  missed: number;
}

export interface TenantPatch {
  weight?: number | string;
  paused?: boolean;
}

export interface UpstreamPatch {
  draining: boolean;
}

export type Standing = "above" | "capped" | "fair" | "flooding" | "idle" | "new" | "paused" | "served" | "starved";

export type Source = "counted" | "none" | "upstream";

export type Outcome = "cancelled-running" | "cancelled-waiting" | "completed" | "expired" | "failed-connect" | "failed-midstream" | "failed-timeout" | "failed-upstream" | "refused-forbidden" | "refused-invalid" | "refused-no-upstream" | "refused-queue-full" | "refused-rate-limit" | "refused-shutting-down" | "refused-too-large" | "refused-unauthorized" | "refused-unknown-model" | "stalled-client";
