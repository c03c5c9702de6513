import { useState } from "preact/hooks";
import type { Answer, RunView } from "../api.types";
import { coded, t } from "../i18n";
import { show } from "../numbers";
import { lang } from "../settings";
import { called } from "./called";
import { compared } from "./compared";
import { sentences } from "./explain";
import { Compared, Keeps } from "./Keeps";
import { Measures } from "./Measures";
import { Predict } from "./Predict";
import { Rich } from "./Rich";
import { details, placeOf, predict } from "./session";
import { entities } from "./runs";
import { Source } from "./Source";
import { Legend, TimelineTable } from "./Legend";
import { Timeline } from "./Timeline";
import { Work } from "./Work";

export function RunCard({ answer, run, index, end, note }: { answer: Answer; run: RunView; index: number; end: number; note?: string }) {
  const [source, setSource] = useState(false);
  const place = placeOf(index);
  const names = entities(answer);
  const found = compared(answer, run, place);
  return (
    <article class="run" aria-label={called(run.spec, answer.layer)} data-policy={run.spec}>
      <header>
        <h3 title={run.spec}>{called(run.spec, answer.layer)}{note && <span class="note">{note}</span>}</h3>
        <p>{coded("policy", run.policy, "policy_other")}</p>
        {answer.layer === "ledger" && <p class="quiet">{t("recordedAt", { time: new Date(run.result["began"]).toLocaleString(lang.value) })}{run.result["left_out"] > 0 && ` ${t("recordedLeftOut", { n: show(run.result["left_out"], lang.value) })}`} {(run.result["notes"] as string[]).join("; ")}</p>}
        <button type="button" class="plain" aria-expanded={source} onClick={() => setSource(!source)}>{source ? t("sourceHide") : t("source")}</button>
      </header>
      <Timeline answer={answer} run={run} place={place} end={end} />
      {(index < 2 || run.fluid) && <Legend answer={answer} run={run} />}
      <div class="said" role="group" aria-label={t("explanation")}>
        <p>{sentences(answer, run, place).filter(Boolean).map((text, nth) => <span key={nth}><Rich text={text} /> </span>)}</p>
        {found && <Compared what={found.what} of={found.of} names={names} />}
        {predict.value && <Predict answer={answer} run={run} place={place} names={names} />}
      </div>
      {details.value && <div class={`panels of-${answer.layer}`}>
        <div class="panel"><Work answer={answer} run={run} place={place} /></div>
        <div class="panel"><h4 class="panel-title">{t("keeps")}</h4><Keeps answer={answer} run={run} place={place} /></div>
        <div class="panel"><Measures answer={answer} run={run} place={place} /></div>
      </div>}
      {source && <Source run={run} place={place} />}
      {details.value && <TimelineTable answer={answer} run={run} place={place} />}
    </article>
  );
}
