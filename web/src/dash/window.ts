// Pure pieces of the dashboard: quantiles over a window, and a stretch of decisions as a scenario.

/** The value that a share `q` of them does not exceed (nearest rank); null of none. */
export function quantile(sorted: readonly number[], q: number): number | null {
  if (!sorted.length) return null;
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)]!;
}

export interface Dispatched {
  id: string;
  tenant: string;
  charge: number;
  time: number; // ns
  wait: number; // ns, 0 where the end has not been seen
}

/**
 * Recorded dispatches as a router scenario. Its logical time is the place in the order of dispatch, so a request joins
 * where it had arrived by then; those of one tenant, moment and cost are one batch.
 */
export function asScenario(dispatched: readonly Dispatched[], weights: Record<string, string>): Record<string, any> {
  const order = [...dispatched].sort((a, b) => a.time - b.time);
  const tenants = new Map<string, { join: number; cost: number; count: number }[]>();
  for (const one of order) {
    const arrived = one.time - one.wait;
    const join = order.filter((other) => other.time < arrived).length;
    const cost = Math.max(1, Math.round(one.charge));
    const batches = tenants.get(one.tenant) ?? [];
    tenants.set(one.tenant, batches);
    const lastOne = batches.at(-1);
    if (lastOne && lastOne.join === join && lastOne.cost === cost) lastOne.count++;
    else batches.push({ join, cost, count: 1 });
  }
  return {
    tenants: [...tenants.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, batches]) => ({
      id,
      ...(weights[id] && weights[id] !== "1" ? { weight: weights[id] } : {}),
      batches,
    })),
  };
}
