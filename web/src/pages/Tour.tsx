import { useEffect } from "preact/hooks";
import { t, type Key } from "../i18n";
import { written } from "../lab/address";
import { MODES, type Mode } from "../lab/modes";
import { onKey } from "../lab/player";
import { embedded, load, position } from "../lab/session";
import { Stage } from "../lab/Stage";
import { go, query } from "../route";
import { lang } from "../settings";

const STOPS: [Mode, string, string[], number][] = [
  ["cpu", "cpu/lab", ["fcfs"], 11],
  ["cpu", "cpu/lab", ["fcfs", "srtf"], 15],
  ["cpu", "cpu/srtf-starvation", ["srtf"], 31],
  ["cpu", "cpu/lab", ["fcfs", "rr:quantum=1"], 15],
  ["cpu", "cpu/mlfq-learns", ["mlfq:quantum=10"], 120],
  ["periodic", "cpu/rm-misses-edf-holds", ["rm", "edf"], 7],
  ["cpu", "cpu/lottery-against-stride", ["lottery", "stride"], 60],
  ["link", "link/fluid-and-packets", ["gps", "wfq"], 12],
  ["link", "link/lying-lengths", ["wfq", "sfq"], 40],
  ["router", "router/count-fair-cost-fair", ["request-rr", "sfq"], 10],
  ["router", "router/lab", ["sfq"], 4],
  ["router", "router/lab", ["sfq"], 14],
  ["engine", "engine/lab", ["fcfs", "vtc"], 60],
];

export function TourPage() {
  const given = Number(new URLSearchParams(query.value).get("stop") ?? 1);
  const at = Number.isInteger(given) && given >= 1 && given <= STOPS.length ? given : 1;
  const [mode, scenario, policies, step] = STOPS[at - 1]!;
  const shown = { scenario, custom: null, policies, step, predict: false, recent: null, broken: false };
  const to = (stop: number) => (stop > STOPS.length ? "/lab" : `/lab/tour?stop=${stop}&lang=${lang.value}`);
  useEffect(() => {
    embedded.value = true;
    void load(mode, shown);
    return () => void (embedded.value = false);
  }, [at]);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => onKey(event, { PageDown: () => go(to(at + 1)), PageUp: () => go(to(Math.max(1, at - 1))), l: () => (lang.value = lang.value === "ja" ? "en" : "ja") });
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [at]);
  const rest = written({ ...shown, step: position.value }, { scenario: MODES[mode].scenario, policies: MODES[mode].policies });
  return (
    <div class="page tour">
      <header class="lead"><h1>{t("tourTitle")}</h1>{at === 1 && <p>{t("tourLead")}</p>}</header>
      <section class="stop" aria-label={t("tourStep", { at, of: STOPS.length })}>
        <p class="quiet">{t("tourStep", { at, of: STOPS.length })}</p>
        <h2>{t(`tour${at}` as Key)}</h2>
        <p class="stop-text" role="status">{t(`tour${at}text` as Key)}</p>
        <nav class="stop-nav" aria-label={t("tourTitle")}>
          {at > 1 && <a class="button" href={to(at - 1)}>{t("tourBack")}</a>}
          <a class="button main" href={to(at + 1)}>{at === STOPS.length ? t("tourEnd") : t("tourNext")}</a>
          <a href={`/lab/${mode}?${rest}`}>{t("tourTake")}</a>
        </nav>
        <ol class="dots" aria-hidden="true">{STOPS.map((_, index) => <li key={index} class={index + 1 === at ? "now" : ""} />)}</ol>
      </section>
      <Stage />
    </div>
  );
}
