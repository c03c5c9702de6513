import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { t, type Key } from "./i18n";
import { Hatches } from "./lab/colours";
import { LabPage } from "./lab/LabPage";
import { MODES } from "./lab/modes";
import { CheckPage } from "./pages/Check";
import { ChoosePage } from "./pages/Choose";
import { GalleryPage } from "./pages/Gallery";
import { LineagePage } from "./pages/Lineage";
import { TourPage } from "./pages/Tour";
import { DashPage } from "./dash/DashPage";
import { follow, path } from "./route";
import { lang, theme } from "./settings";

// Beside a gateway there is a dashboard too; the lab alone has none.
export const LIVE = document.body.hasAttribute("data-live");
const NAV: [string, Key][] = [...(LIVE ? ([["/", "navLive"]] as [string, Key][]) : []), ["/lab", "navLab"], ["/lab/tour", "navTour"], ["/lab/map", "navMap"], ["/lab/gallery", "navGallery"], ["/lab/choose", "navChoose"], ["/lab/checklist", "navCheck"]];
const PAGES: Record<string, () => JSX.Element> = { tour: TourPage, map: LineagePage, gallery: GalleryPage, choose: ChoosePage, checklist: CheckPage };

export function App() {
  const here = path.value;
  const page = here.split("/")[2] ?? "";
  const Page = here === "/" ? DashPage : PAGES[page] ?? (here === "/lab" || page in MODES ? LabPage : NoPage);
  useEffect(() => {
    document.title = `${t("brand")} – ${document.querySelector("h1")?.textContent ?? ""}`;
  });
  const next = theme.value === "auto" ? "dark" : theme.value === "dark" ? "light" : "auto";
  const isLab = (to: string) => (to === "/lab" ? !NAV.some(([other]) => other !== "/lab" && other === `/lab/${page}`) && here.startsWith("/lab") : here === to);
  return (
    <div onClick={follow}>
      <a class="skip" href="#main">{t("skip")}</a>
      <svg id="hatches" width="0" height="0" aria-hidden="true"><Hatches /></svg>
      <header class="top">
        <a class="brand" href={LIVE ? "/" : "/lab"}><img src="/lab/static/icon.svg" alt="" width="26" height="26" />{t("brand")}</a>
        <nav aria-label={t("brand")}>
          {NAV.map(([to, key]) => <a key={to} href={to} aria-current={isLab(to) ? "page" : undefined}>{t(key)}</a>)}
        </nav>
        <div class="top-right">
          <button type="button" class="plain" onClick={() => (theme.value = next)} aria-label={t(theme.value === "auto" ? "themeAuto" : theme.value === "dark" ? "themeDark" : "themeLight")} title={t(theme.value === "auto" ? "themeAuto" : theme.value === "dark" ? "themeDark" : "themeLight")}>{theme.value === "auto" ? "◐" : theme.value === "dark" ? "●" : "○"}</button>
          <button type="button" class="plain" lang={lang.value === "ja" ? "en" : "ja"} title={t("languageTitle")} onClick={() => (lang.value = lang.value === "ja" ? "en" : "ja")}>{t("language")}</button>
        </div>
      </header>
      <main id="main" tabIndex={-1}><Page /></main>
      <footer class="bottom">{t("footer")}</footer>
    </div>
  );
}

function NoPage() {
  return (
    <div class="page">
      <header class="lead"><h1>{t("noSuchPage")}</h1><p>{t("noSuchPageText", { path: path.value })}</p></header>
      <p><a class="button" href="/lab">{t("navLab")}</a></p>
    </div>
  );
}
