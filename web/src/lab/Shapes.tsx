// The parts of a time line as SVG. None of them knows the clock: they are drawn once.
import { memo } from "preact/compat";
import { ticks } from "../numbers";
import { fill } from "./colours";
import { barOf, shapeOf, TOP } from "./geometry";
import type { Lines, Sign } from "./marks";

export interface Drawn {
  lines: Lines;
  scale: number; // px for a unit of time
  name: number; // px of room for the names
}

export const Lanes = memo(function Lanes({ lines, width, names }: { lines: Lines; width: number; names: string }) {
  const shape = shapeOf(lines);
  return (
    <g>
      {lines.lanes.map((lane, index) => {
        const [top, tall] = [shape.tops[index]!, shape.tall[index]!];
        return (
          <g key={lane}>
            {tall > 3 && <rect class="lane" x={0} y={top + (shape.named && tall > 12 ? 1 : 0)} width={width} height={tall - (tall > 12 ? 2 : 1)} rx={tall > 12 ? 5 : 1} />}
            {shape.named && lane && !lines.rows && <rect x={6} y={top + 10} width={12} height={14} rx={3} {...fill(index)} />}
            {shape.named && lane && lines.coloured && <rect x={6} y={top + tall / 2 - 7} width={12} height={14} rx={3} {...fill(index)} />}
            {shape.named && lane && <text class="name" x={24} y={top + (lines.under ? 34 : tall) / 2} dominant-baseline="central" clip-path={`url(#${names})`}>{lane}</text>}
          </g>
        );
      })}
    </g>
  );
});

export const Ticks = memo(function Ticks({ lines, scale, name, end }: Drawn & { end: number }) {
  const { bottom } = shapeOf(lines);
  const each = scale >= 22 && end <= 2000;
  return (
    <g>
      {ticks(end, each ? end : Math.max(3, Math.floor((end * scale) / 70))).map((at) => (
        <g key={at} transform={`translate(${name + at * scale} 0)`}>
          <line class="grid" y1={TOP} y2={bottom} />
          <text class="tick" y={bottom + 17} text-anchor="middle">{at}</text>
        </g>
      ))}
    </g>
  );
});

export const Marks = memo(function Marks({ lines, scale, name }: Drawn) {
  const shape = shapeOf(lines);
  return (
    <g>
      {lines.spans.map((span, index) => (
        <rect key={`s${index}`} class="span" x={name + span.start * scale} y={shape.tops[span.lane]! + (lines.under ? 34 : shape.tall[span.lane]!) / 2 - 2.5} width={Math.max(0, (span.end - span.start) * scale)} height={5} rx={2.5} />
      ))}
      {lines.marks.map((mark, index) => {
        const width = Math.max(1, (mark.end - mark.start) * scale - (lines.rows || mark.share ? 0 : 1));
        const x = name + mark.start * scale + (lines.rows ? 0 : 0.5);
        const [y, height] = barOf(lines, shape, mark);
        if (mark.state === "hold")
          return (
            <g key={index} class="hold-bar">
              <rect x={x} y={y} width={width} height={height} rx={3} />
              {width > 6 * mark.label.length + 4 && <text x={x + 4} y={y + height / 2 + 0.5} dominant-baseline="central">{mark.label}</text>}
            </g>
          );
        if (mark.lane < 0) return <rect key={index} class={`lost ${mark.state}`} x={x} y={y} width={width} height={height} />;
        return (
          <g key={index} class={`mark ${mark.state}`}>
            <rect x={x} y={y} width={width} height={height} rx={Math.min(4, width / 3, height / 4)} {...fill(mark.who ?? mark.lane)} />
            {width > 7 * mark.label.length + 8 && height > 12 && mark.label && (
              <text class="label" x={x + width / 2} y={y + height / 2 + 0.5} text-anchor="middle" dominant-baseline="central">{mark.label}</text>
            )}
          </g>
        );
      })}
    </g>
  );
});

/** `past`: as they look once the clock has reached them. Before that only what is known beforehand is there, paler. */
export const Signs = memo(function Signs({ lines, scale, name, past }: Drawn & { past: boolean }) {
  const shape = shapeOf(lines);
  const known = lines.unit === "time" && !lines.rows;
  return <g>{lines.signs.map((sign, index) => (sign.kind !== "finish" && (past || known) ? <path key={index} class={classOf(sign, past)} d={pathOf(sign, name + sign.at * scale, shape.tops[sign.lane]!, shape.tall[sign.lane]!)} /> : null))}</g>;
});

function classOf(sign: Sign, past: boolean): string {
  if (sign.kind === "arrival") return past ? "sign" : "sign later";
  return past ? `sign ${sign.kind}` : "sign deadline";
}

export function pathOf(sign: Sign, x: number, top: number, tall: number): string {
  const long = Math.min(tall, 34);
  const low = top + Math.min(tall - 4, long - 4);
  if (sign.kind === "arrival") return `M${x} ${low} v${-Math.min(11, tall - 2)} m-3.5 4 l3.5 -4.5 l3.5 4.5`;
  return `M${x} ${top + 3} v${long / 2 - 5} m-3.5 -4 l3.5 4.5 l3.5 -4.5`; // above an arrival at the same time
}
