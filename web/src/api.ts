import type { Answer, LabFailure, Order, Policies, PolicyView, Scenarios, ScenarioView } from "./api.types";

/** The server's refusal; its message is the command line's. `places`: where in the scenario each of its lines is. */
export class Refused extends Error {
  constructor(message: string, readonly places: (string | number)[][] = []) {
    super(message);
  }
}

async function ask<T>(to: string, options?: RequestInit): Promise<T> {
  const response = await fetch(to, options);
  const body: unknown = await response.json();
  if (!response.ok) throw new Refused((body as LabFailure).error.message, (body as LabFailure).error.places);
  return body as T;
}

export function run(order: Order, signal?: AbortSignal): Promise<Answer> {
  const options: RequestInit = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(order),
  };
  if (signal) options.signal = signal;
  return ask<Answer>("/api/lab/run", options);
}

/** The last seconds of one of the gateway's pools. */
export function recent(pool: string, seconds: number): Promise<Answer> {
  return ask<Answer>(`/api/lab/recent?pool=${encodeURIComponent(pool)}&seconds=${seconds}`);
}

let known: Promise<PolicyView[]> | undefined;
let gallery: Promise<ScenarioView[]> | undefined;

export function policies(): Promise<PolicyView[]> {
  return (known ??= ask<Policies>("/api/lab/policies").then((answer) => answer.policies));
}

export function scenarios(): Promise<ScenarioView[]> {
  return (gallery ??= ask<Scenarios>("/api/lab/scenarios").then((answer) => answer.scenarios));
}
