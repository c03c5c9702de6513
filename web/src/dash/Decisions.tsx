import { useRef, useState } from "preact/hooks";
import type { PoolView } from "../api.types";
import { t } from "../i18n";
import { Dot } from "../lab/colours";
import { Rich } from "../lab/Rich";
import { show } from "../numbers";
import { lang } from "../settings";
import { reason } from "./explained";
import { decisions, place, type Decision } from "./stream";
import { RequestLink } from "./Why";

const SHOWN = 12;

/** The last decisions. While a pointer or the focus is on them they stand still. */
export function Decisions({ view, names }: { view: PoolView; names: string[] }) {
  const [only, setOnly] = useState("");
  const [still, setStill] = useState(false);
  const held = useRef<Decision[]>([]);
  const own = decisions.value.filter((each) => each.pool === view.name);
  if (!still) held.current = own.filter((each) => !only || each.line.tenant === only).slice(-SHOWN).reverse();
  return (
    <>
      <p class="decisions-lead">
        <a class="button" href={`/lab/ledger?pool=${encodeURIComponent(view.name)}&last=30&lang=${lang.value}`}>{t("dashToLab")}</a>
        <label>{t("dashOnly")} <select value={only} onChange={(event) => { setOnly(event.currentTarget.value); setStill(false); }}><option value="">{t("dashAll")}</option>{names.map((name) => <option key={name} value={name}>{name}</option>)}</select></label>
        <span role="status" class="quiet">{still ? t("dashStill") : ""}</span>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("dashDecisions")} onMouseEnter={() => setStill(true)} onMouseLeave={() => setStill(false)} onFocusCapture={() => setStill(true)} onBlurCapture={() => setStill(false)}>
        <table class="decisions">
          <thead><tr><th scope="col">{t("dashWhen")}</th><th scope="col">{t("dashRequest")}</th><th scope="col">{t("dashTenant")}</th><th scope="col">{t("dashCharge")}</th><th scope="col" class="grow">{t("dashWhy")}</th><th scope="col">{t("dashUpstream")}</th></tr></thead>
          <tbody>
            {held.current.map(({ line, wall }) => (
              <tr key={`${line.id}${line.time}`}>
                <td data-label={t("dashWhen")}>{new Date(wall * 1000).toLocaleTimeString(lang.value)}</td>
                <td data-label={t("dashRequest")}><RequestLink id={line.id} /></td>
                <th scope="row"><Dot index={place(line.tenant)} />{line.tenant}</th>
                <td data-label={t("dashCharge")}>{show(line.charge, lang.value)}</td>
                <td class="grow" data-label={t("dashWhy")}><Rich text={reason(line.why)} /></td>
                <td data-label={t("dashUpstream")}>{line.upstream}</td>
              </tr>
            ))}
            {!held.current.length && <tr><td colSpan={6} class="quiet">{t("dashDecisionsNone")}</td></tr>}
          </tbody>
        </table>
      </div>
    </>
  );
}
