// What the scheduler keeps: whatever its show() says, drawn by its shape. Numbers per name are bars on one scale.
import type { Answer, RunView } from "../api.types";
import { coded, t } from "../i18n";
import { num, show } from "../numbers";
import { lang } from "../settings";
import { titleOf } from "./called";
import { Dot } from "./colours";
import type { Candidate } from "./compared";
import { entities, indexOf, largest } from "./runs";

const MOST = 12; // rows of a table

export function Keeps({ answer, run, place }: { answer: Answer; run: RunView; place: number }) {
  const step = run.steps[place];
  const names = entities(answer);
  const parts = Object.entries((step?.show ?? {}) as Record<string, any>);
  if (!parts.length) return <p class="quiet">{t("keepsNothing")}</p>;
  const scalars = parts.filter(([, value]) => value === null || typeof value !== "object");
  // In the router the clock is that of the dispatch; the reset that follows the last one is noted beside it.
  const clock = (answer.layer === "router" || answer.layer === "ledger") && step?.what["virtual_time"] != null ? step.what["virtual_time"] : undefined;
  const v = scalars.find(([key]) => key === "virtual_time")?.[1];
  const line = clock ?? v;
  return (
    <div class="keeps">
      {scalars.map(([key, value]) => (
        <p key={key} class="scalar">
          <span>{coded("show", key, "show_other")}</span>
          <output data-show={key}>{show(key === "virtual_time" && clock !== undefined ? clock : value, lang.value, 3)}</output>
          {key === "virtual_time" && step?.what["reset"] != null && <span class="reset">→ <output data-show="reset">{show(step.what["reset"], lang.value, 3)}</output></span>}
        </p>
      ))}
      {parts.map(([key, value]) => {
        if (Array.isArray(value)) return <Chips key={key} title={coded("show", key, "show_other")} ids={value} names={names} />;
        if (value && typeof value === "object") {
          const nested = Object.values(value as object).some((each) => each && typeof each === "object");
          if (nested) return <Classes key={key} classes={value} names={names} />;
          return <Bars key={key} kind={key} values={value} names={names} run={run} line={isTag(key) && line !== undefined ? num(line) : null} />;
        }
        return null;
      })}
    </div>
  );
}

function isTag(kind: string): boolean {
  return kind === "meters" || kind === "start" || kind === "finish";
}

function Bars({ kind, values, names, run, line }: { kind: string; values: Record<string, unknown>; names: string[]; run: RunView; line: number | null }) {
  const most = highest(run, kind);
  const ranked = kind === "priority" && run.policy === "rm"; // it keeps -period, or -deadline
  const rows = Object.entries(values).slice(0, MOST).map(([id, value]) => [id, ranked ? -num(value) : value] as const);
  return (
    <div class="bars">
      <h4>{titleOf(run, kind)}</h4>
      {rows.map(([id, value]) => (
        <div key={id} class="bar-row" data-bar={`${kind}.${id}`}>
          <span class="bar-name"><Dot index={indexOf(names, id)} />{id}</span>
          <span class="bar-box">
            <span class={`bar tone-${((indexOf(names, id) % 6) + 6) % 6}`} style={{ width: `${(100 * Math.max(num(value), 0)) / most}%` }} />
            {line !== null && <span class="bar-line" style={{ left: `${Math.min(100, (100 * Math.max(line, 0)) / most)}%` }} />}
          </span>
          <output>{show(value, lang.value, 3)}</output>
        </div>
      ))}
      {Object.keys(values).length > MOST && <p class="quiet">… {Object.keys(values).length}</p>}
      {line !== null && <p class="bar-key"><span class="bar-line-key" aria-hidden="true" />V = {show(line, lang.value, 3)}</p>}
    </div>
  );
}

const scales = new WeakMap<RunView, Record<string, number>>();

/** The largest value of this kind in the whole run: the scale does not move while the clock does. */
function highest(run: RunView, kind: string): number {
  let known = scales.get(run);
  if (!known) scales.set(run, (known = {}));
  return (known[kind] ??= largest(run.steps, (step) => Object.values((step.show[kind] ?? {}) as object).map((value) => Math.abs(num(value))), 1e-9));
}

export function Chips({ title, ids, names, empty }: { title: string; ids: string[]; names: string[]; empty?: string }) {
  return (
    <div class="chips">
      <h4>{title}</h4>
      <ol>
        {ids.slice(0, 24).map((id, index) => (
          <li key={`${id}${index}`} class="chip"><Dot index={indexOf(names, String(id))} />{id}</li>
        ))}
        {ids.length > 24 && <li class="chip more">+{ids.length - 24}</li>}
        {!ids.length && <li class="quiet">{empty ?? t("empty")}</li>}
      </ol>
    </div>
  );
}

function Classes({ classes, names }: { classes: Record<string, any>; names: string[] }) {
  return (
    <div class="classes">
      <h4>{t("show_classes")}</h4>
      <table>
        <tbody>
          {Object.entries(classes).slice(0, 16).map(([name, kept]) => (
            <tr key={name}>
              <th scope="row"><Dot index={indexOf(names, name)} />{name}</th>
              <td>{Object.entries((kept.meters ?? kept) as Record<string, unknown>).map(([id, value]) => `${id} ${typeof value === "object" ? "…" : show(value, lang.value)}`).join("  ·  ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Compared({ what, of, names }: { what: string; of: Candidate[]; names: string[] }) {
  return (
    <p class="compared">
      <span class="quiet">{t("compared")} ({what}):</span>
      {of.slice(0, 10).map((each) => (
        <span key={each.id} class={each.chosen ? "candidate chosen" : "candidate"}>
          <Dot index={indexOf(names, each.id)} />{each.id}: <b>{show(each.value, lang.value, 3)}</b>{each.chosen && <span aria-hidden="true"> ✓</span>}
        </span>
      ))}
      {of.length > 10 && <span class="quiet">+{of.length - 10}</span>}
    </p>
  );
}
