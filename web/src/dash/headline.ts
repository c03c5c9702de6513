// What an operator has to know, in words, worst first.
import type { PoolView, TenantView } from "../api.types";
import { list, t, type Key } from "../i18n";
import { percent, show } from "../numbers";
import { lang } from "../settings";
import { span } from "./explained";

export interface Headline {
  tone: "bad" | "warn" | "good" | "quiet";
  key: Key;
  text: string; // [[...]]: who or what it is about
  who: string;
}

const MOST = 3; // of a kind

/** `longest`: by tenant, what 99 of 100 of its requests did not wait longer than, ns. */
export function headlines(view: PoolView, longest: Record<string, number>): Headline[] {
  const found: Headline[] = [];
  const say = (tone: Headline["tone"], key: Key, values: Record<string, string | number> = {}, who = "") => found.push({ tone, key, text: t(key, values), who });
  const number = (value: number) => show(value, lang.value, 0);
  const part = (value: number | null) => (value === null ? "–" : percent(value, lang.value));
  const of = (standing: TenantView["standing"]) => view.tenants.filter((tenant) => tenant.standing === standing && tenant.waiting > 0);
  const oldest = (tenant: TenantView) => span(1e9 * (tenant.oldest ?? 0));

  const down = view.upstreams.filter((each) => !each.healthy);
  const usable = view.upstreams.filter((each) => each.healthy && !each.draining);
  if (!usable.length) say("bad", "headline_no_upstream", { n: number(view.waiting) });
  else if (down.length) say("warn", "headline_upstream_down", { names: list(down.map((each) => each.name)), n: usable.length, of: view.upstreams.length });
  if (!view.bounds.held) say("bad", "headline_broken", { n: number(view.bounds.violations) });

  const starved = view.tenants.filter((tenant) => tenant.standing === "starved");
  for (const each of starved.slice(0, MOST)) {
    const values = { name: each.id, share: part(each.share), fair: part(each.fair), oldest: oldest(each) };
    say("bad", each.waiting ? "headline_starved" : "headline_starved_before", values, each.id);
  }
  if (starved.length > MOST) say("bad", "headline_more_starved", { n: number(starved.length - MOST) });
  const promised = view.bounds.checks.find((check) => check.name === "band")?.promised ?? true;
  if (starved.length && !promised) say("bad", "headline_no_promise", { policy: view.policy });

  const flooding = of("flooding");
  for (const each of flooding.slice(0, 1)) {
    const above = each.share !== null && each.fair !== null && each.share > (starved.length ? 1 : 1.2) * each.fair; // who is starved is so because somebody else got more
    say("warn", above ? "headline_flooding_above" : "headline_flooding", { name: each.id, n: number(each.waiting), of: number(view.waiting), share: part(each.share), fair: part(each.fair) }, each.id);
    const named = new Set(view.tenants.filter((tenant) => ["starved", "flooding", "capped", "paused"].includes(tenant.standing)).map((tenant) => tenant.id));
    const others = Object.entries(longest).filter(([name]) => !named.has(name));
    if (others.length && !starved.length) say("good", "headline_others", { longest: span(Math.max(...others.map(([, ns]) => ns))) });
  }
  for (const each of of("paused").slice(0, MOST)) say("quiet", "headline_paused", { name: each.id, n: number(each.waiting) }, each.id);
  for (const each of of("capped").slice(0, MOST)) say("quiet", "headline_capped", { name: each.id, n: number(each.waiting), most: each.max_inflight ?? "" }, each.id);
  if (!starved.length && !flooding.length && usable.length) say("good", view.waiting ? "headline_fair" : "headline_calm", { n: number(view.waiting) });
  return found;
}
