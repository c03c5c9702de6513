// What the lab holds: a scenario, the policies that run on it, what came back, and where the clock stands.
import { batch, computed, signal } from "@preact/signals";
import { type Answer, type File, type PolicyView, type ScenarioView } from "../api.types";
import * as api from "../api";
import { places as placesOn, positions } from "./clock";
import { decides } from "./deciding";
import { MODES, modeOf, type Mode } from "./modes";
import { written, type Shown } from "./address";

export const mode = signal<Mode>("cpu");
export const scenarioId = signal<string | null>(null); // null: edited or opened
export const scenario = signal<Record<string, any>>({});
export const policies = signal<string[]>([]);
export const answer = signal<Answer | null>(null);
export const problem = signal("");
/** Where in the scenario each line of the problem is. */
export const places = signal<(string | number)[][]>([]);
/** The trace whose requests these are; it is sent along with every run. */
/** What of the address could not be followed. */
export const warning = signal<{ key: "noSuchScenario" | "brokenLink"; name: string } | null>(null);
export const held = signal<File | null>(null);
export const busy = signal(false);
export const position = signal(0);
export const playing = signal(false);
export const speed = signal(1);
/** How many times longer time is drawn than fits. */
export const zoom = signal(1);
export const predict = signal(false);
export const score = signal<{ right: number; all: number }>({ right: 0, all: 0 });
/** Everything a run holds, or only its time line: with many runs the time lines should be near each other. */
export const details = signal(true);
export const fork = signal<{ time: number; before: Answer } | null>(null);
export const gallery = signal<ScenarioView[]>([]);
export const catalogue = signal<PolicyView[]>([]);
/** Set where the address is not the lab's to write, as on the tour. */
export const embedded = signal(false);

export const clock = computed(() => positions(answer.value?.runs ?? []));
export const standing = computed(() => (answer.value?.runs ?? []).map((run) => placesOn(run.steps, clock.value)));
export const last = computed(() => Math.max(clock.value.length - 1, 0));
export const now = computed(() => clock.value[Math.min(position.value, last.value)]?.time ?? 0);
/** Steps follow each other faster than a transition takes. */
export const quick = computed(() => playing.value && speed.value >= 4);
export const done = computed(() => position.value >= last.value);

/** The step that run `index` stands at. */
export function placeOf(index: number): number {
  return standing.value[index]?.[Math.min(position.value, last.value)] ?? -1;
}

/** Positions at which some run makes a new decision. */
export const decisions = computed(() => {
  const found = new Set<number>();
  (answer.value?.runs ?? []).forEach((run, index) => {
    const at = standing.value[index]!;
    at.forEach((place, where) => {
      if (place > 0 && place !== at[where - 1] && decides(run.steps, place)) found.add(where);
    });
  });
  return [...found].sort((a, b) => a - b);
});

let running: AbortController | undefined;

/** What a layer begins with: the default input, then what the article tells first. */
function basic(id: string): number {
  return id.endsWith("/lab") ? 2 : id === "cpu/convoy" || id === "router/count-fair-cost-fair" ? 1 : 0;
}

/** Fetches what there is to run, once. False when the server cannot be asked. */
export async function catalogued(): Promise<boolean> {
  if (gallery.value.length) return true;
  try {
    const [all, known] = await Promise.all([api.scenarios(), api.policies()]);
    batch(() => {
      gallery.value = [...all].sort((a, b) => basic(b.id) - basic(a.id));
      catalogue.value = known;
    });
    return true;
  } catch (error) {
    complain(error as Error);
    return false;
  }
}

export async function load(to: Mode, shown: Shown): Promise<void> {
  const view = MODES[to];
  if (mode.value !== to) {
    batch(() => {
      mode.value = to;
      answer.value = null; // another layer's runs would not fit what is shown
    });
  }
  if (!(await catalogued())) return;
  if (to === "ledger") return record(shown.recent);
  const found = gallery.value.find((each) => each.id === (shown.scenario ?? view.scenario));
  const start = found ?? gallery.value.find((each) => each.id === view.scenario)!;
  const shownIn = shown.custom || !found ? to : modeOf(found.layer, found.scenario);
  batch(() => {
    mode.value = shownIn;
    scenarioId.value = shown.custom ? null : start.id;
    scenario.value = shown.custom ?? start.scenario;
    policies.value = shown.policies ?? (start.id === view.scenario ? view.policies : start.policies.slice(0, 8));
    predict.value = shown.predict;
    zoom.value = 1;
    warning.value = shown.broken ? { key: "brokenLink", name: "" } : shown.scenario && !found && !shown.custom ? { key: "noSuchScenario", name: shown.scenario } : null;
    playing.value = false;
    details.value = policies.value.length <= 2;
    fork.value = null;
    held.value = null;
    score.value = { right: 0, all: 0 };
  });
  await compute();
  position.value = Math.min(shown.step, last.value);
}

