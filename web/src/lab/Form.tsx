// The scenario as a table to edit. Anything of a scenario that has no field is kept.
import { t } from "../i18n";
import { Box, typed, wrongAt } from "./Box";
import { choice } from "./called";
import { Dot } from "./colours";
import { extras, ROWS, VALUES, type Field, type Value } from "./fields";
import { Locks } from "./Locks";
import { edit, fork, held, mode, scenario } from "./session";
import { Icon } from "./Transport";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SHOWN = 16; // rows; larger scenarios are edited as files

export function Form() {
  const current = mode.value;
  if (current === "ledger") return null;
  const shape = ROWS[current];
  const rows = (scenario.value[shape.list] ?? []) as Record<string, any>[];
  const elsewhere = held.value !== null || scenario.value["workload"] !== undefined;
  return (
    <div class="form">
      {(rows.length > 0 || !elsewhere) && <Table current={current} rows={rows} />}
      {held.value && <p class="quiet">{t("traceFile", { name: held.value.name })}</p>}
      <div class="form-more">
        {current === "cluster" && <Capacity />}
        {VALUES[current].filter((value) => !value.only || (value.only === "traced" ? held.value : scenario.value["workload"] !== undefined)).map((value) => <Single key={value.key} value={value} />)}
        {current === "link" && <Weights />}
      </div>
    </div>
  );
}

