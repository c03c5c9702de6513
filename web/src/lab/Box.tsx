// A field of the scenario. Whatever is typed is sent; what the server says against it stands beside it.
import { useId } from "preact/hooks";
import { places, problem } from "./session";

export type Place = readonly (string | number)[];

/** What was said of the value at this place, in the words of the command line. `inside`: also of what is in it. */
export function wrongAt(place: Place, inside = false): string {
  const lines = problem.value.split("\n");
  const found = places.value.findIndex((each) => (inside ? each.length >= place.length : each.length === place.length) && place.every((step, index) => each[index] === step));
  return found < 0 ? "" : (lines[found] ?? "").replace(/^scenario: /, "");
}

interface Props {
  whole: boolean;
  least?: number | undefined;
  most?: number | undefined;
  disabled?: boolean;
  value: string | number;
  empty?: string;
  label: string;
  size?: number;
  at?: Place;
  put: (text: string) => void;
}

export function Box({ whole, least, most, disabled = false, value, empty = "", label, size = 5, at, put }: Props) {
  const id = useId();
  const wrong = at ? wrongAt(at) : "";
  const step = (event: KeyboardEvent) => {
    const by = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    const now = Number(value);
    if (!whole || !by || !Number.isInteger(now) || value === "") return;
    event.preventDefault();
    put(String(Math.min(most ?? Infinity, Math.max(least ?? -Infinity, now + by))));
  };
  return (
    <>
      <input type="text" inputMode={whole ? "numeric" : "text"} autocomplete="off" spellcheck={false} size={size} class={size > 5 ? "long" : ""} disabled={disabled} value={value} placeholder={empty} aria-label={label} aria-invalid={wrong ? true : undefined} aria-describedby={wrong ? id : undefined} onKeyDown={step} onInput={(event) => put(event.currentTarget.value)} />
      {wrong && <span class="wrong" id={id}>{wrong}</span>}
    </>
  );
}

/** Text that a reader has typed: a number where it is a whole one. */
export function typed(text: string, whole: boolean): string | number {
  return whole && /^-?\d+$/.test(text) ? Number(text) : text;
}
