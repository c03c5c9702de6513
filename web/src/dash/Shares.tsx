import { useState } from "preact/hooks";
import type { PoolView, TenantView } from "../api.types";
import { t } from "../i18n";
import { Dot } from "../lab/colours";
import { percent, show } from "../numbers";
import { lang } from "../settings";
import { span } from "./explained";
import { ask, token } from "./Operate";
import { place } from "./stream";
import { explain } from "./Why";

const part = (value: number | null) => (value === null ? "–" : percent(value, lang.value));
const say = (value: number) => show(value, lang.value, 0);

/** Service share against fair share, tenant by tenant; those that need a look first. */
export function Shares({ tenants, view, hidden }: { tenants: TenantView[]; view: PoolView; hidden: number }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("dashFair")}>
        <table class="shares">
          <thead><tr><th scope="col">{t("dashTenant")}</th><th scope="col">{t("dashState")}</th><th scope="col" class="grow">{t("dashShare")}</th><th scope="col">{t("dashFairShare")}</th><th scope="col" class="by-weight">{t("dashEntitled")}</th><th scope="col">{t("dashWaiting")}</th><th scope="col">{t("dashRunning")}</th><th scope="col">{t("dashWeight")}</th>{token.value && <td />}</tr></thead>
          <tbody>{tenants.map((tenant) => <Row key={tenant.id} tenant={tenant} />)}</tbody>
        </table>
      </div>
      {view.more_tenants + hidden > 0 && <p class="quiet">{t("dashMore", { n: say(view.more_tenants + hidden) })}</p>}
      <p class="quiet">{t("dashShareNote")}</p>
    </>
  );
}

function Row({ tenant }: { tenant: TenantView }) {
  const index = place(tenant.id);
  const { standing: how } = tenant;
  return (
    <tr data-tenant={tenant.id} data-standing={how}>
      <th scope="row"><Dot index={index} />{tenant.id}</th>
      <td data-label={t("dashState")}><span class={`state state-${how}`}>{t(`standing_${how}`)}</span></td>
      <td class="grow" data-label={t("dashShare")}>
        <span class="bar-box share-box">
          <span class={`bar tone-${index % 6}`} style={{ width: `${100 * (tenant.share ?? 0)}%` }} />
          {tenant.fair !== null && <span class="bar-line" style={{ left: `${100 * tenant.fair}%` }} />}
        </span>
        <output>{part(tenant.share)}</output>
      </td>
      <td data-label={t("dashFairShare")}>{part(tenant.fair)}</td>
      <td data-label={t("dashEntitled")} class="entitled">{part(tenant.entitled)}</td>
      <td data-label={t("dashWaiting")}>{say(tenant.waiting)}{tenant.oldest !== null && <button type="button" class="plain small" title={t("dashOldestOf", { id: tenant.oldest_id })} onClick={() => void explain(tenant.oldest_id)}>{span(tenant.oldest * 1e9)}</button>}</td>
      <td data-label={t("dashRunning")}>{say(tenant.inflight)}{tenant.max_inflight !== null && ` / ${say(tenant.max_inflight)}`}</td>
      <td data-label={t("dashWeight")}><Weight tenant={tenant} /></td>
      {token.value && (
        <td>
          {tenant.weight !== null && (
            <button type="button" class="plain small" onClick={() => ask(t(tenant.paused ? "dashConfirmResume" : "dashConfirmPause", { name: tenant.id }), `/api/tenants/${encodeURIComponent(tenant.id)}`, { paused: !tenant.paused })}>{t(tenant.paused ? "dashResume" : "dashPause")}</button>
          )}
        </td>
      )}
    </tr>
  );
}

function Weight({ tenant }: { tenant: TenantView }) {
  const [draft, setDraft] = useState<string | null>(null);
  if (!token.value || tenant.weight === null) return <>{tenant.weight ?? "–"}</>;
  const submit = (event: Event) => {
    event.preventDefault();
    if (draft !== null) ask(t("dashConfirmWeight", { name: tenant.id, weight: draft }), `/api/tenants/${encodeURIComponent(tenant.id)}`, { weight: draft });
    setDraft(null);
  };
  return (
    <form class="weight" onSubmit={submit}>
      <input type="text" size={4} value={draft ?? tenant.weight} aria-label={t("fieldOf", { field: t("dashWeight"), name: tenant.id })} onInput={(event) => setDraft(event.currentTarget.value)} />
      {draft !== null && draft !== tenant.weight && <button type="submit" class="small">{t("dashChange")}</button>}
    </form>
  );
}
