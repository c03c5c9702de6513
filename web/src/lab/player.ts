// Moving the clock: by hand, or by itself.
import { effect } from "@preact/signals";
import { clock, decisions, last, playing, position, speed } from "./session";

export const SPEEDS = [0.5, 1, 2, 4, 8, 16];
const EVERY = 900; // ms for a step at speed 1

export function seek(to: number): void {
  position.value = Math.max(0, Math.min(Number.isFinite(to) ? Math.round(to) : to, last.value));
}

export function step(by: number): void {
  playing.value = false;
  seek(position.value + by);
}

/** To the last step that is not later. */
export function seekTime(time: number): void {
  playing.value = false;
  const all = clock.value;
  let low = 0;
  for (let high = all.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (all[middle]!.time <= time) low = middle + 1;
    else high = middle;
  }
  seek(low - 1);
}

export function nextDecision(): void {
  playing.value = false;
  seek(decisions.value.find((at) => at > position.value) ?? last.value);
}

export function toggle(): void {
  if (!playing.value && position.value >= last.value) position.value = 0;
  playing.value = !playing.value;
}

let frame = 0;
let due = 0;

function tick(at: number): void {
  if (!playing.value) return;
  const every = EVERY / speed.value;
  if (!due) due = at + every;
  if (at >= due) {
    const steps = Math.max(1, Math.floor((at - due) / every) + 1);
    due += steps * every;
    seek(position.value + steps);
    if (position.value >= last.value) {
      playing.value = false;
      return;
    }
  }
  frame = requestAnimationFrame(tick);
}

effect(() => {
  if (!playing.value) return;
  due = 0;
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
});

/** Keys of the whole page. Not while somebody types, and not while an input method composes. */
export function onKey(event: KeyboardEvent, others: Record<string, () => void>): void {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const target = event.target as HTMLElement;
  const typing = target.closest("input:not([type=range],[type=checkbox]), select, textarea, [contenteditable]");
  if (typing) return;
  const onButton = !!target.closest("button, a, summary, input");
  const acts: Record<string, () => void> = {
    ArrowRight: () => step(event.shiftKey ? 10 : 1),
    ArrowLeft: () => step(event.shiftKey ? -10 : -1),
    Home: () => step(-Infinity),
    End: () => step(Infinity),
    n: nextDecision,
    ...others,
  };
  if (!onButton) acts[" "] = toggle;
  if (target.matches("input[type=range]")) for (const own of ["ArrowRight", "ArrowLeft", "Home", "End"]) delete acts[own];
  const act = acts[event.key] ?? acts[event.key.toLowerCase()];
  if (act) {
    event.preventDefault();
    act();
  }
}
