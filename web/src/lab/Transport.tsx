import { t } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";
import { nextDecision, seek, SPEEDS, step, toggle } from "./player";
import { Files } from "./Files";
import { linesOf } from "./marks";
import { details, done, embedded, fork, answer, last, now, placeOf, playing, position, predict, score, speed, zoom } from "./session";

const ZOOMS = [1, 4, 16];
const CROWDED = 80; // marks

export function Transport() {
  const found = answer.value;
  const wide = zoom.value > 1 || (found?.runs.some((run) => linesOf(found, run).marks.length > CROWDED) ?? false);
  const at = Math.min(position.value, last.value);
  const values = { at: at + 1, of: last.value + 1, time: show(now.value, lang.value) };
  return (
    <section class="transport" aria-label={t("transport")}>
      <div class="buttons">
        <button type="button" onClick={() => step(-1)} disabled={at === 0} aria-label={t("back")} title={t("back")}><Icon d="M15 5 8 12l7 7M6 5v14" /></button>
        <button type="button" class="main" onClick={toggle} aria-label={playing.value ? t("pause") : t("play")} title={playing.value ? t("pause") : t("play")}>
          {playing.value ? <Icon d="M8 5v14M16 5v14" /> : <Icon d="M7 4.5v15l12-7.5z" filled />}
        </button>
        <button type="button" onClick={() => step(1)} disabled={done.value} aria-label={t("forward")} title={t("forward")}><Icon d="M9 5l7 7-7 7M18 5v14" /></button>
        <button type="button" class="wide" onClick={nextDecision} disabled={done.value} title={t("toDecision")}>{t("toDecision")} <kbd>N</kbd></button>
      </div>
      <label class="scrub">
        <span class="hidden">{t("scrub")}</span>
        <input type="range" min={0} max={last.value} step={1} value={at} aria-valuetext={t("stepText", values)} onInput={(event) => { playing.value = false; seek(Number(event.currentTarget.value)); }} />
      </label>
      <output class="counter" data-counter>{t("stepOf", values)}</output>
      <output class="time">t = {values.time}{inSlot() && ` → ${show(num(now.value) + 1, lang.value)}`}</output>
      {wide && (
        <label class="speed">
          <span class="hidden">{t("zoom")}</span>
          <select value={zoom.value} title={t("zoom")} onChange={(event) => (zoom.value = Number(event.currentTarget.value))}>
            {ZOOMS.map((n) => <option key={n} value={n}>{t("zoomOf", { n })}</option>)}
          </select>
        </label>
      )}
      <label class="speed">
        <span class="hidden">{t("speed")}</span>
        <select value={speed.value} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
          {SPEEDS.map((n) => <option key={n} value={n}>{t("speedOf", { n })}</option>)}
        </select>
      </label>
      <label class="switch" title={t("predictTitle")}>
        <input type="checkbox" checked={predict.value} onChange={(event) => (predict.value = event.currentTarget.checked)} />
        {t("predict")}{predict.value && score.value.all > 0 && <span class="score">{t("predictScore", score.value)}</span>}
      </label>
      <label class="switch">
        <input type="checkbox" checked={details.value} onChange={(event) => (details.value = event.currentTarget.checked)} />
        {t("details")}
      </label>
      {!embedded.value && !fork.value && answer.value?.layer !== "ledger" && (
        <button type="button" class="plain" title={t("forkTitle")} disabled={!answer.value} onClick={() => answer.value && (fork.value = { time: now.value, before: answer.value })}>{t("fork")}</button>
      )}
      {!embedded.value && <Files />}
    </section>
  );
}

/** In the router a step is a dispatch, and what is shown is how things stand after its slot. */
function inSlot(): boolean {
  const found = answer.value;
  return found?.layer === "router" && found.runs[0]?.steps[placeOf(0)]?.kind === "dispatch";
}

export function Icon({ d, filled = false }: { d: string; filled?: boolean }) {
  return (
    <svg class={filled ? "icon filled" : "icon"} width="20" height="20" viewBox="0 0 24 24" aria-hidden="true"><path d={d} /></svg>
  );
}
