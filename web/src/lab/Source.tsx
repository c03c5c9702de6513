import { useEffect, useRef } from "preact/hooks";
import type { RunView } from "../api.types";
import { t } from "../i18n";
import { carriedOut } from "./explain";
import { catalogue } from "./session";

/** The policy's own file, with the lines lit that this step carried out. */
export function Source({ run, place }: { run: RunView; place: number }) {
  const policy = catalogue.value.find((each) => each.name === run.policy);
  const box = useRef<HTMLPreElement>(null);
  const step = run.steps[place];
  const words = carriedOut(step);
  const lit = new Set<number>();
  if (policy) {
    for (const word of words) if (policy.rules[word]) lit.add(policy.rules[word]);
    for (const name of step?.why ? ["rank", "why"] : []) {
      const span = policy.methods[name];
      if (span) for (let line = span[0]; line <= span[1]; line++) lit.add(line);
    }
  }
  const first = Math.min(...lit);
  useEffect(() => {
    const line = box.current?.querySelector<HTMLElement>(`[data-line="${first}"]`);
    if (line && box.current) box.current.scrollTop = Math.max(0, line.offsetTop - box.current.clientHeight / 3);
  }, [first]);
  if (!policy) return null;
  return (
    <figure class="source">
      <figcaption><code>{policy.file}</code> <span class="quiet">{t("ruleLit")}</span></figcaption>
      <pre ref={box} tabIndex={0} lang="en" aria-label={policy.file}>
        {policy.source.split("\n").map((line, index) => (
          <span key={index} data-line={index + 1} class={lit.has(index + 1) ? "line lit" : "line"}>{line || " "}{"\n"}</span>
        ))}
      </pre>
    </figure>
  );
}
