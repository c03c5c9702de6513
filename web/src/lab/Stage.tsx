import { useEffect, useRef } from "preact/hooks";
import type { Answer } from "../api.types";
import { t } from "../i18n";
import { num } from "../numbers";
import { called } from "./called";
import { sentences } from "./explain";
import { linesOf } from "./marks";
import { RunCard } from "./RunCard";
import { answer, busy, fork, placeOf, playing, position, problem, quick, warning } from "./session";
import { Transport } from "./Transport";

/** The clock and the runs on it; also on the tour. */
export function Stage() {
  const found = answer.value;
  const before = fork.value?.before;
  const ends = [...(found?.runs.map((run) => linesOf(found, run).end) ?? []), ...(before?.runs.map((run) => linesOf(before, run).end) ?? [])];
  const end = Math.max(1, ...ends);
  return (
    <>
      {problem.value && <p class="alert problem" role="alert">{t("wrongInput")} {problem.value}</p>}
      {warning.value && <p class="fork" role="status">{t(warning.value.key, { name: warning.value.name })}</p>}
      {found && <Transport />}
      {fork.value && (
        <p class="fork" role="status">{t("forkAt", { time: String(num(fork.value.time)) })} <button type="button" class="plain" onClick={() => (fork.value = null)}>{t("forkEnd")}</button></p>
      )}
      <div class={`runs${quick.value ? " quick" : ""}${(found?.runs.length ?? 0) + (before?.runs.length ?? 0) > 1 ? " several" : ""}`} aria-busy={busy.value}>
        {found ? cards(found, before === found ? undefined : before, end) : <p class="quiet">{problem.value || !busy.value ? "" : t("computing")}</p>}
      </div>
      <Spoken />
    </>
  );
}

/** A card for each run; in a fork each is followed by what it was before. */
function cards(found: Answer, before: Answer | undefined, end: number) {
  return found.runs.flatMap((run, index) => {
    const own = <RunCard key={`${run.spec}${index}`} answer={found} run={run} index={index} end={end} note={before && t("forkAfter")} />;
    const was = before?.runs.find((each) => each.spec === run.spec);
    return before && was ? [own, <RunCard key={`before${run.spec}${index}`} answer={before} run={was} index={index} end={end} note={t("forkBefore")} />] : [own];
  });
}

/** What happened, for screen readers: at most once in a while, and not while it plays. */
function Spoken() {
  const box = useRef<HTMLParagraphElement>(null);
  const at = position.value;
  const still = !playing.value;
  useEffect(() => {
    if (!still) return;
    const timer = setTimeout(() => {
      const found = answer.value;
      if (!box.current || !found) return;
      box.current.textContent = found.runs.map((run, index) => `${called(run.spec, found.layer)}: ${sentences(found, run, placeOf(index)).join(" ").replace(/\[\[|\]\]/g, "")}`).join(" ");
    }, 400);
    return () => clearTimeout(timer);
  }, [at, still]);
  return <p ref={box} class="hidden" aria-live="polite" />;
}
