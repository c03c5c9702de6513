// The lab's modes: which scenarios belong to each, and what it opens with.
export type Mode = "cpu" | "router" | "link" | "engine" | "fleet" | "cluster" | "periodic" | "locks" | "ledger";

export interface ModeView {
  layer: string;
  scenario: string; // of the gallery
  policies: string[];
}

export const MODES: Record<Mode, ModeView> = {
  cpu: { layer: "cpu", scenario: "cpu/lab", policies: ["fcfs", "srtf"] },
  router: { layer: "router", scenario: "router/lab", policies: ["request-rr", "sfq"] },
  link: { layer: "link", scenario: "link/eights-and-twos", policies: ["gps", "wfq", "sfq", "drr:quantum=8"] },
  engine: { layer: "engine", scenario: "engine/lab", policies: ["fcfs", "vtc"] },
  fleet: {
    layer: "fleet",
    scenario: "fleet/two-clients-three-workers",
    policies: ["dlpm:quantum=2000 @prefix-affinity:imbalance=0", "dlpm:quantum=2000 @d2lpm:quantum=2000"],
  },
  cluster: { layer: "cluster", scenario: "cluster/drf-paper", policies: ["drf"] },
  periodic: { layer: "cpu", scenario: "cpu/rm-misses-edf-holds", policies: ["rm", "edf"] },
  locks: {
    layer: "cpu",
    scenario: "cpu/priority-inversion",
    policies: ["priority:protocol=none", "priority:protocol=inheritance"],
  },
  ledger: { layer: "ledger", scenario: "", policies: [] }, // what a gateway recorded
};

export const MODE_NAMES = Object.keys(MODES) as Mode[];

/** What the article's lab offers first, in each mode; other policies that fit are behind "more". */
export const USUAL: Record<Mode, string[]> = {
  cpu: ["fcfs", "sjf", "srtf", "rr:quantum=2", "mlfq"],
  router: ["fcfs", "request-rr", "shortest", "sfq"],
  link: ["gps", "wfq", "wf2q", "sfq", "drr:quantum=8"],
  engine: ["fcfs", "vtc", "lcf", "dlpm", "lpm"],
  fleet: [
    "dlpm:quantum=2000 @least-loaded",
    "dlpm:quantum=2000 @prefix-affinity:imbalance=0",
    "dlpm:quantum=2000 @d2lpm:quantum=2000",
    "fcfs @least-loaded",
  ],
  cluster: ["drf", "drf:misfit=skip", "fcfs"],
  periodic: ["rm", "edf", "priority"],
  locks: [
    "priority:protocol=none",
    "priority:protocol=inheritance",
    "priority:protocol=ceiling",
    "priority:protocol=immediate-ceiling",
  ],
  ledger: [],
};

export function modeOf(layer: string, scenario: Record<string, any>): Mode {
  if (layer !== "cpu") return layer as Mode;
  const tasks: Record<string, any>[] = scenario["tasks"] ?? [];
  if (tasks.some((task) => task["locks"]?.length)) return "locks";
  return tasks.some((task) => task["wcet"] !== undefined) ? "periodic" : "cpu";
}
