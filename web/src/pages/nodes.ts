// The article's lineage: neither a chronology nor a ranking.
export interface Node {
  id: string;
  family: Family;
  x: number;
  y: number;
  open: string; // where it can be seen at work
}

export type Family = "completion" | "deadline" | "share" | "fair" | "resource" | "llm";

export const FAMILIES: Record<Family, [number, number, number, number]> = {
  completion: [14, 16, 690, 176],
  deadline: [726, 16, 460, 176],
  share: [14, 216, 690, 108],
  fair: [14, 348, 520, 196],
  resource: [14, 568, 340, 96],
  llm: [726, 216, 460, 448],
};

export const NODES: Node[] = [
  { id: "fcfs", family: "completion", x: 84, y: 110, open: "/lab/cpu?s=cpu/convoy&p=fcfs~srtf" },
  { id: "sjf", family: "completion", x: 254, y: 74, open: "/lab/cpu?p=fcfs~sjf" },
  { id: "srtf", family: "completion", x: 424, y: 74, open: "/lab/cpu?s=cpu/srtf-starvation" },
  { id: "rr", family: "completion", x: 254, y: 152, open: "/lab/cpu?p=fcfs~rr:quantum=1~rr:quantum=3" },
  { id: "mlfq", family: "completion", x: 614, y: 110, open: "/lab/cpu?s=cpu/mlfq-learns" },
  { id: "priority", family: "deadline", x: 830, y: 110, open: "/lab/cpu?s=cpu/aging" },
  { id: "rm", family: "deadline", x: 990, y: 110, open: "/lab/periodic?p=rm" },
  { id: "edf", family: "deadline", x: 1112, y: 110, open: "/lab/periodic" },
  { id: "lottery", family: "share", x: 84, y: 280, open: "/lab/cpu?s=cpu/lottery-against-stride" },
  { id: "stride", family: "share", x: 254, y: 280, open: "/lab/cpu?s=cpu/lottery-against-stride&p=stride" },
  { id: "cfs", family: "share", x: 424, y: 280, open: "/lab/cpu?s=cpu/waking-sleeper" },
  { id: "eevdf", family: "share", x: 614, y: 280, open: "/lab/cpu?s=cpu/eevdf-short-request" },
  { id: "gps", family: "fair", x: 84, y: 440, open: "/lab/link?s=link/fluid-and-packets" },
  { id: "wfq", family: "fair", x: 254, y: 410, open: "/lab/link?p=gps~wfq" },
  { id: "sfq", family: "fair", x: 434, y: 410, open: "/lab/link?s=link/lying-lengths" },
  { id: "drr", family: "fair", x: 254, y: 502, open: "/lab/link?s=link/drr-small-quantum" },
  { id: "drf", family: "resource", x: 84, y: 624, open: "/lab/cluster" },
  { id: "router", family: "llm", x: 820, y: 410, open: "/lab/router" },
  { id: "vtc", family: "llm", x: 820, y: 290, open: "/lab/engine" },
  { id: "equinox", family: "llm", x: 1060, y: 290, open: "/lab/engine?p=vtc~equinox" },
  { id: "dlpm", family: "llm", x: 920, y: 556, open: "/lab/engine?s=engine/locality" },
  { id: "d2lpm", family: "llm", x: 1092, y: 556, open: "/lab/fleet" },
];

/** [from, to, sideways bend of the arrow, dashed] */
export const EDGES: [string, string, number, boolean][] = [
  ["fcfs", "sjf", 0, false],
  ["sjf", "srtf", 0, false],
  ["fcfs", "rr", 0, false],
  ["rr", "mlfq", 18, false],
  ["srtf", "mlfq", 0, false],
  ["priority", "rm", 0, false],
  ["rm", "edf", 0, false],
  ["lottery", "stride", 0, false],
  ["stride", "cfs", 0, false],
  ["cfs", "eevdf", 0, true],
  ["gps", "wfq", 0, false],
  ["wfq", "sfq", 0, false],
  ["gps", "drr", 0, false],
  ["rr", "drr", 190, false],
  ["gps", "drf", 0, false],
  ["gps", "cfs", -16, false],
  ["sfq", "router", 0, false],
  ["stride", "vtc", 56, false],
  ["sfq", "vtc", 0, false],
  ["drr", "dlpm", 40, false],
  ["vtc", "dlpm", 90, true],
  ["dlpm", "d2lpm", 0, false],
  ["vtc", "equinox", 0, false],
];
