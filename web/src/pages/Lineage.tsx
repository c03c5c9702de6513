import { useEffect, useState } from "preact/hooks";
import { coded, t, type Key } from "../i18n";
import { catalogue, catalogued } from "../lab/session";
import { EDGES, FAMILIES, NODES, type Family, type Node } from "./nodes";

const WIDE = 1200;
const TALL = 680;
const byId = new Map(NODES.map((node) => [node.id, node]));
/** Half of its width; Japanese letters are twice as wide. */
const half = (node: Node) => Math.max(44, [...name(node.id)].reduce((sum, letter) => sum + (letter > "\u2fff" ? 8.4 : 5.2), 14));

/** A path from the rim of one node to the rim of another. */
function arrow(from: Node, to: Node, bend: number): string {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.hypot(dx, dy);
  const mx = (from.x + to.x) / 2 + (bend * dy) / length;
  const my = (from.y + to.y) / 2 - (bend * dx) / length;
  const rim = (node: Node, x: number, y: number, gap: number) => {
    const ex = x - node.x;
    const ey = y - node.y;
    const scale = Math.min((half(node) + gap) / Math.max(Math.abs(ex), 1e-6), (19 + gap) / Math.max(Math.abs(ey), 1e-6));
    return `${(node.x + ex * scale).toFixed(1)} ${(node.y + ey * scale).toFixed(1)}`;
  };
  return `M${rim(from, mx, my, 1)} Q${mx.toFixed(1)} ${my.toFixed(1)} ${rim(to, mx, my, 5)}`;
}

export function LineagePage() {
  const [lit, setLit] = useState("");
  useEffect(() => void catalogued(), []);
  const layers = new Map(catalogue.value.map((policy) => [policy.name, policy.layers]));
  const shown = (node: Node) => !node.open.startsWith("/lab/engine") || !layers.size || (layers.get(node.id) ?? []).includes("engine");
  return (
    <div class="page">
      <header class="lead"><h1>{t("mapTitle")}</h1><p>{t("mapLead")}</p></header>
      <div class="scroll map-box" tabIndex={0} role="region" aria-label={t("mapTitle")}>
        <svg class="map" viewBox={`0 0 ${WIDE} ${TALL}`} role="group" aria-label={t("mapTitle")}>
          <defs>
            <marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" /></marker>
            <marker id="tip-lit" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" /></marker>
          </defs>
          {(Object.keys(FAMILIES) as Family[]).map((family) => {
            const [x, y, width, height] = FAMILIES[family];
            return (
              <g key={family} class={`family family-${family}`}>
                <rect x={x} y={y} width={width} height={height} rx="14" />
                <text x={family === "resource" ? x + 150 : x + 14} y={family === "resource" ? y + 60 : y + 22}>{t(`family_${family}`)}</text>
              </g>
            );
          })}
          {EDGES.map(([from, to, bend, dashed]) => {
            const key = `${from}_${to}`;
            return (
              <g key={key} class={`edge${dashed ? " dashed" : ""}${lit === key ? " lit" : ""}`} onMouseEnter={() => setLit(key)} onMouseLeave={() => setLit("")}>
                <path class="reach" d={arrow(byId.get(from)!, byId.get(to)!, bend)} />
                <path class="shaft" d={arrow(byId.get(from)!, byId.get(to)!, bend)} marker-end={`url(#${lit === key ? "tip-lit" : "tip"})`}><title>{t(`edge_${key}` as Key)}</title></path>
              </g>
            );
          })}
          {NODES.map((node) => {
            const box = (
              <>
                <rect x={node.x - half(node)} y={node.y - 19} width={2 * half(node)} height={38} rx="10" />
                <text x={node.x} y={node.y} text-anchor="middle" dominant-baseline="central">{name(node.id)}</text>
              </>
            );
            return shown(node) ? (
              <a key={node.id} class="node" href={node.open} aria-label={t("mapOpen", { name: name(node.id) })}>{box}</a>
            ) : (
              <g key={node.id} class="node only">{box}</g>
            );
          })}
        </svg>
      </div>
      <p class="map-said" aria-live="polite">{lit ? <><strong>{name(lit.split("_")[0]!)} → {name(lit.split("_")[1]!)}</strong> {t(`edge_${lit}` as Key)}</> : t("mapCaption")}</p>
      <h2>{t("mapList")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("mapList")}>
        <table class="wide-table">
          <thead><tr><th scope="col">{t("mapFrom")}</th><th scope="col">{t("mapTo")}</th><th scope="col">{t("mapChange")}</th></tr></thead>
          <tbody>
            {EDGES.map(([from, to, , dashed]) => {
              const key = `${from}_${to}`;
              return (
                <tr key={key} class={lit === key ? "lit" : ""} onMouseEnter={() => setLit(key)} onMouseLeave={() => setLit("")}>
                  <th scope="row">{name(from)}</th><td>{dashed ? "⇢" : "→"} {name(to)}</td><td>{t(`edge_${key}` as Key)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function name(id: string): string {
  return coded("name", id, "policy_other");
}
