import { useEffect, useState } from "preact/hooks";
import type { Explained, Failure, PoolView, TenantView } from "../api.types";
import { coded, t, type Key } from "../i18n";
import { pack } from "../lab/address";
import { Dot } from "../lab/colours";
import { Rich } from "../lab/Rich";
import { num, percent, show } from "../numbers";
import { go } from "../route";
import { lang } from "../settings";
import { ask, Confirm, Token, token } from "./Operate";
import { Series } from "./Series";
import { decisions, ended, limits, listen, points, pool, selected, state } from "./stream";
import { asScenario, quantile, verdict, waitedPart } from "./window";

const SHOWN = 20;
const RECENT = 20; // points, two a second
const STATES: Record<ReturnType<typeof verdict>, Key> = { paused: "dashPausedState", under: "dashUnder", flood: "dashFlood", over: "dashOver", fair: "dashFairly", served: "dashServed", idle: "dashIdle" };

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
          <select value={shown?.name} aria-label={t("dashPolicy")} onChange={(event) => (selected.value = event.currentTarget.value)}>{now.pools.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}</select>
        )}
        {shown && <p class="quiet">{shown.name}: {shown.policy}, {shown.settlement}</p>}
        <Token />
      </header>
      {now && !now.connected && <p class="alert problem" role="alert">{t("dashLost", { why: now.complaint })}</p>}
      {!now ? <p class="quiet">{t("loading")}</p> : shown ? <Pool view={shown} /> : <p class="quiet">{t("dashNoPool")}</p>}
      <Confirm />
      <p class="caution">{t("dashNotPromised")}</p>
    </div>
  );
}

function Pool({ view }: { view: PoolView }) {
  const tenants = view.tenants.slice(0, SHOWN);
  const names = [...tenants].map((tenant) => tenant.id).sort();
  const window_ = ended.value.filter((each) => each.pool === view.name);
  const first = Math.min(...window_.map((each) => each.wall));
  const seconds = Math.max(1, (state.value?.time ?? 0) - (Number.isFinite(first) ? first : 0));
  const tokens = window_.reduce((sum, each) => sum + each.tokens, 0) / Math.min(60, seconds);
  const oldest = Math.max(0, ...tenants.map((tenant) => tenant.oldest ?? 0));
  const { bounds } = view;
  return (
    <>
      <p class={bounds.held ? "held" : "held broken"} role="status">
        <strong>{bounds.held ? `✓ ${t("dashHeld", { n: say(bounds.decisions) })}` : `✗ ${t("dashBroken", { n: say(bounds.violations), of: say(bounds.decisions) })}`}</strong>
        {bounds.worst_margin !== null && <span>{t("dashMargin", { margin: say(bounds.worst_margin) })}</span>}
      </p>
      <dl class="tiles">
        <Tile name={t("dashWaiting")} value={say(view.waiting)} id="waiting" />
        <Tile name={t("dashOldest")} value={t("dashSeconds", { n: say(oldest) })} id="oldest" />
        <Tile name={t("dashInflight")} value={`${say(view.inflight)} / ${say(view.slots)}`} id="inflight" />
        <Tile name={t("dashTokens")} value={say(tokens, 0)} id="tokens" />
        <Tile name={t("dashJain")} value={say(view.fairness.jain_charged, 3)} id="jain" />
      </dl>
      <div class="dash-grid">
        <section class="card wide2">
          <h2>{t("dashFair")}</h2>
          <Shares tenants={tenants} names={names} view={view} />
          <p class="quiet">{t("dashShareNote")}</p>
        </section>
        <section class="card"><h2>{t("dashLag")}</h2><Lag tenants={tenants} names={names} view={view} /></section>
        <section class="card wide2 both">
          <h2>{t("dashSeries")}</h2>
          <div class="two">
            <Series title={t("dashSeriesShare")} names={names} read={(point) => point.share} most={1} />
            <Series title={t("dashSeriesWaiting")} names={names} read={(point) => point.waiting} />
          </div>
          <p class="legend-row">{names.slice(0, 6).map((name, index) => <span key={name}><Dot index={index} />{name}</span>)}</p>
          <p class="hidden">{points.value.length}</p>
        </section>
        <section class="card"><h2>{t("dashUpstreams")}</h2><Upstreams view={view} /></section>
        <section class="card wide2"><h2>{t("dashTimes")}</h2><Times names={names} pool={view.name} /></section>
        <section class="card"><h2>{t("dashOutcomes")}</h2><Outcomes view={view} /></section>
        <section class="card wide3"><h2>{t("dashDecisions")}</h2><Decisions view={view} names={names} /></section>
      </div>
    </>
  );
}

