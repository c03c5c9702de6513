// Pictures and numbers as files. Nothing is sent anywhere.
import { render } from "preact";
import type { Answer, RunView } from "../api.types";
import { called } from "./called";
import { AXIS, LEFT, nameRoom, shapeOf, TOP } from "./geometry";
import { Lanes, Marks, Signs, Ticks } from "./Shapes";
import { linesOf } from "./marks";
import { untilOf } from "./Timeline";

const WIDTH = 1200; // px of a picture

export function saved(name: string, content: string | Blob, type: string): void {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function quoted(value: unknown): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** {meters: {A: 8}} as {"meters.A": 8}; lists of names as one text. */
function flat(row: Record<string, unknown>, before = ""): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(row))
    if (Array.isArray(value)) found[before + key] = value.map((each) => (each && typeof each === "object" ? JSON.stringify(each) : each)).join(" ");
    else if (value && typeof value === "object") Object.assign(found, flat(value as Record<string, unknown>, `${before}${key}.`));
    else found[before + key] = value;
  return found;
}

/** One row for each job, packet or step, with its policy. */
export function csv(answer: Answer): string {
  const rows: Record<string, unknown>[] = answer.runs.flatMap((run) => {
    const { result } = run;
    const list: Record<string, unknown>[] =
      answer.layer === "cpu" ? [...result["tasks"], ...(result["jobs"] ?? [])] : answer.layer === "link" ? result["departures"] : answer.layer === "ledger" ? result["requests"] : (result["jobs"] ?? result["steps"] ?? run.steps.map((step) => ({ time: step.time, kind: step.kind, ...step.what })));
    return list.map((row) => ({ policy: run.spec, ...row }));
  });
  const plain = rows.map((row) => flat(row));
  const columns = [...new Set(plain.flatMap((row) => Object.keys(row)))];
  return [columns.join(","), ...plain.map((row) => columns.map((column) => quoted(row[column])).join(","))].join("\n") + "\n";
}

const STYLES = ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "opacity", "paint-order", "stroke-dasharray", "stroke-linejoin"];

interface Shown {
  answer: Answer;
  run: RunView;
  place: number;
}

/** A time line as it stands, as one picture. */
function Picture({ answer, run, place, end, index }: Shown & { end: number; index: number }) {
  const lines = linesOf(answer, run);
  const shape = shapeOf(lines);
  const name = nameRoom(lines, shape);
  const scale = (WIDTH - name - LEFT) / Math.max(end, 1e-9);
  const until = untilOf(answer, lines, run, place);
  const height = shape.bottom + AXIS;
  const drawn = { lines, scale, name };
  return (
    <svg width={WIDTH} height={height} viewBox={`0 0 ${WIDTH} ${height}`}>
      <clipPath id={`seen-${index}`}><rect x={name - 4} y={0} width={until * scale + 4} height={height} /></clipPath>
      <clipPath id={`names-${index}`}><rect x={0} y={0} width={name - 6} height={height} /></clipPath>
      <Lanes lines={lines} width={WIDTH} names={`names-${index}`} />
      <Ticks {...drawn} end={end} />
      <Signs {...drawn} past={false} />
      <g clip-path={`url(#seen-${index})`}><Marks {...drawn} /><Signs {...drawn} past /></g>
      <line class="now-line" x1={name + until * scale} x2={name + until * scale} y1={TOP} y2={shape.bottom + 5} />
    </svg>
  );
}

/** All time lines, one under the other, with their colours written into them. */
export function svgOf(shown: readonly Shown[]): string {
  const end = Math.max(...shown.map(({ answer, run }) => linesOf(answer, run).end));
  const background = getComputedStyle(document.body).backgroundColor;
  const ink = getComputedStyle(document.body).color;
  const shelf = Object.assign(document.createElement("div"), { className: "hidden" });
  document.body.append(shelf);
  let height = 12;
  const parts: string[] = [];
  shown.forEach((each, index) => {
    render(<Picture {...each} end={end} index={index} />, shelf);
    const copy = styled(shelf.querySelector("svg")!);
    copy.setAttribute("y", String(height + 22));
    parts.push(`<text x="8" y="${height + 15}" font-family="sans-serif" font-size="14" font-weight="600" fill="${ink}">${called(each.run.spec, each.answer.layer).replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</text>`);
    parts.push(new XMLSerializer().serializeToString(copy));
    height += Number(copy.getAttribute("height")) + 36;
    render(null, shelf);
  });
  shelf.remove();
  const hatches = document.querySelector("#hatches defs");
  const defs = hatches ? new XMLSerializer().serializeToString(styled(hatches as SVGElement)) : "";
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"><rect width="100%" height="100%" fill="${background}"/>${defs}${parts.join("")}</svg>`;
}

function styled<T extends SVGElement>(source: T): T {
  const copy = source.cloneNode(true) as T;
  const from = [source, ...source.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((each, index) => {
    const style = getComputedStyle(each);
    const target = to[index]!;
    for (const name of STYLES) if (!(name === "fill" && target.getAttribute("fill")?.startsWith("url"))) target.setAttribute(name, style.getPropertyValue(name));
    if (style.transform !== "none") target.setAttribute("transform", style.transform);
    target.removeAttribute("class");
    target.removeAttribute("style");
  });
  return copy;
}

export async function pngOf(shown: readonly Shown[]): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgOf(shown)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
