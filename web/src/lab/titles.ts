import type { ScenarioView } from "../api.types";
import { titlesJa } from "../i18n/titles.ja";
import { lang } from "../settings";

/** A scenario's title and what to look for, in the chosen language. Files of one's own say it in theirs. */
export function told(view: Pick<ScenarioView, "id" | "title" | "look_for">): { title: string; look: string } {
  const ja = lang.value === "ja" ? titlesJa[view.id] : undefined;
  return { title: ja?.[0] ?? view.title, look: ja?.[1] ?? view.look_for };
}
