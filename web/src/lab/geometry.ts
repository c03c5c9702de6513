// Where the lanes and marks of a time line are, for every way of drawing it.
import type { Lines, Mark } from "./marks";
import { once } from "./runs";

export const LEFT = 12;
export const TOP = 6;
export const AXIS = 24;
const LANE = 34; // px, of a lane with a name
const BAR = 24;
const HOLD = 13; // px, of a lock that is held
const ROW = 9; // px, of a row of a lane that has several
const TALLEST = 180; // px, of a lane with many rows
const ALL = 420; // px, of all lanes with rows
const LEAST = 22;
const MOST_NAMED = 64; // lanes; with more they become thin

export interface Shape {
  tops: number[];
  tall: number[]; // of each lane
  bottom: number;
  named: boolean;
  gap: number; // between a lane and its marks
}

export const shapeOf = once((lines: Lines): Shape => {
  const named = lines.lanes.length <= MOST_NAMED;
  const thin = Math.max(2, Math.min(ROW, Math.floor(2000 / Math.max(lines.lanes.length, 1))));
  const wanted = lines.rows?.map((rows) => Math.min(TALLEST, rows * ROW)) ?? [];
  const shrink = Math.min(1, ALL / wanted.reduce((sum, each) => sum + each, 0));
  const tall = lines.lanes.map((_, lane) => {
    if (!named) return thin;
    if (!lines.rows) return LANE + (lines.under?.[lane] ?? 0) * HOLD;
    return lines.lanes.length > 1 ? Math.max(LEAST, wanted[lane]! * shrink) : wanted[lane]!;
  });
  const tops: number[] = [];
  let bottom = TOP;
  for (const height of tall) {
    tops.push(bottom);
    bottom += height;
  }
  return { tops, tall, bottom, named, gap: lines.rows || !named ? 0.5 : (LANE - BAR) / 2 };
});

/** Top and height of a mark, px. */
export function barOf(lines: Lines, shape: Shape, mark: Mark): [number, number] {
  if (mark.lane < 0) return [TOP, shape.bottom - TOP];
  if (mark.state === "hold") return [shape.tops[mark.lane]! + LANE - 2 + mark.row! * HOLD, HOLD - 2];
  if (lines.under && shape.named) return [shape.tops[mark.lane]! + shape.gap, BAR];
  const rows = lines.rows?.[mark.lane] ?? 1;
  const inside = lines.rows && shape.named && lines.lanes.length > 1 ? 3 : 0; // lanes with rows need a border between them
  const row = (shape.tall[mark.lane]! - 2 * inside) / rows;
  const gap = rows > 1 ? Math.min(0.5, row / 6) : shape.gap;
  const height = Math.min(row - 2 * gap, lines.rows ? BAR : Infinity);
  if (mark.share !== undefined) {
    const room = shape.tall[mark.lane]! - 10;
    const filled = Math.max(2, mark.share * room);
    return [shape.tops[mark.lane]! + 5 + room - filled, filled];
  }
  return [shape.tops[mark.lane]! + inside + (mark.row ?? 0) * row + (rows > 1 ? gap : (row - height) / 2), height];
}

/** The mark under a point, or `slack` of time beside it, that has begun by `until`; of several the one that began last. */
export function markAt(lines: Lines, shape: Shape, time: number, y: number, until: number, slack: number): Mark | null {
  if (time > until) return null;
  for (let index = lines.marks.length - 1; index >= 0; index--) {
    const mark = lines.marks[index]!;
    if (mark.start > time + slack || mark.end < time - slack || mark.start >= until) continue;
    const [top, height] = barOf(lines, shape, mark);
    if (y >= top - 1 && y <= top + height + 1) return mark;
  }
  return null;
}

/** Room for the names, px. */
export function nameRoom(lines: Lines, shape: Shape): number {
  if (!shape.named) return 20;
  return 38 + 8.5 * Math.min(12, Math.max(...lines.lanes.map((lane) => lane.length), 1));
}
