// What a gateway recorded: before a file is there, how it comes here; then what else can be done with it.
import { useRef } from "preact/hooks";
import { t } from "../i18n";
import { openFiles } from "./opening";
import { answer, busy, playAgain } from "./session";

export function Recorded() {
  const input = useRef<HTMLInputElement>(null);
  const there = answer.value?.layer === "ledger";
  return (
    <div class={there ? "recorded" : "recorded waiting"}>
      {!there && <p>{busy.value ? t("computing") : t("recordedHow")}</p>}
      <p class="stop-nav">
        <button type="button" onClick={() => input.current?.click()}>{t("openLedger")}</button>
        {there && <button type="button" onClick={() => void playAgain()}>{t("playAgain")}</button>}
        {there && <span class="quiet">{t("playAgainNote")}</span>}
      </p>
      <h2 class="hidden">{t("timeline")}</h2>
      <input ref={input} type="file" multiple accept=".jsonl" class="hidden" tabIndex={-1} aria-label={t("openLedger")} onChange={async (event) => {
        const files = [...(event.currentTarget.files ?? [])];
        event.currentTarget.value = "";
        if (files.length) await openFiles(files);
      }} />
    </div>
  );
}
