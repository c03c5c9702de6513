// What readers call a policy: `rr:quantum=2` is RR (quantum 2), and fcfs among tenants is the article's global FIFO.
import type { RunView } from "../api.types";
import { coded, has, t } from "../i18n";

export function called(spec: string, layer = ""): string {
  const [own = "", placement] = spec.split(" @");
  const [policy = "", given = ""] = own.split(/:(.*)/s);
  const key = (layer && `name_${layer}_${policy}`).replaceAll("-", "_");
  const name = has(key) ? t(key) : coded("name", policy, "policy_other") || policy;
  const pairs = given.split(",").filter(Boolean).map((item) => item.split(/=(.*)/s));
  const said = pairs.map(([param = "", value = ""]) => (param === "protocol" ? choice(value) : `${parameter(policy, param)} ${choice(value)}`));
  return `${said.length ? t("calledWith", { name, with: said.join(t("calledAnd")) }) : name}${placement ? ` @${placement}` : ""}`;
}

export function parameter(policy: string, name: string): string {
  const own = `param_${policy}_${name}`.replaceAll("-", "_");
  return (has(own) ? t(own) : coded("param", name, "policy_other")) || name;
}

export function choice(value: string): string {
  return coded("value", value, "policy_other") || value;
}

/** A table of `show`: what its numbers are in this run. */
export function titleOf(run: RunView, table: string): string {
  if (table === "priority" && run.policy === "rm") return t(run.spec.includes("by=deadline") ? "comparedDeadline" : "comparedPeriod");
  if (table === "shares") return shareOf(run);
  return coded("show", table, "show_other");
}

/** DRF compares dominant shares, or those of the one resource that it is told. */
export function shareOf(run: RunView): string {
  const by = /\bby=([^,]+)/.exec(run.spec)?.[1];
  return by && by !== "dominant" ? t("shareOfOne", { resource: by }) : t("dominantShare");
}
