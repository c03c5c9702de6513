import type { Check, PoolView, TenantView } from "../api.types";
import { coded, list, t } from "../i18n";
import { Dot } from "../lab/colours";
import { percent, show } from "../numbers";
import { lang } from "../settings";
import { place } from "./stream";

const say = (value: number | null) => show(value, lang.value, 0);

/** Have all promises held, and how near was it? */
export function Held({ view }: { view: PoolView }) {
  const { bounds } = view;
  const pairs = bounds.checks.find((check) => check.name === "pairs");
  const all = pairs?.promised ?? true;
  return (
    <p class={bounds.held ? `held${all ? "" : " partly"}` : "held broken"}>
      <strong>{bounds.held ? `✓ ${t(all ? "dashHeld" : "dashHeldRest", { n: say(bounds.decisions), policy: view.policy })}` : `✗ ${t("dashBroken", { n: say(bounds.violations), of: say(bounds.decisions) })}`}</strong>
      {pairs?.margin !== null && pairs?.promised && <span>{t("dashMargin", { margin: say(pairs.margin), limit: say(pairs.limit) })}</span>}
    </p>
  );
}

/** How far each meter is ahead of virtual time, and the bound on it. */
export function Lag({ tenants, view }: { tenants: TenantView[]; view: PoolView }) {
  const behind = tenants.filter((tenant) => tenant.lead !== null).sort((a, b) => place(a.id) - place(b.id));
  const bounded = view.bounds.checks.find((check) => check.name === "band")?.promised ?? true;
  const most = Math.max(1e-9, view.reach, ...behind.map((tenant) => tenant.lead!)) * 1.04;
  return (
    <div class="bars lag">
      {behind.map((tenant) => (
        <div key={tenant.id} class="bar-row" data-lead={tenant.id} title={t("dashMeter", { meter: say(tenant.meter) })}>
          <span class="bar-name"><Dot index={place(tenant.id)} />{tenant.id}</span>
          <span class="bar-box">
            <span class={`bar tone-${place(tenant.id) % 6}`} style={{ width: `${(100 * Math.max(0, tenant.lead!)) / most}%` }} />
            <span class="bar-line bound" style={{ left: `${(100 * view.reach) / most}%` }} />
          </span>
          <output>{say(tenant.lead)} <small>{t("dashMeter", { meter: say(tenant.meter) })}</small></output>
        </div>
      ))}
      <p class="quiet">{behind.length ? t(bounded ? "dashLagNote" : "dashLagUnbound", { v: say(view.virtual_time), q: say(view.reach) }) : t("dashLagNone")}</p>
    </div>
  );
}

/** The bounds one by one: how often each held, and the nearest that it came to its limit. */
export function Promises({ view }: { view: PoolView }) {
  return (
    <table class="promises">
      <thead><tr><th scope="col">{t("dashPromise")}</th><th scope="col">{t("dashHeldTimes")}</th><th scope="col">{t("dashNearest")}</th></tr></thead>
      <tbody>{view.bounds.checks.map((check) => <PromiseRow key={check.name} check={check} />)}</tbody>
    </table>
  );
}

function PromiseRow({ check }: { check: Check }) {
  const { worst, limit } = check;
  const near = worst === null || limit === null ? "–" : check.promised ? t("dashOf", { worst: say(worst), limit: say(limit), part: limit ? percent(worst / limit, lang.value) : "–" }) : say(worst);
  return (
    <tr class={check.promised ? (check.violations ? "broken" : undefined) : "quiet"} data-check={check.name}>
      <th scope="row">{coded("promise", check.name.replaceAll(" ", "_"), "outcome_other")}{!check.promised && <> <small>{t("dashUnpromised")}</small></>}</th>
      <td>{check.promised ? say(check.held) : "–"}{check.promised && check.violations > 0 && <strong> ✗ {say(check.violations)}</strong>}</td>
      <td>{near}{check.name === "pairs" && check.who && <> <small>{list(check.who.split(" and "))}</small></>}</td>
    </tr>
  );
}
