// Critical sections of a task: which lock, after how many of its own ticks, for how many.
import { t } from "../i18n";
import { Box, typed, wrongAt } from "./Box";
import { edit } from "./session";
import { Icon } from "./Transport";

const RESOURCES = "RSTUVWXYZ";

export function Locks({ task, name, holds, resources, disabled }: { task: number; name: string; holds: Record<string, any>[]; resources: string[]; disabled: boolean }) {
  const change = (act: (locks: Record<string, any>[]) => void) =>
    edit((next) => {
      const row = next["tasks"][task];
      row.locks = row.locks ?? [];
      act(row.locks);
      if (!row.locks.length) delete row.locks;
      return next;
    });
  const add = () => change((locks) => locks.push({ resource: resources[0] ?? RESOURCES[0], at: 0, for: 1 }));
  return (
    <div class="holds">
      {holds.map((hold, index) => {
        const said = (field: string) => t("fieldOf", { field, name: `${t("lockOf")} ${index + 1}, ${name}` });
        const box = (key: string, label: string, whole: boolean) => (
          <Box whole={whole} least={key === "for" ? 1 : 0} value={hold[key] ?? ""} label={said(label)} size={key === "for" || key === "at" ? 3 : 5} disabled={disabled} at={["tasks", task, "locks", index, key]} put={(text) => change((locks) => (locks[index]![key] = typed(text, whole)))} />
        );
        const wrong = wrongAt(["tasks", task, "locks", index]);
        return (
          <span key={index} class="hold">
            {box("resource", t("lock"), false)} <span class="quiet">{t("lockAfter")}</span> {box("at", t("lockAfter"), true)} <span class="quiet">{t("lockFor")}</span> {box("for", t("lockFor"), true)}
            <button type="button" class="plain small" disabled={disabled} aria-label={t("removeRow", { name: `${t("lockOf")} ${index + 1}, ${name}` })} onClick={() => change((locks) => locks.splice(index, 1))}><Icon d="M6 6l12 12M18 6 6 18" /></button>
            {wrong && <span class="wrong">{wrong}</span>}
          </span>
        );
      })}
      <button type="button" class="plain small" disabled={disabled} aria-label={t("addLock", { name })} onClick={add}><Icon d="M5 12h14M12 5v14" />{t("lock")}</button>
    </div>
  );
}
