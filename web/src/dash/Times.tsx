import type { Ended } from "../api.types";
import { t } from "../i18n";
import { Dot } from "../lab/colours";
import { span } from "./explained";
import { place, type At } from "./stream";
import { quantile } from "./quantile";

const RANKS = [0.5, 0.95, 0.99];

/** Wait, TTFT and TPOT of the requests that ended lately. */
export function Times({ names, all }: { names: string[]; all: At<Ended>[] }) {
  const three = (values: (number | undefined)[], label: string) => {
    const sorted = values.filter((value): value is number => value !== undefined).sort((a, b) => a - b);
    return RANKS.map((q) => {
      const value = quantile(sorted, q);
      return <td key={q} data-label={`${label} p${100 * q}`}>{value === null ? "–" : span(value)}</td>;
    });
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("dashTimes")}>
      <table class="measures times">
        <thead>
          <tr><th scope="col" rowSpan={2}>{t("dashTenant")}</th><th scope="col" rowSpan={2}>{t("dashRequests")}</th>{(["dashWait", "dashTtft", "dashTpot"] as const).map((key) => <th key={key} scope="colgroup" colSpan={3}>{t(key)}</th>)}</tr>
          <tr>{[0, 1, 2].flatMap((group) => ["p50", "p95", "p99"].map((q) => <th key={`${group}${q}`} scope="col">{q}</th>))}</tr>
        </thead>
        <tbody>
          {names.map((tenant) => {
            const own = all.filter((each) => each.line.tenant === tenant).map((each) => each.line);
            return own.length > 0 && (
              <tr key={tenant}>
                <th scope="row"><Dot index={place(tenant)} />{tenant}</th><td data-label={t("dashRequests")}>{own.length}</td>
                {three(own.map((each) => each.wait ?? 0), t("dashWait"))}{three(own.map((each) => each.ttft), t("dashTtft"))}{three(own.map((each) => each.tpot), t("dashTpot"))}
              </tr>
            );
          })}
          {!all.length && <tr><td colSpan={11} class="quiet">{t("notYet")}</td></tr>}
        </tbody>
      </table>
    </div>
  );
}
