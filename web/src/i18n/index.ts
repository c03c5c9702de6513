import { computed } from "@preact/signals";
import { lang } from "../settings";
import { dashEn } from "./dash.en";
import { dashJa } from "./dash.ja";
import { labEn } from "./lab.en";
import { labJa } from "./lab.ja";
import { namesEn } from "./names.en";
import { namesJa } from "./names.ja";
import { pagesEn } from "./pages.en";
import { pagesJa } from "./pages.ja";
import { recordedEn } from "./recorded.en";
import { recordedJa } from "./recorded.ja";

export const en = { ...labEn, ...namesEn, ...pagesEn, ...dashEn, ...recordedEn };
export const ja: { [K in keyof typeof en]: (typeof en)[K] extends string ? string : (typeof en)[K] } = { ...labJa, ...namesJa, ...pagesJa, ...dashJa, ...recordedJa };
export type Texts = typeof ja;
export type Key = keyof Texts;

const m = computed<Texts>(() => (lang.value === "ja" ? ja : en));

/** A text of the chosen language. Whoever reads it while rendering is rendered again when the language changes. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const text = m.value[key] as string | ((v: Record<string, string>) => string);
  if (typeof text === "string") return text;
  return text(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])));
}

export function has(key: string): key is Key {
  return key in en;
}

/** The text for a code of the server's, else `other`. */
export function coded(family: string, code: string, other: Key, values: Record<string, string | number> = {}): string {
  const key = `${family}_${code.replaceAll("-", "_")}`;
  return has(key) ? t(key, values) : t(other, { code, name: code, values: Object.entries(values).map((pair) => pair.join("=")).join(", ") });
}

/** A, B and C / A、B、C */
export function list(names: readonly string[]): string {
  return new Intl.ListFormat(lang.value, { type: "conjunction" }).format(names);
}
