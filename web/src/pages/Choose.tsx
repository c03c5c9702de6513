import { t, type Key } from "../i18n";

const ROWS: [number, [string, string][]][] = [
  [1, [["SJF", "/lab/cpu?p=fcfs~sjf"], ["SRTF", "/lab/cpu?s=cpu/srtf-starvation"]]],
  [2, [["RR", "/lab/cpu?p=fcfs~rr:quantum=1~rr:quantum=3"], ["MLFQ", "/lab/cpu?s=cpu/mlfq-learns"]]],
  [3, [["EDF", "/lab/periodic"], ["RM", "/lab/periodic?p=rm"]]],
  [4, [["Stride", "/lab/cpu?s=cpu/lottery-against-stride"], ["CFS", "/lab/cpu?s=cpu/waking-sleeper"], ["EEVDF", "/lab/cpu?s=cpu/eevdf-short-request"]]],
  [5, [["DRR", "/lab/link?s=link/drr-small-quantum"]]],
  [6, [["DRF", "/lab/cluster"]]],
  [7, [["", "/lab/router"]]],
  [8, [["VTC", "/lab/engine"]]],
  [9, [["DLPM", "/lab/engine?s=engine/locality"], ["D²LPM", "/lab/fleet"]]],
  [10, [["", "/lab/engine?p=vtc~equinox"]]],
];

export function ChoosePage() {
  return (
    <div class="page">
      <header class="lead"><h1>{t("chooseTitle")}</h1><p>{t("chooseLead")}</p></header>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("chooseTitle")}>
        <table class="wide-table cards">
          <thead><tr><th scope="col">{t("chooseSituation")}</th><th scope="col">{t("chooseFirst")}</th><th scope="col">{t("chooseWhy")}</th></tr></thead>
          <tbody>
            {ROWS.map(([row, first]) => (
              <tr key={row}>
                <th scope="row">{t(`choose${row}` as Key)}</th>
                <td>{first.map(([name, to], index) => <span key={to}>{index ? " / " : ""}<a href={to}>{name || t(`choose${row}first` as Key)}</a></span>)}</td>
                <td>{t(`choose${row}why` as Key)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>{t("layersTitle")}</h2>
      <p class="quiet">{t("layersText")}</p>
      <ol class="layers">
        {[1, 2, 3, 4].map((layer) => <li key={layer} class={layer === 2 ? "own" : ""}><strong>{t(`layer${layer}` as Key)}</strong><span>{t(`layer${layer}text` as Key)}</span></li>)}
      </ol>
    </div>
  );
}
