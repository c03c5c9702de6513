// Beside the time line: what its signs mean, and the same as numbers.
import { useEffect, useState } from "preact/hooks";
import type { Answer, RunView } from "../api.types";
import { t, type Key } from "../i18n";
import { show } from "../numbers";
import { lang } from "../settings";
import { called } from "./called";
import { Dot } from "./colours";
import { linesOf } from "./marks";
import { entities, upTo } from "./runs";
import { startsOf, untilOf } from "./Timeline";

const MOST_ROWS = 400;

export function Legend({ answer, run }: { answer: Answer; run: RunView }) {
  const { layer } = answer;
  const bar: Key = layer === "router" ? "legendDispatch" : layer === "link" ? "legendSend" : "legendRun";
  const { states, rows, signs, marks, under } = linesOf(answer, run);
  const due = signs.some((sign) => sign.kind === "deadline" || sign.kind === "missed");
  const lost = (state: string) => layer === "cpu" && marks.some((mark) => mark.lane < 0 && mark.state === state);
  if (layer === "cluster") return <p class="legend">{t("legendOrder")}</p>;
  if (rows)
    return (
      <ul class="legend">
        {!linesOf(answer, run).coloured && entities(answer).slice(0, 6).map((client, index) => <li key={client}><Dot index={index} />{client}</li>)}
        {(["switch", "wait", "run"] as const).map((state) => states[state] && (
          <li key={state}><svg width="22" height="14" class={state === "run" ? "" : `mark ${state}`}><rect class="key-bar" x="1" y="1" width="20" height="12" /></svg>{t(states[state])}</li>
        ))}
      </ul>
    );
  return (
    <ul class="legend" aria-hidden="true">
      {!run.fluid && <li><svg width="22" height="14"><rect class="key-bar" x="1" y="1" width="20" height="12" rx="3" /></svg>{t(bar)}</li>}
      {run.fluid && <li><svg width="22" height="14"><rect class="key-bar" x="1" y="7" width="20" height="6" /></svg>{t("legendFluid")}</li>}
      {!run.fluid && <li><svg width="22" height="14"><rect class="span" x="1" y="4.5" width="20" height="5" rx="2.5" /></svg>{t("legendWait")}</li>}
      <li><svg width="14" height="14"><path class="sign" d="M7 13 v-11 m-3.5 4 l3.5 -4.5 l3.5 4.5" /></svg>{t("legendArrival")}</li>
      {due && <li><svg width="14" height="14"><path class="sign deadline" d="M7 1 v11 m-3.5 -4 l3.5 4.5 l3.5 -4.5" /></svg>{t("legendDeadline")}</li>}
      {due && <li><svg width="14" height="14"><path class="sign missed" d="M7 1 v11 m-3.5 -4 l3.5 4.5 l3.5 -4.5" /></svg>{t("legendMissed")}</li>}
      {!!under && <li><svg width="22" height="14" class="hold-bar"><rect x="1" y="1" width="20" height="12" rx="3" /><text x="7" y="7" dominant-baseline="central">R</text></svg>{t("stateHold")}</li>}
      {lost("blocked") && <li><svg width="22" height="14"><rect class="lost blocked" x="1" y="0" width="20" height="14" /></svg>{t("legendBlocked")}</li>}
      {lost("switch") && <li><svg width="22" height="14"><rect class="lost switch" x="1" y="0" width="20" height="14" /></svg>{t("stateSwitch")}</li>}
    </ul>
  );
}

/** The same as numbers, for who cannot or does not want to see it. */
export function TimelineTable({ answer, run, place }: { answer: Answer; run: RunView; place: number }) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [answer.layer]);
  return (
    <details class="table-of" open={open} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{t("timelineTable")}</summary>
      {open && <Rows answer={answer} run={run} place={place} />}
    </details>
  );
}

function Rows({ answer, run, place }: { answer: Answer; run: RunView; place: number }) {
  const lines = linesOf(answer, run);
  const until = untilOf(answer, lines, run, place);
  const count = upTo(startsOf(lines), until - 1e-12);
  const first = Math.max(0, count - MOST_ROWS);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${t("timelineTable")}: ${called(run.spec, answer.layer)}`}>
      {first > 0 && <p class="quiet">{t("tableEarlier", { n: show(first, lang.value) })}</p>}
      <table>
        <thead><tr><th scope="col">{t("tableLane")}</th><th scope="col">{t("tableStart")}</th><th scope="col">{t("tableEnd")}</th><th scope="col">{t("tableState")}</th></tr></thead>
        <tbody>
          {lines.marks.slice(first, count).map((mark, index) => (
            <tr key={first + index} aria-current={mark.end >= until ? "step" : undefined}>
              <th scope="row">{mark.title}</th><td>{show(mark.start, lang.value, 3)}</td><td>{show(Math.min(mark.end, until), lang.value, 3)}</td>
              <td>{t(lines.states[mark.state] ?? "stateIdle")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
