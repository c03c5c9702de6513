import { useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { pack, LONGEST } from "./address";
import { csv, saved, svgOf, pngOf } from "./exports";
import { openFiles } from "./opening";
import { answer, fork, held, placeOf, scenario, scenarioId } from "./session";

function shownRuns() {
  const found = answer.value;
  return [found, fork.value?.before].flatMap((each) => each?.runs.map((run, index) => ({ answer: each, run, place: placeOf(index) })) ?? []);
}

/** Links and files: everything that leaves the page or comes into it. */
export function Files() {
  const [told, setTold] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const menu = useRef<HTMLDetailsElement>(null);
  const say = (text: string) => {
    setTold(text);
    setTimeout(() => setTold(""), 2500);
  };
  const copy = async () => {
    if (held.value || answer.value?.layer === "ledger" || (!scenarioId.value && pack(scenario.value).length > LONGEST)) return say(t("tooLongForLink"));
    try {
      await navigator.clipboard.writeText(location.href);
      say(t("copied"));
    } catch {
      say(t("copyFailed"));
    }
  };
  const act = (what: () => unknown) => () => {
    menu.current?.removeAttribute("open");
    void what();
  };
  const found = answer.value;
  const name = (scenarioId.value ?? "fairq").replaceAll("/", "-");
  return (
    <div class="files">
      <button type="button" class="plain" onClick={copy}>{t("copyLink")}</button>
      <details ref={menu} class="menu">
        <summary>{t("files")}</summary>
        <div class="menu-box">
          <button type="button" onClick={act(() => input.current?.click())}>{t("openFile")}</button>
          <button type="button" disabled={!found?.yaml} onClick={act(() => found && saved(`${name}.yaml`, found.yaml, "application/yaml"))}>{t("saveFile")}</button>
          <button type="button" disabled={!found} onClick={act(() => found && saved(`${name}.csv`, csv(found), "text/csv"))}>{t("saveCsv")}</button>
          <button type="button" disabled={!found} onClick={act(() => saved(`${name}.svg`, svgOf(shownRuns()), "image/svg+xml"))}>{t("saveSvg")}</button>
          <button type="button" disabled={!found} onClick={act(async () => saved(`${name}.png`, await pngOf(shownRuns()), "image/png"))}>{t("savePng")}</button>
        </div>
      </details>
      <input ref={input} type="file" multiple class="hidden" tabIndex={-1} aria-label={t("openFile")} onChange={async (event) => {
        const files = [...(event.currentTarget.files ?? [])];
        event.currentTarget.value = "";
        if (files.length) await openFiles(files);
      }} />
      <span role="status" class="told">{told}</span>
    </div>
  );
}
