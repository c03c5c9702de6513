// Scenario files are written in English; their Japanese is the page's.
import { has, t } from "../i18n";
import { lang } from "../settings";

export function textOf(id: string, part: "title" | "look"): string | null {
  const key = `${part}_${id.replaceAll(/[/-]/g, "_")}`;
  return lang.value === "ja" && has(key) ? t(key) : null;
}
