import { useState } from "preact/hooks";
import type { Answer, RunView } from "../api.types";
import { coded, t } from "../i18n";
import { show } from "../numbers";
import { lang } from "../settings";
import { called } from "./called";
import { Dot } from "./colours";
import { decides } from "./deciding";
import { clientOf, compared, sentences } from "./explain";
import { Compared, Keeps } from "./Keeps";
import { Measures } from "./Measures";
import { seek } from "./player";
import { Rich } from "./Rich";
import { details, placeOf, predict, score, standing } from "./session";
import { entities, indexOf } from "./runs";
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
      {(index === 0 || run.fluid) && <Legend answer={answer} run={run} />}
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

/** Before the next choice is shown, the reader makes it. */
function Predict({ answer, run, place, names }: { answer: Answer; run: RunView; place: number; names: string[] }) {
  const [told, setTold] = useState<{ at: number; guess: string; who: string } | null>(null);
  const inEngine = answer.layer === "engine" || answer.layer === "fleet";
  const next = run.steps.findIndex((_, at) => at > place && decides(run.steps, at));
  if (next < 0) return told && told.at === place ? <Verdict {...told} /> : null;
  const step = run.steps[next]!;
  const who: string = step.kind === "place" ? step.what["placed"].engine : answer.layer === "router" || answer.layer === "ledger" ? step.what["tenant"] : inEngine ? clientOf(run, step.what["admitted"][0] ?? "") : answer.layer === "cluster" ? step.what["user"] : answer.layer === "link" ? step.what["packet"] : step.what["ran"][0];
  const before = run.steps[next - 1];
  const waiting = step.kind === "place" ? Object.keys(step.what["placed"].saw.inflight) : inEngine ? Object.keys((step.what["waiting"] ?? {}) as object) : answer.layer === "cpu" ? [...(before?.queues["ready"] ?? []), ...(before?.running ?? [])] : answer.layer === "link" ? Object.values(before?.queues ?? {}).flatMap((queue) => queue.slice(0, 1)) : [...new Set([...Object.keys(before?.queues ?? {}), ...((step.what["joined"] ?? []) as string[])])];
  const options = [...new Set([...waiting, who])].sort();
  return (
    <div class="predict">
      {told && told.at === place && <Verdict {...told} />}
      <span>{t("predictAsk")}</span>
      {options.slice(0, 8).map((id) => (
        <button
          key={id} type="button"
          onClick={() => {
            score.value = { right: score.value.right + (id === who ? 1 : 0), all: score.value.all + 1 };
            setTold({ at: next, guess: id, who });
            const where = standing.value[answer.runs.indexOf(run)]?.indexOf(next) ?? -1;
            if (where >= 0) seek(where);
          }}
        ><Dot index={indexOf(names, id)} />{id}</button>
      ))}
    </div>
  );
}

function Verdict({ guess, who }: { guess: string; who: string }) {
  return <p class={guess === who ? "verdict right" : "verdict wrong"} role="status">{guess === who ? `✓ ${t("predictRight", { who })}` : `✗ ${t("predictWrong", { who, guess })}`}</p>;
}
