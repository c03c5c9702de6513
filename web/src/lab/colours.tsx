// Who is who: a colour, and for each also a hatch of its own, so that colour is never alone. Okabe and Ito's order.
export const COUNT = 6;

/** Attributes of a shape that stands for entity `index`. */
export function fill(index: number): { class: string; fill: string } {
  const nth = ((index % COUNT) + COUNT) % COUNT;
  return { class: `who who-${nth}`, fill: `url(#hatch-${nth})` };
}

/** What is drawn over each tone, in squares of 8. */
export const HATCHES = [
  "", // plain
  "M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6",
  "M0 4 H8",
  "M-2 6 L2 10 M0 0 L8 8 M6 -2 L10 2",
  "M4 0 V8",
  "M2 2 h1 M6 6 h1",
];

/** Once in each picture, so that an exported one is complete. */
export function Hatches() {
  return (
    <defs>
      {HATCHES.map((lines, index) => (
        <pattern key={index} id={`hatch-${index}`} width="8" height="8" patternUnits="userSpaceOnUse">
          <rect class={`tone tone-${index}`} width="8" height="8" />
          {lines && <path class="hatch" d={lines} />}
        </pattern>
      ))}
    </defs>
  );
}

/** A small square in front of a name. */
export function Dot({ index }: { index: number }) {
  if (index < 0) return null;
  return <span class={`dot dot-${((index % COUNT) + COUNT) % COUNT}`} aria-hidden="true" />;
}