/** Runs it all again. The clock stays where it is, as far as that exists. */
export async function compute(): Promise<void> {
  running?.abort();
  const mine = (running = new AbortController());
  busy.value = true;
  try {
    const { layer } = MODES[mode.value];
    const files = held.value ? [held.value] : [];
    const given = { layer, scenario: { ...scenario.value, layer }, policies: policies.value, files };
    const found = await api.run(given, mine.signal);
    if (mine.signal.aborted) return;
    batch(() => {
      answer.value = found;
      complain(null);
      position.value = Math.min(position.value, last.value);
    });
  } catch (error) {
    if (mine.signal.aborted) return;
    complain(error as Error);
  } finally {
    if (running === mine) busy.value = false;
  }
}

let later: ReturnType<typeof setTimeout> | undefined;

export function edit(change: (scenario: Record<string, any>) => Record<string, any>): void {
  scenario.value = change(structuredClone(scenario.value));
  scenarioId.value = null;
  clearTimeout(later);
  later = setTimeout(() => void compute(), 150);
}

export function choose(specs: string[]): void {
  policies.value = specs;
  void compute();
}

/** Opens a scenario of the gallery in the mode that shows it. */
export function addressOf(view: ScenarioView): string {
  const to = modeOf(view.layer, view.scenario);
  const query = written(
    { scenario: view.id, custom: null, policies: null, step: 0, predict: false, recent: null, broken: false },
    { scenario: MODES[to].scenario, policies: MODES[to].policies },
  );
  return `/lab/${to}${query ? `?${query}` : ""}`;
}

export function complain(error: Error | null): void {
  problem.value = error?.message ?? "";
  places.value = error instanceof api.Refused ? error.places : [];
}

/** A scenario, a trace, or segments of a ledger: the server finds out. */
export async function open(files: File[]): Promise<void> {
  running?.abort();
  busy.value = true;
  try {
    const found = await api.run({ files });
    adopt(found);
    held.value = found.file ? files[0]! : null;
    history.replaceState(null, "", `/lab/${mode.value}`);
  } catch (error) {
    complain(error as Error);
  } finally {
    busy.value = false;
  }
}

/** The requests of a ledger under other policies, as a model. */
export async function playAgain(): Promise<void> {
  const again = answer.value?.again;
  if (!again) return;
  batch(() => {
    mode.value = "router";
    answer.value = null;
    scenarioId.value = null;
    scenario.value = again;
    policies.value = ["sfq", "request-rr", "fcfs"];
    details.value = false;
    position.value = 0;
  });
  await compute();
}

async function record(recent: Shown["recent"]): Promise<void> {
  batch(() => {
    if (answer.value?.layer !== "ledger") answer.value = null;
    scenarioId.value = held.value = fork.value = null;
    complain(null);
  });
  if (!recent) return;
  busy.value = true;
  try {
    adopt(await api.recent(recent.pool, recent.seconds));
  } catch (error) {
    complain(error as Error);
  } finally {
    busy.value = false;
  }
}

function adopt(found: Answer): void {
  batch(() => {
    mode.value = modeOf(found.layer, found.scenario);
    scenarioId.value = null;
    const { layer: _, ...rest } = found.scenario;
    scenario.value = rest;
    policies.value = found.runs.map((run) => run.spec);
    answer.value = found;
    position.value = 0;
    details.value = found.runs.length <= 2;
    fork.value = null;
    complain(null);
  });
}

export function shown(): Shown {
  return {
    scenario: scenarioId.value,
    custom: scenarioId.value ? null : scenario.value,
    policies: policies.value,
    step: position.value,
    predict: predict.value,
    recent: null,
    broken: false,
  };
}