const TAG = 2 ** 20; // the gateway's tags are fixed-point numbers, counted in 2^-20 of a cost unit

function reason(why: { code: string; values: Record<string, number | string> }): string {
  const { meter, virtual_time: v } = why.values;
  if (why.code === "least-meter" && meter !== undefined && v !== undefined) return t("dashWhyMeter", { ahead: say((num(meter) - num(v)) / TAG, 0) });
  return coded("why", why.code, "why_other", Object.fromEntries(Object.entries(why.values).map(([key, value]) => [key, say(value, 0)])));
}

function Tile({ name, value, id }: { name: string; value: string; id: string }) {
  return <div class="tile" data-tile={id}><dt>{name}</dt><dd>{value}</dd></div>;
}

function Shares({ tenants, names, view }: { tenants: TenantView[]; names: string[]; view: PoolView }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("dashFair")}>
      <table class="shares">
        <thead><tr><th scope="col">{t("dashTenant")}</th><th scope="col">{t("dashState")}</th><th scope="col" class="grow">{t("dashShare")}</th><th scope="col">{t("dashEntitled")}</th><th scope="col">{t("dashWaiting")}</th><th scope="col">{t("dashRunning")}</th><th scope="col">{t("dashWeight")}</th><td /></tr></thead>
        <tbody>
          {tenants.map((tenant) => {
            const index = names.indexOf(tenant.id);
            const how = verdict(tenant, view.waiting, waitedPart(points.value.slice(-RECENT), tenant.id));
            return (
              <tr key={tenant.id} data-tenant={tenant.id} data-verdict={how}>
                <th scope="row"><Dot index={index} />{tenant.id}</th>
                <td><span class={`state state-${how}`}>{t(STATES[how])}</span></td>
                <td class="grow">
                  <span class="bar-box share-box">
                    <span class={`bar tone-${index % 6}`} style={{ width: `${100 * (tenant.share ?? 0)}%` }} />
                    {tenant.entitled !== null && <span class="bar-line" style={{ left: `${100 * tenant.entitled}%` }} />}
                  </span>
                  <output>{tenant.share === null ? "–" : percent(tenant.share, lang.value)}</output>
                </td>
                <td>{tenant.entitled === null ? "–" : percent(tenant.entitled, lang.value)}</td>
                <td>{say(tenant.waiting)}</td><td>{say(tenant.inflight)}</td><td><Weight tenant={tenant} /></td>
                <td>
                  {token.value && tenant.weight !== null && (
                    <button type="button" class="plain small" onClick={() => ask(t(tenant.paused ? "dashConfirmResume" : "dashConfirmPause", { name: tenant.id }), `/api/tenants/${encodeURIComponent(tenant.id)}`, { paused: !tenant.paused })}>{t(tenant.paused ? "dashResume" : "dashPause")}</button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {view.more_tenants + Math.max(0, view.tenants.length - SHOWN) > 0 && <p class="quiet">{t("dashMore", { n: view.more_tenants + Math.max(0, view.tenants.length - SHOWN) })}</p>}
    </div>
  );
}

function Weight({ tenant }: { tenant: TenantView }) {
  const [draft, setDraft] = useState<string | null>(null);
  if (!token.value || tenant.weight === null) return <>{tenant.weight ?? "–"}</>;
  const value = draft ?? tenant.weight;
  return (
    <form class="weight" onSubmit={(event) => { event.preventDefault(); if (draft !== null) ask(t("dashConfirmWeight", { name: tenant.id, weight: draft }), `/api/tenants/${encodeURIComponent(tenant.id)}`, { weight: draft }); setDraft(null); }}>
      <input type="text" size={4} value={value} aria-label={t("fieldOf", { field: t("dashWeight"), name: tenant.id })} onInput={(event) => setDraft(event.currentTarget.value)} />
      {draft !== null && draft !== tenant.weight && <button type="submit" class="small">{t("dashChange")}</button>}
    </form>
  );
}

function Lag({ tenants, names, view }: { tenants: TenantView[]; names: string[]; view: PoolView }) {
  const behind = tenants.filter((tenant) => tenant.lead !== null);
  const q = limits.value[view.name] ?? NaN;
  const most = Math.max(1e-9, Number.isFinite(q) ? q : 0, ...behind.map((tenant) => tenant.lead!)) * 1.05;
  return (
    <div class="bars lag">
      {behind.map((tenant) => (
        <div key={tenant.id} class="bar-row" data-lead={tenant.id}>
          <span class="bar-name"><Dot index={names.indexOf(tenant.id)} />{tenant.id}</span>
          <span class="bar-box">
            <span class={`bar tone-${names.indexOf(tenant.id) % 6}`} style={{ width: `${(100 * Math.max(0, tenant.lead!)) / most}%` }} />
            {Number.isFinite(q) && <span class="bar-line bound" style={{ left: `${(100 * q) / most}%` }} />}
          </span>
          <output>{say(tenant.lead, 0)}</output>
        </div>
      ))}
      <p class="quiet">{behind.length ? t("dashLagNote", { v: say(view.virtual_time, 0), q: Number.isFinite(q) ? say(q, 0) : "–" }) : t("dashLagNone")}</p>
    </div>
  );
}

function Upstreams({ view }: { view: PoolView }) {
  return (
    <table class="measures">
      <thead><tr><th scope="col">{t("dashUpstream")}</th><th scope="col">{t("dashInflight")}</th><th scope="col">{t("dashState")}</th><th scope="col">{t("dashQueue")}</th>{token.value && <td />}</tr></thead>
      <tbody>
        {view.upstreams.map((each) => (
          <tr key={each.name} data-upstream={each.name}>
            <th scope="row" class="wrap">{each.name}</th><td>{each.inflight} / {each.slots}</td>
            <td><span class={`state state-${each.draining ? "paused" : each.healthy ? "fair" : "under"}`}>{t(each.draining ? "dashDraining" : each.healthy ? "dashHealthy" : "dashDown")}</span></td>
            <td>{each.queue === null ? "–" : say(each.queue)}</td>
            {token.value && <td><button type="button" class="plain small" onClick={() => ask(t(each.draining ? "dashConfirmUndrain" : "dashConfirmDrain", { name: each.name }), `/api/upstreams/${each.pool}/${each.name}`, { draining: !each.draining })}>{t(each.draining ? "dashUndrain" : "dashDrain")}</button></td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Times({ names, pool: name }: { names: string[]; pool: string }) {
  const all = ended.value.filter((each) => each.pool === name);
  const ms = (value: number | null) => (value === null ? "–" : value >= 1e10 ? t("dashSeconds", { n: say(value / 1e9) }) : t("dashMs", { n: say(value / 1e6, value < 1e7 ? 1 : 0) }));
  const three = (values: number[]) => {
    const sorted = values.sort((a, b) => a - b);
    return [0.5, 0.95, 0.99].map((q) => <td key={q}>{ms(quantile(sorted, q))}</td>);
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("dashTimes")}>
      <table class="measures times">
        <thead>
          <tr><th scope="col" rowSpan={2}>{t("dashTenant")}</th><th scope="col" rowSpan={2}>{t("dashRequests")}</th>{(["dashWait", "dashTtft", "dashTpot"] as const).map((key) => <th key={key} scope="colgroup" colSpan={3}>{t(key)}</th>)}</tr>
          <tr>{[0, 1, 2].flatMap((group) => ["p50", "p95", "p99"].map((q) => <th key={`${group}${q}`} scope="col">{q}</th>))}</tr>
        </thead>
        <tbody>
          {names.map((tenant, index) => {
            const own = all.filter((each) => each.tenant === tenant);
            return <tr key={tenant}><th scope="row"><Dot index={index} />{tenant}</th><td>{own.length}</td>{three(own.map((each) => each.wait))}{three(own.filter((each) => each.ttft).map((each) => each.ttft))}{three(own.filter((each) => each.tpot).map((each) => each.tpot))}</tr>;
          })}
        </tbody>
      </table>
    </div>
  );
}

function Outcomes({ view }: { view: PoolView }) {
  const all = Object.entries(view.outcomes);
  const most = Math.max(1, ...all.map(([, count]) => count));
  return (
    <div class="bars outcomes">
      {all.map(([name, count]) => (
        <div key={name} class="bar-row"><span class="bar-name">{name}</span><span class="bar-box"><span class="bar neutral" style={{ width: `${(100 * count) / most}%` }} /></span><output>{say(count)}</output></div>
      ))}
      {!all.length && <p class="quiet">{t("notYet")}</p>}
    </div>
  );
}

function Decisions({ view, names }: { view: PoolView; names: string[] }) {
  const [found, setFound] = useState<{ id: string; words: string[] } | null>(null);
  const [told, setTold] = useState("");
  const own = decisions.value.filter((each) => each.pool === view.name);
  const shown = own.slice(-12).reverse();
  const explain = async (id: string) => {
    try {
      const answer = await fetch(`/api/explain/${encodeURIComponent(id)}`);
      const body: unknown = await answer.json();
      if (!answer.ok) throw new Error((body as Failure).error.message);
      setFound({ id, words: (body as Explained).words });
    } catch (error) {
      setFound({ id, words: [t("dashExplainFailed", { why: (error as Error).message })] });
    }
  };
  const toLab = () => {
    const least = Math.max(...own.map((each) => each.wall)) - 30;
    const recent = own.filter((each) => each.wall >= least).slice(-120);
    if (!recent.length) return setTold(t("dashToLabNone"));
    const weights = Object.fromEntries(view.tenants.map((tenant) => [tenant.id, tenant.weight ?? "1"]));
    go(`/lab/router?x=${pack(asScenario(recent, weights))}&p=sfq~request-rr~fcfs&lang=${lang.value}`);
  };
  return (
    <>
      <p><button type="button" onClick={toLab}>{t("dashToLab")}</button> <span role="status" class="quiet">{told}</span></p>
      {found && (
        <section class="explained" aria-label={t("dashExplained", { id: found.id })}>
          <h3>{t("dashExplained", { id: found.id })} <button type="button" class="plain small" onClick={() => setFound(null)}>{t("dashClose")}</button></h3>
          <ul lang="en">{found.words.map((line, index) => <li key={index}>{line.trim()}</li>)}</ul>
        </section>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label={t("dashDecisions")}>
        <table class="decisions">
          <thead><tr><th scope="col">{t("dashWhen")}</th><th scope="col">{t("dashTenant")}</th><th scope="col">{t("dashCharge")}</th><th scope="col" class="grow">{t("dashWhy")}</th><th scope="col">{t("dashUpstream")}</th></tr></thead>
          <tbody>
            {shown.map((each) => (
              <tr key={`${each.id}${each.time}`}>
                <td><button type="button" class="plain small" title={t("dashExplain", { id: each.id })} onClick={() => void explain(each.id)}>{new Date(each.wall * 1000).toLocaleTimeString(lang.value)}</button></td>
                <th scope="row"><Dot index={names.indexOf(each.tenant)} />{each.tenant}</th><td>{say(each.charge)}</td>
                <td class="grow"><Rich text={reason(each.why)} /></td>
                <td>{each.upstream}</td>
              </tr>
            ))}
            {!shown.length && <tr><td colSpan={5} class="quiet">{t("dashDecisionsNone")}</td></tr>}
          </tbody>
        </table>
      </div>
    </>
  );
}
