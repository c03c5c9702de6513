// Exact rationals come as text ("7/2"); pictures need numbers, and readers compare decimals.
export function num(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return NaN;
  const [above, below] = value.split("/");
  return below === undefined ? Number(above) : Number(above) / Number(below);
}

/** Short, at most `digits` after the point. */
export function show(value: unknown, lang: string, digits = 2): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string" && !/^-?\d+(\/\d+)?$/.test(value)) return value;
  const number = num(value);
  return Number.isFinite(number) ? new Intl.NumberFormat(lang, { maximumFractionDigits: digits }).format(number) : String(value);
}

export function percent(value: number, lang: string): string {
  return new Intl.NumberFormat(lang, { style: "percent", maximumFractionDigits: 1 }).format(value);
}

/** Round numbers from 0 to `end`, about `count` of them. */
export function ticks(end: number, count: number): number[] {
  if (!(end > 0)) return [0];
  const rough = end / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max([1, 2, 5, 10].map((n) => n * power).find((size) => size >= rough) ?? rough, end <= 1 ? power : 1);
  const found = [];
  for (let n = 0; n * step <= end + 1e-9; n++) found.push(Number((n * step).toPrecision(12)));
  return found;
}
