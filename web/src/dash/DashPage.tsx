import { useEffect } from "preact/hooks";
import type { PoolView } from "../api.types";
import { t } from "../i18n";
import { Dot } from "../lab/colours";
import { Rich } from "../lab/Rich";
import { show } from "../numbers";
import { lang } from "../settings";
import { Changes, Outcomes, Upstreams } from "./Aside";
import "./dash.css";
import { Decisions } from "./Decisions";
import { span } from "./explained";
import { headlines, type Headline } from "./headline";
import { Confirm, Token } from "./Operate";
import { Held, Lag, Promises } from "./Promises";
import { Series } from "./Series";
import { Shares } from "./Shares";
import { ended, listen, place, pool, selected, state, WINDOW } from "./stream";
import { Times } from "./Times";
import { WhyCard } from "./Why";
import { quantile } from "./quantile";

const SHOWN = 20; // tenants
const LINES = 6; // of the series: one colour each
const MARK: Record<Headline["tone"], string> = { bad: "▼", warn: "≋", good: "✓", quiet: "‖" };

const say = (value: unknown, digits = 1) => show(value, lang.value, digits);

export function DashPage() {
  useEffect(listen, []);
  const now = state.value;
  const shown = pool.value;
  return (
    <div class="page dash">
      <header class="lead dash-lead">
        <h1>{t("dashTitle")}</h1>
        {now && now.pools.length > 1 && (
          <select value={shown?.name} aria-label={t("dashPool")} onChange={(event) => (selected.value = event.currentTarget.value)}>{now.pools.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}</select>
        )}
        {shown && <p class="quiet">{t("dashAbout", { pool: shown.name, policy: shown.policy, settlement: shown.settlement })}</p>}
        <Token />
      </header>
      {now && !now.connected && <p class="alert problem" role="alert">{t("dashLost", { why: now.complaint })}</p>}
      {now?.connected && now.complaint && <p class="alert problem" role="alert">{now.complaint}</p>}
      {!now ? <p class="quiet">{t("loading")}</p> : shown ? <Pool view={shown} /> : <p class="quiet">{t("dashNoPool")}</p>}
      <Confirm />
      <p class="caution">{t("dashNotPromised")}</p>
    </div>
  );
}

function Pool({ view }: { view: PoolView }) {
  const tenants = view.tenants.slice(0, SHOWN);
  const names = tenants.map((tenant) => tenant.id).sort((a, b) => place(a) - place(b));
  const all = ended.value.filter((each) => each.pool === view.name);
  const first = all.length ? all[0]!.wall : (state.value?.time ?? 0);
  const seconds = Math.min(WINDOW, Math.max(1, Math.round((state.value?.time ?? 0) - first)));
  const oldest = Math.max(0, ...tenants.map((tenant) => tenant.oldest ?? 0));
  const longest: Record<string, number> = {};
  for (const name of names) {
    const waits = all.filter((each) => each.line.tenant === name).map((each) => each.line.wait ?? 0).sort((a, b) => a - b);
    const p99 = quantile(waits, 0.99);
    if (p99 !== null) longest[name] = p99;
  }
  return (
    <>
      <Headlines all={headlines(view, longest)} />
      <Held view={view} />
      <dl class="tiles">
        <Tile name={t("dashWaiting")} value={say(view.waiting)} id="waiting" />
        <Tile name={t("dashOldest")} value={span(oldest * 1e9)} id="oldest" />
        <Tile name={t("dashInflight")} value={`${say(view.inflight)} / ${say(view.slots)}`} id="inflight" />
        <Tile name={t("dashTokens")} value={say(view.minute.completion, 0)} id="tokens" note={t("dashTokensIn", { n: say(view.minute.prompt, 0) })} />
        <Tile name={t("dashJain")} value={say(view.fairness.jain_minute, 3)} id="jain" note={t("dashJainNote")} />
      </dl>
      <div class="dash-columns">
        <div class="dash-main">
          <section class="card"><h2>{t("dashFair")}</h2><Shares tenants={tenants} view={view} hidden={view.tenants.length - tenants.length} /></section>
          <WhyCard pool={view.name} />
          <section class="card"><h2>{t("dashTimes", { n: seconds })}</h2><Times names={names} all={all} /></section>
        </div>
        <div class="dash-side">
          <section class="card"><h2>{t("dashLag")}</h2><Lag tenants={tenants} view={view} /><Promises view={view} /></section>
          <section class="card">
            <h2>{t("dashSeries")}</h2>
            <Series title={t("dashSeriesShare")} names={names.slice(0, LINES)} read={(point) => point.share} most={1} />
            <Series title={t("dashSeriesWaiting")} names={names.slice(0, LINES)} read={(point) => point.waiting} />
            <p class="legend-row">{names.slice(0, LINES).map((name) => <span key={name}><Dot index={place(name)} />{name}</span>)}</p>
          </section>
          <section class="card"><h2>{t("dashUpstreams")}</h2><Upstreams view={view} /></section>
          <section class="card"><h2>{t("dashOutcomes")}</h2><Outcomes view={view} /></section>
          <section class="card"><h2>{t("dashChanges")}</h2><Changes view={view} /></section>
        </div>
      </div>
      <section class="card"><h2>{t("dashDecisions")}</h2><Decisions view={view} names={names} /></section>
    </>
  );
}

/** Said aloud when what is said changes, not with every number. */
function Headlines({ all }: { all: Headline[] }) {
  const spoken = all.filter((each) => each.tone !== "quiet").map((each) => `${each.key} ${each.who}`).join();
  return (
    <>
      <ul class="headlines" aria-label={t("dashHeadlines")}>
        {all.map((each) => <li key={`${each.key}${each.who}`} class={`headline headline-${each.tone}`} data-headline={each.key}><span class="mark" aria-hidden="true">{MARK[each.tone]}</span><span><Rich text={each.text} /></span></li>)}
      </ul>
      <p class="hidden" role="status" key={spoken}>{all.filter((each) => each.tone === "bad" || each.tone === "warn").map((each) => each.text.replaceAll(/\[\[|\]\]/g, "")).slice(0, 1)}</p>
    </>
  );
}

function Tile({ name, value, id, note }: { name: string; value: string; id: string; note?: string }) {
  return <div class="tile" data-tile={id}><dt>{name}</dt><dd>{value}{note && <small>{note}</small>}</dd></div>;
}
