// What the console tells, kept for a while. One connection; it comes back by itself, and goes on where it was.
import { batch, computed, signal } from "@preact/signals";
import type { State } from "../api.types";
import type { Dispatched } from "./window";

export const state = signal<State | null>(null);
export const selected = signal(""); // pool
export const decisions = signal<Decision[]>([]);
export const ended = signal<Ended[]>([]);
export const points = signal<Point[]>([]);
export const limits = signal<Record<string, number>>({}); // pool -> q

const WINDOW = 60; // s of percentiles
const KEPT = 360; // points of the series
const MOST = 4000;

export interface Decision extends Dispatched {
  wall: number;
  pool: string;
  upstream: string;
  why: { code: string; values: Record<string, number | string> };
}

export interface Ended {
  wall: number;
  pool: string;
  id: string;
  tenant: string;
  outcome: string;
  wait: number;
  ttft: number;
  tpot: number;
  tokens: number;
}

export interface Point {
  time: number;
  share: Record<string, number>;
  waiting: Record<string, number>;
}

export const pool = computed(() => state.value?.pools.find((each) => each.name === selected.value) ?? state.value?.pools[0] ?? null);

interface Told {
  pool: string;
  wall: number;
  line: Record<string, any>;
}

export function listen(): () => void {
  const source = new EventSource("/api/events?summary=0.5&kinds=dispatch,ended");
  const parsed = (event: Event) => JSON.parse((event as MessageEvent<string>).data) as unknown;
  source.addEventListener("state", (event) => take(parsed(event) as State));
  let heard: Decision[] = [];
  let over: Ended[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Thousands a second must not draw thousands of times.
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      const waits = new Map(over.map((each) => [each.id, each.wait]));
      const least = Math.max(...[...over, ...heard].map((each) => each.wall), 0) - WINDOW;
      batch(() => {
        const known = waits.size ? decisions.value.map((each) => (waits.has(each.id) ? { ...each, wait: waits.get(each.id)! } : each)) : decisions.value;
        decisions.value = [...known, ...heard].filter((each) => each.wall >= least).slice(-MOST);
        ended.value = [...ended.value, ...over].filter((each) => each.wall >= least).slice(-MOST);
      });
      heard = [];
      over = [];
    }, 250);
  };
  source.addEventListener("dispatch", (event) => {
    const { pool, wall, line } = parsed(event) as Told;
    if (line["why"]) heard.push({ id: line["id"], tenant: line["tenant"], upstream: line["upstream"], charge: line["charge"], time: line["time"], wait: 0, why: { values: {}, ...line["why"] }, wall, pool });
    soon();
  });
  source.addEventListener("ended", (event) => {
    const { pool, wall, line } = parsed(event) as Told;
    over.push({ wall, pool, id: line["id"], tenant: line["tenant"], outcome: line["outcome"], wait: line["wait"] ?? 0, ttft: line["ttft"] ?? 0, tpot: line["tpot"] ?? 0, tokens: line["usage"]?.completion ?? line["usage"]?.output ?? 0 });
    soon();
  });
  const whole = async () => {
    if (document.hidden) return;
    try {
      const found = (await (await fetch("/api/state?tenants=1")).json()) as State;
      limits.value = Object.fromEntries(found.pools.map((each) => [each.name, each.bounds.checks.find((check) => check.name === "band")?.limit ?? NaN]));
    } catch {
      // the stream says when the console is gone
    }
  };
  void whole();
  const slow = setInterval(whole, 3000);
  return () => {
    source.close();
    clearInterval(slow);
    clearTimeout(timer);
  };
}

function take(next: State): void {
  batch(() => {
    state.value = next;
    const shown = pool.value;
    if (!shown) return;
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
