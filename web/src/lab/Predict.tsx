// Before the next choice is shown, the reader makes it.
import { useState } from "preact/hooks";
import type { Answer, RunView } from "../api.types";
import { t } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";
import { Dot } from "./colours";
import { decides } from "./deciding";
import { clientOf } from "./explain";
import { seek } from "./player";
import { indexOf } from "./runs";
import { score, standing } from "./session";

const MOST = 8; // buttons

export function Predict({ answer, run, place, names }: { answer: Answer; run: RunView; place: number; names: string[] }) {
  const [told, setTold] = useState<{ at: number; guess: string; who: string } | null>(null);
  const question = next(answer, run, place);
  const verdict = told && told.at === place && <Verdict {...told} />;
  if (!question) return verdict || null;
  const { at, when, who, options } = question;
  return (
    <div class="predict">
      {verdict}
      <span>{t("predictAsk", { time: show(when, lang.value, 3) })}</span>
      {options.slice(0, MOST).map((id) => (
        <button
          key={id} type="button"
          onClick={() => {
            score.value = { right: score.value.right + (id === who ? 1 : 0), all: score.value.all + 1 };
            setTold({ at, guess: id, who });
            const where = standing.value[answer.runs.indexOf(run)]?.indexOf(at) ?? -1;
            if (where >= 0) seek(where);
          }}
        ><Dot index={indexOf(names, id)} />{id}</button>
      ))}
    </div>
  );
}

interface Question {
  at: number; // the step of the choice
  when: number; // its time
  who: string; // that is chosen
  options: string[];
}

/** The next choice that is one: between two or more. */
function next(answer: Answer, run: RunView, place: number): Question | null {
  for (let at = place + 1; at < run.steps.length; at++) {
    if (!decides(run.steps, at)) continue;
    const who = chosen(answer, run, at);
    const options = [...new Set([...waiting(answer, run, at), who])].sort();
    const time = num(run.steps[at]!.time);
    if (options.length > 1) return { at, who, options, when: answer.layer === "cpu" ? time - 1 : time };
  }
  return null;
}

function chosen(answer: Answer, run: RunView, at: number): string {
  const { kind, what } = run.steps[at]!;
  if (kind === "place") return what["placed"].engine;
  switch (answer.layer) {
    case "router":
    case "ledger":
      return what["tenant"];
    case "engine":
    case "fleet":
      return clientOf(run, what["admitted"][0] ?? "");
    case "cluster":
      return what["user"];
    case "link":
      return what["packet"];
    default:
      return what["ran"][0];
  }
}

function waiting(answer: Answer, run: RunView, at: number): string[] {
  const { kind, what } = run.steps[at]!;
  const before = run.steps[at - 1];
  const queues = before?.queues ?? {};
  if (kind === "place") return Object.keys(what["placed"].saw.inflight);
  switch (answer.layer) {
    case "engine":
    case "fleet":
      return Object.keys((what["waiting"] ?? {}) as object);
    case "cpu":
      return [...(queues["ready"] ?? []), ...(before?.running ?? [])];
    case "link":
      return Object.values(queues).flatMap((queue) => queue.slice(0, 1));
    default:
      return [...Object.keys(queues), ...((what["joined"] ?? []) as string[])];
  }
}

function Verdict({ guess, who }: { guess: string; who: string }) {
  return <p class={guess === who ? "verdict right" : "verdict wrong"} role="status">{guess === who ? `✓ ${t("predictRight", { who })}` : `✗ ${t("predictWrong", { who, guess })}`}</p>;
}
