// The scenario as a table to edit. Each mode says which fields its rows have; anything else of a scenario is kept.
import { t, type Key } from "../i18n";
import { Dot } from "./colours";
import { Icon } from "./Transport";
import { edit, fork, mode, scenario } from "./session";
import type { Mode } from "./modes";

interface Field {
  key: string;
  label: Key;
  least: number;
  whole: boolean;
  fallback: number | "";
}

const field = (key: string, label: Key, fallback: number | "", least = 0, whole = true): Field => ({ key, label, least, whole, fallback });
const WEIGHT = field("weight", "weight", 1, 0, false);

const ROWS: Record<Mode, { list: string; name: Key; id: string; fields: Field[]; fresh: () => Record<string, any> }> = {
  cpu: { list: "tasks", name: "task", id: "id", fields: [field("arrival", "arrival", 0), field("burst", "burst", "", 1)], fresh: () => ({ burst: 3 }) },
  router: { list: "tenants", name: "tenant", id: "id", fields: [field("cost", "cost", "", 1), field("count", "count", "", 1), WEIGHT, field("join", "join", 0)], fresh: () => ({ cost: 4, count: 4 }) },
  link: { list: "packets", name: "flow", id: "flow", fields: [field("arrival", "arrival", 0), field("size", "size", "", 1), field("count", "count", 1, 1), field("every", "every", 0)], fresh: () => ({ arrival: 0, size: 4 }) },
  engine: { list: "requests", name: "client", id: "client", fields: [field("at", "arrival", 0, 0, false), field("prompt", "promptTokens", "", 1), field("output", "outputTokens", "", 0), field("count", "count", 1, 1), field("every", "every", 0, 0, false)], fresh: () => ({ prompt: 256, output: 256 }) },
  cluster: { list: "users", name: "user", id: "id", fields: [WEIGHT, field("tasks", "tasksOf", "", 1)], fresh: () => ({}) },
  periodic: { list: "tasks", name: "task", id: "id", fields: [field("period", "period", "", 1), field("wcet", "wcet", "", 1), field("deadline", "deadline", "", 1), field("offset", "offset", 0)], fresh: () => ({ period: 10, wcet: 1 }) },
  locks: { list: "tasks", name: "task", id: "id", fields: [field("arrival", "arrival", 0), field("burst", "burst", "", 1), field("priority", "priority", 0, -1000)], fresh: () => ({ burst: 3 }) },
};

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SHOWN = 16; // rows; larger scenarios are edited as files

function extras(): Field[] {
  if (mode.value !== "cpu") return [];
  const rows = (scenario.value["tasks"] ?? []) as Record<string, any>[];
  const keys: [string, Key][] = [["priority", "priority"], ["weight", "weight"], ["estimate", "estimate"], ["deadline", "deadline"]];
  return keys.filter(([key]) => rows.some((row) => row[key] !== undefined)).map(([key, label]) => field(key, label, key === "weight" ? 1 : key === "priority" ? 0 : "", key === "priority" ? -1000 : 0));
}

