import { useEffect } from "preact/hooks";
import { t, type Key } from "../i18n";
import { called } from "../lab/called";
import { MODE_NAMES, modeOf } from "../lab/modes";
import { addressOf, catalogued, gallery } from "../lab/session";
import { told } from "../lab/titles";

export function GalleryPage() {
  useEffect(() => void catalogued(), []);
  return (
    <div class="page">
      <header class="lead"><h1>{t("galleryTitle")}</h1><p>{t("galleryLead")}</p></header>
      {MODE_NAMES.map((mode) => {
        const own = gallery.value.filter((each) => modeOf(each.layer, each.scenario) === mode);
        return own.length ? (
          <section key={mode}>
            <h2>{t(`mode${mode[0]!.toUpperCase()}${mode.slice(1)}` as Key)}</h2>
            <ul class="gallery">
              {own.map((each) => (
                <li key={each.id}>
                  <h3><a href={addressOf(each)}>{told(each).title}</a></h3>
                  <p>{told(each).look}</p>
                  <p class="quiet">{each.policies.map((spec) => called(spec, each.layer)).join(" · ")}</p>
                </li>
              ))}
            </ul>
          </section>
        ) : null;
      })}
    </div>
  );
}