function Table({ current, rows }: { current: Exclude<typeof mode.value, "ledger">; rows: Record<string, any>[] }) {
  const shape = ROWS[current];
  const fields = [...shape.fields, ...extras(current, rows)];
  const capacity = current === "cluster" ? Object.keys((scenario.value["capacity"] ?? {}) as object) : [];
  const since = fork.value?.time ?? -Infinity;
  const fixed = (row: Record<string, any>) => Number(row[shape.when] ?? 0) < since;
  const ids = rows.map((row) => String(row[shape.id]));
  const names = shape.single ? ids : [...new Set(ids)];
  const resources = current === "locks" ? [...new Set(rows.flatMap((row) => ((row["locks"] ?? []) as Record<string, any>[]).map((hold) => String(hold["resource"]))))] : [];
  const put = (at: number, key: string, text: string, of: Field) =>
    edit((next) => {
      const row = next[shape.list][at];
      if (text === "") delete row[key];
      else row[key] = typed(text, of.whole);
      return next;
    });
  const rename = (at: number, text: string) =>
    edit((next) => {
      next[shape.list][at][shape.id] = text;
      if (current === "link" && next["flows"] && !next["flows"].some((flow: Record<string, any>) => flow["id"] === text) && text) next["flows"].push({ id: text });
      return next;
    });
  const add = () =>
    edit((next) => {
      const known = new Set(ids);
      const id = current === "link" ? names[0] ?? "A" : [...LETTERS].find((letter) => !known.has(letter)) ?? `T${known.size + 1}`;
      const demand = current === "cluster" ? { demand: Object.fromEntries(capacity.map((resource) => [resource, 1])) } : {};
      const start = Number.isFinite(since) && current !== "cluster" ? { [shape.when]: Math.ceil(since) } : {};
      next[shape.list] = [...(next[shape.list] ?? []), { [shape.id]: id, ...shape.fresh, ...demand, ...start }];
      return next;
    });
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("edit")}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(shape.name)}</th>
              {fields.map((each) => <th key={each.key} scope="col">{t(each.label)}</th>)}
              {capacity.map((resource) => <th key={resource} scope="col">{t("demandOf", { resource })}</th>)}
              {current === "locks" && <th scope="col">{t("lockOf")}</th>}
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, SHOWN).map((row, at) => {
              const id = ids[at]!;
              const wrong = wrongAt([shape.list, at]);
              return (
                <tr key={at} data-row={id}>
                  <th scope="row"><span class="bar-name"><Dot index={names.indexOf(id)} /><Box whole={false} size={4} disabled={fixed(row)} value={id} label={t("fieldOf", { field: t("name"), name: `${at + 1}` })} at={[shape.list, at, shape.id]} put={(text) => rename(at, text)} /></span>{wrong && <span class="wrong">{wrong}</span>}</th>
                  {fields.map((each) => (
                    <td key={each.key}>
                      <Box whole={each.whole} least={each.least} disabled={fixed(row)} value={row[each.key] ?? (row["batches"] || row["bursts"] ? "" : each.fallback)} at={[shape.list, at, each.key]}
                        empty={each.key === "tasks" || each.key === "duration" ? t("endless") : row["batches"] || row["bursts"] ? t("oneByOne") : ""} label={t("fieldOf", { field: t(each.label), name: id })} put={(text) => put(at, each.key, text, each)} />
                    </td>
                  ))}
                  {capacity.map((resource) => (
                    <td key={resource}>
                      <Box whole least={0} value={row["demand"]?.[resource] ?? 0} label={t("fieldOf", { field: t("demandOf", { resource }), name: id })} at={["users", at, "demand", resource]}
                        put={(text) => edit((next) => { next["users"][at].demand = { ...next["users"][at].demand, [resource]: typed(text, true) }; return next; })} />
                    </td>
                  ))}
                  {current === "locks" && <td><Locks task={at} name={id} holds={row["locks"] ?? []} resources={resources} disabled={fixed(row)} /></td>}
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
      <button type="button" class="plain" onClick={add}><Icon d="M5 12h14M12 5v14" />{t("addRow")}</button>
    </>
  );
}

/** A value of the whole scenario. */
function Single({ value }: { value: Value }) {
  const given = scenario.value[value.key] ?? value.fallback;
  const put = (to: string | number | boolean) =>
    edit((next) => {
      if (to === "") delete next[value.key];
      else next[value.key] = to;
      return next;
    });
  const label = t(value.label);
  const current = mode.value;
  if (value.kind === "switch") return <label class="single"><input type="checkbox" checked={given === true} onChange={(event) => put(event.currentTarget.checked)} />{label}</label>;
  if (value.kind === "choice")
    return <label class="single">{label}<select value={String(given)} onChange={(event) => put(event.currentTarget.value)}>{value.choices!.map((each) => <option key={each} value={each}>{each ? choice(each) : t("asPreset")}</option>)}</select></label>;
  return <span class="single">{label}<Box whole={value.kind === "whole"} least={value.least} value={given as string | number} label={label} size={value.key === "workload" ? 48 : value.kind === "text" ? 14 : 5} empty={value.fallback === "" && value.kind === "whole" ? (current === "engine" || current === "fleet" ? t("asPreset") : "–") : ""} at={[value.key]} put={(text) => put(typed(text, value.kind === "whole"))} /></span>;
}

function Capacity() {
  const capacity = (scenario.value["capacity"] ?? {}) as Record<string, any>;
  const add = () =>
    edit((next) => {
      const name = ["cpu", "mem", "gpu", "disk", "net"].find((each) => !(each in next["capacity"])) ?? `r${Object.keys(next["capacity"]).length + 1}`;
      next["capacity"] = { ...next["capacity"], [name]: 10 };
      for (const user of next["users"]) user.demand = { ...user.demand, [name]: 1 };
      return next;
    });
  const remove = (resource: string) =>
    edit((next) => {
      delete next["capacity"][resource];
      for (const user of next["users"]) delete user.demand[resource];
      return next;
    });
  return (
    <>
      {Object.entries(capacity).map(([resource, amount]) => {
        const label = `${t("capacity")}: ${resource}`;
        return (
          <span key={resource} class="single">{label}<Box whole least={1} value={amount} label={label} at={["capacity", resource]} put={(text) => edit((next) => ({ ...next, capacity: { ...next["capacity"], [resource]: typed(text, true) } }))} />
            <button type="button" class="plain small" disabled={Object.keys(capacity).length < 2} aria-label={t("removeRow", { name: resource })} onClick={() => remove(resource)}><Icon d="M6 6l12 12M18 6 6 18" /></button>
          </span>
        );
      })}
      <button type="button" class="plain small" onClick={add}><Icon d="M5 12h14M12 5v14" />{t("addResource")}</button>
    </>
  );
}

/** Of a link's flows. Where none are listed every flow has weight 1; the first change lists them. */
function Weights() {
  const listed = (scenario.value["flows"] ?? []) as Record<string, any>[];
  const named = [...new Set(((scenario.value["packets"] ?? []) as Record<string, any>[]).map((packet) => String(packet["flow"])))];
  const flows = listed.length ? listed : named.map((id): Record<string, any> => ({ id }));
  const put = (at: number, text: string) =>
    edit((next) => {
      next["flows"] = structuredClone(flows);
      if (text === "") delete next["flows"][at].weight;
      else next["flows"][at].weight = text;
      return next;
    });
  return (
    <fieldset class="weights">
      <legend>{t("weight")}</legend>
      {flows.slice(0, SHOWN).map((flow, at) => (
        <span key={at} class="single">{String(flow["id"])}<Box whole={false} size={3} value={flow["weight"] ?? 1} label={t("fieldOf", { field: t("weight"), name: String(flow["id"]) })} at={["flows", at, "weight"]} put={(text) => put(at, text)} /></span>
      ))}
    </fieldset>
  );
}
