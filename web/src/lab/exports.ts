// Pictures and numbers as files. Nothing is sent anywhere.
import type { Answer } from "../api.types";

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

/** One row for each job, packet or step, with its policy. */
export function csv(answer: Answer): string {
  const rows: Record<string, unknown>[] = answer.runs.flatMap((run) => {
    const { result } = run;
    const list: Record<string, unknown>[] =
      answer.layer === "cpu" ? [...result["tasks"], ...(result["jobs"] ?? [])] : answer.layer === "link" ? result["departures"] : result["steps"];
    return list.map((row) => ({ policy: run.spec, ...row }));
  });
  const plain = rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value && typeof value === "object" ? JSON.stringify(value) : value])));
  const columns = [...new Set(plain.flatMap((row) => Object.keys(row)))];
  return [columns.join(","), ...plain.map((row) => columns.map((column) => quoted(row[column])).join(","))].join("\n") + "\n";
}

const STYLES = ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "opacity", "paint-order", "stroke-dasharray", "stroke-linejoin"];

/** All time lines, one under the other, with their colours written into them. */
export function svgOf(): string {
  const lines = [...document.querySelectorAll<HTMLElement>("article.run")];
  const background = getComputedStyle(document.body).backgroundColor;
  const ink = getComputedStyle(document.body).color;
  let width = 0;
  let height = 12;
  const parts: string[] = [];
  lines.forEach((card, index) => {
    const svg = card.querySelector<SVGSVGElement>(".timeline svg");
    if (!svg) return;
    const copy = styled(svg);
    copy.querySelectorAll("[id]").forEach((each) => (each.id = `${each.id}-${index}`));
    copy.querySelectorAll("[clip-path]").forEach((each) => each.setAttribute("clip-path", each.getAttribute("clip-path")!.replace(")", `-${index})`)));
    copy.setAttribute("y", String(height + 22));
    const title = card.dataset["policy"] ?? "";
    parts.push(`<text x="8" y="${height + 15}" font-family="sans-serif" font-size="14" font-weight="600" fill="${ink}">${title.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</text>`);
    parts.push(new XMLSerializer().serializeToString(copy));
    width = Math.max(width, svg.width.baseVal.value);
    height += svg.height.baseVal.value + 36;
  });
  const hatches = document.querySelector("#hatches defs");
  const defs = hatches ? new XMLSerializer().serializeToString(styled(hatches as SVGElement)) : "";
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect width="100%" height="100%" fill="${background}"/>${defs}${parts.join("")}</svg>`;
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

export async function pngOf(): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgOf()], { type: "image/svg+xml" }));
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
