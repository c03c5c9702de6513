import type { TraceStep } from "../api.types";

/** Did this step begin with a choice, or does it only go on with an earlier one? */
export function decides(steps: readonly TraceStep[], place: number): boolean {
  const step = steps[place]!;
  if (step.kind === "place") return true;
  if (!step.why) return false;
  if (step.kind === "iteration") return (step.what["admitted"] as unknown[]).length > 0;
  if (step.kind !== "interval") return true;
  const before = steps[place - 1];
  const ran: unknown = step.what["ran"]?.[0];
  return !before || !before.running.includes(ran as string) || before.what["ran"]?.[0] !== ran;
}
