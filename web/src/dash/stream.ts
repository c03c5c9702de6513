// What the console tells, kept for a while. One connection; it comes back by itself, and goes on where it was.
import { batch, computed, signal } from "@preact/signals";
import type { Dispatch, Ended, Happened, State } from "../api.types";

export const WINDOW = 60; // s of percentiles and decisions
const KEPT = 360; // points of the series
const MOST = 10_000; // of each kind
const CHANGES = 12;
const REDRAW = 250; // ms: thousands a second must not draw thousands of times

export interface At<T> {
  pool: string;
  wall: number;
  line: T;
}
export type Decision = At<Dispatch>;

export interface Point {
  time: number;
  share: Record<string, number>;
  waiting: Record<string, number>;
}

export const state = signal<State | null>(null);
export const selected = signal(""); // pool
export const decisions = signal<Decision[]>([]);
export const ended = signal<At<Ended>[]>([]);
export const changes = signal<Happened[]>([]);
export const points = signal<Point[]>([]);
export const pool = computed(() => state.value?.pools.find((each) => each.name === selected.value) ?? state.value?.pools[0] ?? null);

const places = new Map<string, number>();

/** A tenant keeps its colour, whoever comes and goes. */
export function place(tenant: string): number {
  const found = places.get(tenant) ?? places.size;
  places.set(tenant, found);
  return found;
}

/** Follows the console while the page can be seen; what happened meanwhile is told when it can be seen again. */
export function listen(): () => void {
  let stop = () => {};
  const turn = () => {
    stop();
    stop = document.hidden ? () => {} : follow();
  };
  turn();
  document.addEventListener("visibilitychange", turn);
  return () => {
    document.removeEventListener("visibilitychange", turn);
    stop();
  };
}

function follow(): () => void {
  const source = new EventSource(`/api/events?summary=0.5&kinds=dispatch,ended,change&back=${WINDOW}`);
  let heard: Decision[] = [];
  let over: At<Ended>[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  decisions.value = ended.value = []; // the last minute comes again
  const draw = () => {
    timer = undefined;
    const least = Date.now() / 1000 - WINDOW;
    const recent = <T,>(all: At<T>[]) => all.filter((each) => each.wall >= least).slice(-MOST);
    batch(() => {
      decisions.value = recent([...decisions.value, ...heard]);
      ended.value = recent([...ended.value, ...over]);
    });
    heard = [];
    over = [];
  };
  const told = (event: Event) => {
    const one = JSON.parse((event as MessageEvent<string>).data) as Happened;
    if (one.line.is === "Dispatch") heard.push({ ...one, line: one.line });
    else if (one.line.is === "Ended") over.push({ ...one, line: one.line });
    else changes.value = [one, ...changes.value.filter((each) => each.pool !== one.pool || each.line.seq !== one.line.seq)].slice(0, CHANGES);
    timer ??= setTimeout(draw, REDRAW);
  };
  for (const kind of ["dispatch", "ended", "change"]) source.addEventListener(kind, told);
  source.addEventListener("state", (event) => take(JSON.parse((event as MessageEvent<string>).data) as State));
  return () => {
    source.close();
    clearTimeout(timer);
  };
}

function take(next: State): void {
  batch(() => {
    state.value = next;
    const shown = pool.value;
    if (!shown) return;
    for (const name of shown.tenants.map((tenant) => tenant.id).sort()) place(name);
    points.value = [
      ...points.value.slice(-KEPT + 1),
      {
        time: next.time,
        share: Object.fromEntries(shown.tenants.map((tenant) => [tenant.id, tenant.share ?? 0])),
        waiting: Object.fromEntries(shown.tenants.map((tenant) => [tenant.id, tenant.waiting])),
      },
    ];
  });
}
