import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { t, type Key } from "../i18n";
import { path, query } from "../route";
import { lang, theme } from "../settings";
import { read, written } from "./address";
import { Form } from "./Form";
import { MODE_NAMES, MODES, modeOf, type Mode } from "./modes";
import { onKey } from "./player";
import { Policies } from "./Policies";
import { Recorded } from "./Opened";
import { dropped, openFiles } from "./opening";
import { answer, embedded, gallery, held, load, mode, policies, position, predict, scenario, scenarioId, shown } from "./session";
import { Stage } from "./Stage";
import { told } from "./titles";

const upper = (name: string) => (name[0]!.toUpperCase() + name.slice(1)) as Capitalize<Mode>;

export function LabPage() {
  const given = path.value.split("/")[2] as Mode | undefined;
  const wanted: Mode = given && given in MODES ? given : "cpu";
  const [drop, setDrop] = useState(false);
  const [help, setHelp] = useState(false);

  useEffect(() => {
    embedded.value = false;
    void load(wanted, read(query.peek()));
  }, [wanted, query.value]);

  // The address follows what is shown; going back is left to pages and scenarios.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const stop = effect(() => {
      const all = [scenarioId.value, scenario.value, policies.value, position.value, predict.value, lang.value, theme.value, mode.value];
      clearTimeout(timer);
      if (!answer.value || !all.length || held.value || answer.value.layer === "ledger") return; // a file is in no address
      timer = setTimeout(() => {
        if (embedded.peek() || !location.pathname.startsWith("/lab") || location.pathname.split("/").length > 3) return;
        const defaults = { scenario: MODES[mode.peek()].scenario, policies: MODES[mode.peek()].policies };
        const own = scenarioId.peek() && scenarioId.peek() !== defaults.scenario ? (gallery.peek().find((each) => each.id === scenarioId.peek())?.policies.slice(0, 8) ?? []) : defaults.policies;
        const text = written(shown(), { ...defaults, policies: own });
        const extra = `lang=${lang.peek()}${theme.peek() === "auto" ? "" : `&theme=${theme.peek()}`}`;
        history.replaceState(null, "", `/lab/${mode.peek()}?${text ? `${text}&` : ""}${extra}`);
      }, 200);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);

  useEffect(() => {
    const keys = (event: KeyboardEvent) =>
      onKey(event, {
        p: () => (predict.value = !predict.value),
        l: () => (lang.value = lang.value === "ja" ? "en" : "ja"),
        "?": () => setHelp((open) => !open),
      });
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);

  const current = mode.value;
  const named = gallery.value.find((each) => each.id === scenarioId.value);
  const own = gallery.value.filter((each) => modeOf(each.layer, each.scenario) === current);
  return (
    <div
      class={drop ? "lab drop" : "lab"}
      onDragOver={(event) => { event.preventDefault(); setDrop(true); }}
      onDragLeave={(event) => event.currentTarget === event.target && setDrop(false)}
      onDrop={async (event) => { event.preventDefault(); setDrop(false); if (event.dataTransfer) await openFiles(await dropped(event.dataTransfer)); }}
    >
      {drop && <p class="drop-note">{t("dropHere")}</p>}
      <nav class="tabs" aria-label={t("modes")}>
        {MODE_NAMES.map((name) => <a key={name} href={`/lab/${name}`} aria-current={name === current ? "page" : undefined}>{t(`mode${upper(name)}` as Key)}</a>)}
      </nav>
      <header class="lead">
        <h1>{t(`mode${upper(current)}` as Key)}</h1>
        <p>{t(`lead${upper(current)}` as Key)}</p>
      </header>
      {current === "ledger" ? <Recorded /> : gallery.value.length > 0 && (
        <div class="setup">
          <div class="setup-left">
            <label class="scenario">{t("scenario")}
              <select value={scenarioId.value ?? ""} onChange={(event) => { const id = event.currentTarget.value; if (id) void load(current, { scenario: id, custom: null, policies: null, step: 0, predict: predict.value, recent: null, broken: false }); }}>
                {!scenarioId.value && <option value="">{held.value ? held.value.name : t("scenarioEdited")}</option>}
                {own.map((each) => <option key={each.id} value={each.id}>{told(each).title}</option>)}
              </select>
            </label>
            {named && <p class="look-for"><strong>{t("lookFor")}</strong> {told(named).look}</p>}
            <Policies />
          </div>
          <Form />
        </div>
      )}
      <Stage />
      <p class="caution">{t(`caution${upper(current)}` as Key)}</p>
      <p class="keys"><button type="button" class="plain" aria-expanded={help} onClick={() => setHelp(!help)}>{t("help")} <kbd>?</kbd></button> {help && <span>{t("helpText")}</span>}</p>
    </div>
  );
}