export function Form() {
  const shape = ROWS[mode.value];
  const rows = (scenario.value[shape.list] ?? []) as Record<string, any>[];
  const fields = [...shape.fields, ...extras()];
  const capacity = mode.value === "cluster" ? Object.keys((scenario.value["capacity"] ?? {}) as object) : [];
  const since = fork.value?.time ?? -Infinity;
  const when = mode.value === "router" ? "join" : mode.value === "engine" ? "at" : mode.value === "periodic" ? "offset" : "arrival";
  const fixed = (row: Record<string, any>) => Number(row[when] ?? 0) < since;
  const names = mode.value === "link" || mode.value === "engine" ? [...new Set(rows.map((row) => String(row[shape.id])))] : rows.map((row) => String(row[shape.id]));
  const put = (at: number, key: string, text: string, of: Field) =>
    edit((next) => {
      const row = next[shape.list][at];
      if (text === "") delete row[key];
      else row[key] = of.whole && /^-?\d+$/.test(text) ? Number(text) : text;
      return next;
    });
  const add = () =>
    edit((next) => {
      const known = new Set(((next[shape.list] ?? []) as Record<string, any>[]).map((row) => String(row[shape.id])));
      const id = mode.value === "link" ? names[0] ?? "A" : [...LETTERS].find((letter) => !known.has(letter)) ?? `T${known.size + 1}`;
      const demand = mode.value === "cluster" ? { demand: Object.fromEntries(capacity.map((resource) => [resource, 1])) } : {};
      const start = Number.isFinite(since) && mode.value !== "cluster" ? { [when]: Math.ceil(since) } : {};
      next[shape.list] = [...(next[shape.list] ?? []), { [shape.id]: id, ...shape.fresh(), ...demand, ...start }];
      return next;
    });
  return (
    <div class="form">
      <div class="scroll" tabIndex={0} role="region" aria-label={t("edit")}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(shape.name)}</th>
              {fields.map((each) => <th key={each.key} scope="col">{t(each.label)}</th>)}
              {capacity.map((resource) => <th key={resource} scope="col">{t("demandOf", { resource })}</th>)}
              {mode.value === "locks" && <th scope="col">{t("lockOf")}</th>}
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, SHOWN).map((row, at) => {
              const id = String(row[shape.id]);
              return (
                <tr key={at} data-row={id}>
                  <th scope="row"><Dot index={names.indexOf(id)} />{id}</th>
                  {fields.map((each) => (
                    <td key={each.key}>
                      <Box whole={each.whole} least={each.least} disabled={fixed(row)} value={row[each.key] ?? each.fallback} empty={each.key === "tasks" ? t("endless") : ""}
                        label={t("fieldOf", { field: t(each.label), name: id })} put={(text) => put(at, each.key, text, each)} />
                    </td>
                  ))}
                  {capacity.map((resource) => (
                    <td key={resource}>
                      <input type="number" min={0} size={5} value={row["demand"]?.[resource] ?? 0} aria-label={t("fieldOf", { field: t("demandOf", { resource }), name: id })}
                        onInput={(event) => { const value = Number(event.currentTarget.value); edit((next) => { next["users"][at].demand = { ...next["users"][at].demand, [resource]: value }; return next; }); }} />
                    </td>
                  ))}
                  {mode.value === "locks" && <td class="quiet">{((row["locks"] ?? []) as Record<string, any>[]).map((hold) => t("lockText", { resource: hold["resource"], at: hold["at"], for: hold["for"] })).join("; ")}</td>}
                  <td>
                    <button type="button" class="plain small" disabled={rows.length < 2 || fixed(row)} aria-label={t("removeRow", { name: id })} title={t("removeRow", { name: id })}
                      onClick={() => edit((next) => { (next[shape.list] as unknown[]).splice(at, 1); return next; })}><Icon d="M6 6l12 12M18 6 6 18" /></button>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {rows.length > SHOWN && <p class="quiet">… {rows.length}</p>}
      <div class="form-more">
        <button type="button" class="plain" onClick={add}><Icon d="M5 12h14M12 5v14" />{t("addRow")}</button>
        {capacity.map((resource) => <Single key={resource} label={`${t("capacity")}: ${resource}`} value={scenario.value["capacity"][resource]} put={(value) => edit((next) => ({ ...next, capacity: { ...next["capacity"], [resource]: value } }))} least={1} />)}
        {mode.value === "cpu" && <Single label={t("switchCost")} value={scenario.value["switch_cost"] ?? 0} put={(value) => edit((next) => ({ ...next, switch_cost: value }))} least={0} />}
        {mode.value === "cpu" && <Single label={t("cpus")} value={scenario.value["cpus"] ?? 1} put={(value) => edit((next) => ({ ...next, cpus: value }))} least={1} />}
        {mode.value === "link" && ((scenario.value["flows"] ?? []) as Record<string, any>[]).map((flow, at) => (
          <label key={at} class="single">{t("fieldOf", { field: t("weight"), name: String(flow["id"]) })}
            <input type="text" size={4} value={flow["weight"] ?? 1} onInput={(event) => { const value = event.currentTarget.value; edit((next) => { next["flows"][at].weight = value; return next; }); }} />
          </label>
        ))}
      </div>
    </div>
  );
}

interface BoxProps {
  whole: boolean;
  least?: number | undefined;
  most?: number | undefined;
  disabled?: boolean;
  value: string | number;
  empty?: string;
  label: string;
  put: (text: string) => void;
}

export function Box({ whole, least, most, disabled = false, value, empty = "", label, put }: BoxProps) {
  const common = { size: 5, disabled, value, placeholder: empty, "aria-label": label };
  return whole ? (
    <input type="number" min={least} max={most} {...common} onInput={(event) => put(event.currentTarget.value)} />
  ) : (
    <input type="text" {...common} onInput={(event) => put(event.currentTarget.value)} />
  );
}

function Single({ label, value, put, least }: { label: string; value: number; put: (value: number) => void; least: number }) {
  return <label class="single">{label}<input type="number" min={least} size={4} value={value} onInput={(event) => put(Number(event.currentTarget.value))} /></label>;
}
