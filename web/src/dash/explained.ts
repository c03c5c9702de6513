// Why a request waited, in words of both languages: made from the codes and numbers of the explanation.
import type { Explanation, ExplanationStep, Why } from "../api.types";
import { coded, t } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";

const SMALLEST = 500; // a part of the whole that is still told
const TAG = 2 ** 20; // the gateway's tags are fixed-point numbers, counted in 2^-20 of a cost unit

const say = (value: number, digits = 0) => show(value, lang.value, digits);

/** A time in the unit that it is read in. */
export function span(ns: number): string {
  if (ns >= 1e9) return t("dashSeconds", { n: say(ns / 1e9, ns < 1e10 ? 2 : 1) });
  return ns >= 1e6 || ns === 0 ? t("dashMs", { n: say(ns / 1e6, ns < 1e7 ? 1 : 0) }) : t("dashUs", { n: say(ns / 1e3) });
}

/** A decision's reason. */
export function reason(why: Why): string {
  const { meter, virtual_time: v } = why.values;
  if (why.code === "least-meter" && meter !== undefined && v !== undefined) return t("dashWhyMeter", { ahead: say((num(meter) - num(v)) / TAG) });
  return coded("why", why.code, "why_other", Object.fromEntries(Object.entries(why.values).map(([key, value]) => [key, show(value, lang.value, 0)])));
}

export function outcome(code: string): string {
  return coded("outcome", code, "outcome_other", {});
}

export interface Part {
  kind: string; // a cause of waiting, or what the upstream did
  waits: boolean;
  ns: number;
  text: string;
}

/** The life of the request in parts, in the order in which they are told. */
export function parts(found: Explanation): Part[] {
  const told = { tenant: found.tenant, before: say(Math.max(0, found.position - 1)) };
  const waits = Object.entries(found.waited)
    .filter(([, ns]) => ns > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([cause, ns]) => ({ kind: cause, waits: true, ns, text: coded("cause", cause.replaceAll(" ", "_"), "outcome_other", told) }));
  const served = ([["first_byte", found.first_byte], ["generation", found.generation], ["delivery", found.delivery]] as const)
    .filter(([, ns]) => ns)
    .map(([kind, ns]) => ({ kind, waits: false, ns: ns!, text: t(`part_${kind}`) }));
  const all = [...waits, ...served];
  const total = all.reduce((sum, part) => sum + part.ns, 0);
  return all.filter((part) => part.ns * SMALLEST >= total);
}

const LAYER: Record<string, string> = { "no upstream": "upstreams", retry: "upstreams", paused: "limits", capped: "limits", "own queue": "order", "slots taken": "order" };

/** The one sentence that answers the question. */
export function answer(found: Explanation): string {
  const waits = parts(found).filter((part) => part.waits);
  const total = waits.reduce((sum, part) => sum + part.ns, 0);
  if (!found.position && found.outcome) return t("explained_refused", { outcome: outcome(found.outcome), status: found.status });
  if (!total) return t("explained_at_once");
  const layers = new Map<string, number>();
  for (const part of waits) layers.set(LAYER[part.kind] ?? "order", (layers.get(LAYER[part.kind] ?? "order") ?? 0) + part.ns);
  const layer = [...layers].sort(([, a], [, b]) => b - a)[0]![0];
  const values = { total: span(total), part: span(waits[0]!.ns), cause: waits[0]!.text, layer: coded("because", layer, "outcome_other", {}) };
  if (!found.own.length && !found.outcome) return t("explained_still", values);
  return t(waits.length > 1 ? "explained_mostly" : "explained_only", values);
}

/** What else is known, a sentence each. */
export function details(found: Explanation): string[] {
  const lines: string[] = [];
  const { usage } = found;
  if (found.position) {
    lines.push(t("explained_queue", { place: say(found.position), tenant: found.tenant, rivals: say(found.rivals) }));
    if (found.lead !== null) lines.push(t("explained_lead", { tenant: found.tenant, lead: say(found.lead) }));
  }
  for (const own of found.own) {
    const values = { after: span(own.time - found.arrival), upstream: own.upstream };
    if ((own.attempt ?? 1) > 1) lines.push(t("explained_again", values));
    else {
      lines.push(t("explained_went", { ...values, why: reason(own.why) }));
      lines.push(t("explained_charged", { estimate: say(own.estimate), charge: say(own.charge), prompt: say(own.input_tokens), completion: say(own.output_tokens) }));
    }
  }
  if (found.first_byte !== null && found.generation === null) lines.push(t("explained_no_byte", { time: span(found.first_byte) }));
  if (found.actual) lines.push(t("explained_cost", { actual: say(found.actual), prompt: say(usage.prompt ?? 0), cached: say(usage.cached ?? 0), completion: say(usage.completion ?? 0), estimate: say(found.estimate) }));
  if (found.outcome) lines.push(t("explained_ended", { outcome: outcome(found.outcome), status: found.status || "–", total: found.total === null ? "–" : span(found.total) }));
  else lines.push(t(found.own.length ? "explained_runs" : "explained_waits"));
  if (found.lives > 1) lines.push(t("explained_lives", { n: say(found.lives) }));
  if (found.truncated) lines.push(t("explained_truncated"));
  if (found.interrupted) lines.push(t("explained_interrupted", { how: found.interrupted }));
  return lines;
}

/** One decision of the wait: after how long, who went, and why. */
export function step(found: Explanation, one: ExplanationStep): { after: string; why: string; lead: string } {
  return { after: `+${span(one.time - found.arrival)}`, why: reason(one.why), lead: one.lead === null ? "–" : say(one.lead) };
}
