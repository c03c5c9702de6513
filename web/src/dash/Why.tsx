import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { Explained, Explanation, Failure } from "../api.types";
import { t } from "../i18n";
import { Dot } from "../lab/colours";
import { Rich } from "../lab/Rich";
import { show } from "../numbers";
import { lang } from "../settings";
import { answer, details, parts, span, step } from "./explained";
import { ended, place } from "./stream";

const LONGEST = 5;
const SHORTEST = 1e6; // ns that are worth a question

const shown = signal<{ id: string; found: Explanation | null; problem: string } | null>(null);

/** Ask for the explanation of a request, and show it. */
export async function explain(id: string): Promise<void> {
  try {
    const answered = await fetch(`/api/explain/${encodeURIComponent(id)}`);
    const body: unknown = await answered.json();
    if (!answered.ok) throw new Error((body as Failure).error.message);
    shown.value = { id, found: (body as Explained).explanation, problem: "" };
  } catch (error) {
    shown.value = { id, found: null, problem: (error as Error).message };
  }
  requestAnimationFrame(() => document.getElementById("why")?.scrollIntoView({ block: "nearest" }));
}

export function RequestLink({ id }: { id: string }) {
  return <button type="button" class="plain small request" title={t("dashExplain", { id })} onClick={() => void explain(id)}>{id}</button>;
}

export function WhyCard({ pool }: { pool: string }) {
  const [id, setId] = useState("");
  const longest = ended.value.filter((each) => each.pool === pool && (each.line.wait ?? 0) >= SHORTEST).sort((a, b) => b.line.wait! - a.line.wait!).slice(0, LONGEST);
  const now = shown.value;
  return (
    <section class="card" id="why">
      <h2>{t("dashWhyTitle")}</h2>
      <form class="ask" onSubmit={(event) => { event.preventDefault(); if (id.trim()) void explain(id.trim()); }}>
        <label>{t("dashWhyId")} <input type="text" spellcheck={false} value={id} onInput={(event) => setId(event.currentTarget.value)} /></label>
        <button type="submit">{t("dashWhyAsk")}</button>
      </form>
      {now && <div role="status">{now.found ? <Told found={now.found} /> : <p class="alert">{t("dashExplainFailed", { why: now.problem })}</p>}</div>}
      <div>
        <h3>{t("dashLongest")}</h3>
        <ol class="longest">
          {longest.map(({ line }) => <li key={line.id}><RequestLink id={line.id} /><span class="who-name"><Dot index={place(line.tenant)} />{line.tenant}</span><output>{span(line.wait!)}</output></li>)}
          {!longest.length && <li class="quiet">{t("dashLongestNone")}</li>}
        </ol>
      </div>
    </section>
  );
}

function Told({ found }: { found: Explanation }) {
  const all = parts(found);
  const total = all.reduce((sum, part) => sum + part.ns, 0);
  const most = Math.max(1, ...found.served.map((each) => each.charge));
  const number = (value: number) => show(value, lang.value, 0);
  return (
    <div class="explained" data-request={found.id}>
      <h3><Dot index={place(found.tenant)} />{t("dashExplained", { id: found.id, tenant: found.tenant })} <button type="button" class="plain small" onClick={() => (shown.value = null)}>{t("dashClose")}</button></h3>
      <p class="answer"><Rich text={answer(found)} /></p>
      {total > 0 && (
        <>
          <div class="life" aria-hidden="true">{all.map((part, index) => <span key={part.kind} class={`life-part life-${part.waits ? "wait" : "serve"} life-${index % 4}`} style={{ width: `${(100 * part.ns) / total}%` }} />)}</div>
          <ul class="life-key">{all.map((part, index) => <li key={part.kind}><span class={`life-dot life-${part.waits ? "wait" : "serve"} life-${index % 4}`} aria-hidden="true" /><output>{span(part.ns)}</output> {part.text}</li>)}</ul>
        </>
      )}
      {found.served.length > 0 && (
        <>
          <h4>{t("explained_meanwhile")}</h4>
          <div class="bars meanwhile">
            {found.served.slice(0, 8).map((each) => (
              <div key={each.tenant} class="bar-row">
                <span class="bar-name"><Dot index={place(each.tenant)} />{each.tenant}</span>
                <span class="bar-box"><span class={`bar tone-${place(each.tenant) % 6}`} style={{ width: `${(100 * each.charge) / most}%` }} /></span>
                <output>{t("explained_served", { n: number(each.requests), charge: number(each.charge) })}</output>
              </div>
            ))}
          </div>
        </>
      )}
      <ul class="facts">{details(found).map((line, index) => <li key={index}><Rich text={line} /></li>)}{found.notes.map((note) => <li key={note} lang="en">{note}</li>)}</ul>
      {found.steps.length > 0 && (
        <details>
          <summary>{t("explained_steps", { n: number(found.steps.length + found.left_out) })}</summary>
          <div class="scroll" tabIndex={0} role="region" aria-label={t("dashDecisions")}>
            <table class="decisions">
              <thead><tr><th scope="col">{t("explained_after")}</th><th scope="col">{t("dashRequest")}</th><th scope="col">{t("dashTenant")}</th><th scope="col">{t("dashCharge")}</th><th scope="col">{t("dashWhy")}</th><th scope="col">{t("explained_ahead", { tenant: found.tenant })}</th></tr></thead>
              <tbody>
                {found.steps.map((one, index) => {
                  const told = step(found, one);
                  const gap = found.left_out > 0 && index === Math.ceil(found.steps.length / 2);
                  return [
                    gap && <tr key="gap"><td colSpan={6} class="quiet">{t("explained_left_out", { n: number(found.left_out) })}</td></tr>,
                    <tr key={one.seq}><td>{told.after}</td><td>{one.id}</td><th scope="row"><Dot index={place(one.tenant)} />{one.tenant}</th><td>{number(one.charge)}</td><td><Rich text={told.why} /></td><td>{told.lead}</td></tr>,
                  ];
                })}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </div>
  );
}
