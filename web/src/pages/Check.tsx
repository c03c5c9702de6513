import { useState } from "preact/hooks";
import { t, type Key } from "../i18n";

const ALL = Array.from({ length: 10 }, (_, index) => index + 1);

function kept(): number[] {
  try {
    const given: unknown = JSON.parse(localStorage.getItem("checklist") ?? "[]");
    return Array.isArray(given) ? given.filter((each): each is number => ALL.includes(each)) : [];
  } catch {
    return [];
  }
}

export function CheckPage() {
  const [done, setDone] = useState(kept);
  const flip = (item: number) => {
    const next = done.includes(item) ? done.filter((each) => each !== item) : [...done, item];
    setDone(next);
    try {
      localStorage.setItem("checklist", JSON.stringify(next));
    } catch {
      // it lasts as long as the page
    }
  };
  return (
    <div class="page">
      <header class="lead"><h1>{t("checkTitle")}</h1><p>{t("checkLead")}</p></header>
      <p class="progress" role="status"><progress max={10} value={done.length} aria-label={t("checkTitle")} /> {t("checkDone", { n: done.length })}</p>
      <ol class="checklist">
        {ALL.map((item) => (
          <li key={item} class={done.includes(item) ? "done" : ""}>
            <label><input type="checkbox" checked={done.includes(item)} onChange={() => flip(item)} /><strong>{t(`check${item}` as Key)}</strong></label>
            <p>{t(`check${item}text` as Key)}</p>
          </li>
        ))}
      </ol>
    </div>
  );
}
