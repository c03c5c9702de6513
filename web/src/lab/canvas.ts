// A time line with many marks, as one bitmap: the same shapes and hatches as the SVG, which would be too slow.
import { COUNT, HATCHES } from "./colours";
import { barOf, shapeOf } from "./geometry";
import type { Lines } from "./marks";
import { pathOf } from "./Shapes";

export const MOST_SVG = 1000; // marks that are drawn as SVG

interface Inks {
  tones: (CanvasPattern | string)[];
  edge: string;
  wait: string;
  lost: string;
  sign: string;
  deadline: string;
  missed: string;
}

const pale: Record<string, number> = { switch: 0.45, wait: 0.3 };

/** `width` and `height` in CSS px; x = 0 is time 0. */
export function draw(canvas: HTMLCanvasElement, lines: Lines, scale: number, width: number, height: number): void {
  const ratio = Math.min(devicePixelRatio || 1, 2, 16_000 / Math.max(width, height));
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(ratio, ratio);
  const inks = inksOf(pen, canvas);
  const shape = shapeOf(lines);
  pen.fillStyle = inks.wait;
  for (const span of lines.spans) {
    const tall = Math.min(5, shape.tall[span.lane]!);
    pen.fillRect(span.start * scale, shape.tops[span.lane]! + (shape.tall[span.lane]! - tall) / 2, (span.end - span.start) * scale, tall);
  }
  pen.font = "700 12px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const mark of lines.marks) {
    const x = mark.start * scale;
    const wide = Math.max(0.6, (mark.end - mark.start) * scale);
    const [y, tall] = barOf(lines, shape, mark);
    pen.globalAlpha = pale[mark.state] ?? 1;
    pen.fillStyle = mark.state === "hold" ? inks.sign : mark.lane < 0 ? inks.lost : inks.tones[(((mark.who ?? mark.lane) % COUNT) + COUNT) % COUNT]!;
    pen.fillRect(x, y, wide, tall);
    if (wide >= 3 && tall >= 4 && mark.lane >= 0) {
      pen.strokeStyle = inks.edge;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
    }
    pen.globalAlpha = 1;
    if (mark.label && wide > 7 * mark.label.length + 8 && tall > 12) {
      pen.strokeStyle = "rgb(10 20 35 / 0.72)";
      pen.lineWidth = 3;
      pen.strokeText(mark.label, x + wide / 2, y + tall / 2 + 0.5);
      pen.fillStyle = "#fff";
      pen.fillText(mark.label, x + wide / 2, y + tall / 2 + 0.5);
    }
  }
  if (shape.tall.some((tall) => tall < 10)) return;
  for (const sign of lines.signs) {
    if (sign.kind === "finish") continue;
    pen.strokeStyle = sign.kind === "arrival" ? inks.sign : sign.kind === "missed" ? inks.missed : inks.deadline;
    pen.lineWidth = sign.kind === "missed" ? 2.6 : 1.6;
    pen.stroke(new Path2D(pathOf(sign, sign.at * scale, shape.tops[sign.lane]!, shape.tall[sign.lane]!)));
  }
}

/** The colours that the style sheet gives, now. */
function inksOf(pen: CanvasRenderingContext2D, canvas: HTMLCanvasElement): Inks {
  const probe = document.createElement("span");
  probe.hidden = true;
  (canvas.parentElement ?? document.body).append(probe);
  const read = (value: string) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const tones = Array.from({ length: COUNT }, (_, index) => {
    probe.className = `tone-${index}`;
    return tile(pen, read("var(--tone)"), HATCHES[index]!);
  });
  const inks = {
    tones, edge: read("var(--edge)"), wait: read("var(--wait)"), lost: read("var(--lost)"),
    sign: read("var(--quiet)"), deadline: read("var(--accent)"), missed: read("var(--bad)"),
  };
  probe.remove();
  return inks;
}

function tile(pen: CanvasRenderingContext2D, tone: string, lines: string): CanvasPattern | string {
  if (!lines) return tone;
  const small = Object.assign(document.createElement("canvas"), { width: 8, height: 8 });
  const hatch = small.getContext("2d")!;
  hatch.fillStyle = tone;
  hatch.fillRect(0, 0, 8, 8);
  hatch.strokeStyle = "rgb(255 255 255 / 0.42)";
  hatch.lineWidth = 1.6;
  hatch.stroke(new Path2D(lines));
  return pen.createPattern(small, "repeat") ?? tone;
}
