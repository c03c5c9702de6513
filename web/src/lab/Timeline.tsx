// The time line. What it shows is drawn once; the clock only moves a window over it, by transforms alone, so that a
// frame costs neither layout nor paint. Up to MOST_SVG marks are SVG, more are a canvas in the same shell.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Answer, RunView } from "../api.types";
import { t } from "../i18n";
import { num, show } from "../numbers";
import { lang, theme } from "../settings";
import { called } from "./called";
import { draw, MOST_SVG } from "./canvas";
import { AXIS, LEFT, markAt, nameRoom, shapeOf, TOP, type Shape } from "./geometry";
import { Lanes, Marks, Signs, Ticks } from "./Shapes";
import { linesOf, type Lines, type Mark } from "./marks";
import { indexOf, once, placesOf, upTo } from "./runs";
import { seekTime } from "./player";
import { now, playing, zoom } from "./session";

const PAD = 4; // px before time 0

export function useWidth(): [preact.RefObject<HTMLElement | null>, number] {
  const box = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const measure = () => box.current && setWidth(Math.max(220, Math.floor(box.current.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

interface Props {
  answer: Answer;
  run: RunView;
  place: number; // the step that is shown
  end: number; // of all runs, so that they share a scale
}

export function Timeline({ answer, run, place, end }: Props) {
  const lines = linesOf(answer, run);
  const shape = shapeOf(lines);
  const [box, width] = useWidth();
  const names = useId();
  const until = untilOf(answer, lines, run, place);
  const name = nameRoom(lines, shape);
  const long = (width - name - LEFT) * zoom.value; // px of all time
  const scale = long / Math.max(end, 1e-9);
  const height = shape.bottom + AXIS;
  const lit = litLane(answer, lines, run.steps[place]);
  // The strip of time begins PAD before 0. What of it is in view follows the clock; a window over it hides what is to come.
  const [strip, view] = [long + PAD + LEFT, width - name + PAD];
  const head = PAD + until * scale;
  const away = Math.round(Math.max(0, Math.min(head - 0.7 * view, strip - view)));
  const drawn = { lines, scale, name: PAD };
  const many = lines.marks.length > MOST_SVG;
  const lanes = useMemo(
    () => (
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <clipPath id={names}><rect x={0} y={0} width={name - 6} height={height} /></clipPath>
        <Lanes lines={lines} width={width} names={names} />
      </svg>
    ),
    [lines, width],
  );
  const still = useMemo(
    () => (
      <svg width={strip} height={height} viewBox={`0 0 ${strip} ${height}`} aria-hidden="true">
        <Ticks {...drawn} end={end} />
        {!many && <Signs {...drawn} past={false} />}
      </svg>
    ),
    [lines, scale, end],
  );
  const moved = useMemo(
    () =>
      many ? (
        <Bitmap lines={lines} scale={scale} width={strip - PAD} height={height} />
      ) : (
        <svg width={strip} height={height} viewBox={`0 0 ${strip} ${height}`} aria-hidden="true">
          <Marks {...drawn} />
          <Signs {...drawn} past />
        </svg>
      ),
    [lines, scale],
  );
  const right = (px: number) => ({ transform: `translateX(${px}px)` });
  return (
    <figure class="timeline" ref={box} role="img" aria-label={useSaid(called(run.spec, answer.layer), lines, run, place, until)} style={{ height: `${height}px` }}>
      {lanes}
      {lit >= 0 && <div class="lit-lane" style={{ height: `${shape.tall[lit]! - 2}px`, transform: `translateY(${shape.tops[lit]! + 1}px)` }} />}
      <div class="view" style={{ left: `${name - PAD}px` }}>
        <div class="strip" style={{ width: `${strip}px`, ...right(-away) }}>
          {still}
          <div class="window" style={right(head - strip)}><div class="seen" style={right(strip - head)}>{moved}</div></div>
          <div class="head" style={{ ...right(head), top: `${TOP}px`, height: `${shape.bottom - TOP + 5}px` }} />
        </div>
      </div>
      <Tip lines={lines} shape={shape} scale={scale} begin={name - away} name={name} until={until} width={width} />
    </figure>
  );
}

/** In words, for who does not see it; not while it plays. */
function useSaid(policy: string, lines: Lines, run: RunView, place: number, until: number): string {
  const kept = useRef("");
  if (kept.current && playing.value) return kept.current;
  const count = upTo(startsOf(lines), until - 1e-12);
  const done = lines.marks.slice(Math.max(0, count - 12), count).filter((mark) => mark.lane >= 0);
  const text = done.map((mark) => `${mark.title} ${show(mark.start, lang.value)}–${show(Math.min(mark.end, until), lang.value)}`).join(", ") || t("notYet");
  return (kept.current = t("timelineOf", { policy, time: show(run.steps[place]?.time ?? 0, lang.value), text }));
}

/** When each mark begins; they are in that order. */
export const startsOf = once((lines: Lines) => Float64Array.from(lines.marks, (mark) => mark.start));

function Bitmap({ lines, scale, width, height }: { lines: Lines; scale: number; width: number; height: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [dark, setDark] = useState(false);
  useEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setDark(scheme.matches);
    changed();
    scheme.addEventListener("change", changed);
    return () => scheme.removeEventListener("change", changed);
  }, []);
  const colours = theme.value;
  useEffect(() => {
    if (canvas.current) draw(canvas.current, lines, scale, width, height);
  }, [lines, scale, width, height, colours, dark]);
  return <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px`, marginLeft: `${PAD}px` }} aria-hidden="true" />;
}

interface TipProps {
  lines: Lines;
  shape: Shape;
  scale: number;
  begin: number; // where time 0 is, px
  name: number;
  until: number;
  width: number;
}

/** What is under the pointer; a click there takes the clock to it. */
function Tip({ lines, shape, scale, begin, name, until, width }: TipProps) {
  const [found, setFound] = useState<{ mark: Mark; x: number; y: number } | null>(null);
  const timeAt = (event: PointerEvent | MouseEvent) => (event.offsetX - begin) / scale;
  const state = found && lines.states[found.mark.state];
  return (
    <>
      <div
        class="feel"
        onPointerMove={(event) => {
          const mark = event.offsetX < name ? null : markAt(lines, shape, timeAt(event), event.offsetY, until, 3 / scale);
          if (mark !== found?.mark) setFound(mark && { mark, x: event.offsetX, y: event.offsetY });
        }}
        onPointerLeave={() => setFound(null)}
        onClick={(event) => lines.unit === "time" && event.offsetX >= name && seekTime(timeAt(event))}
      />
      {found && (
        <div class="tip" style={found.x > width / 2 ? { right: `${width - found.x + 10}px`, top: `${found.y + 12}px` } : { left: `${found.x + 10}px`, top: `${found.y + 12}px` }}>
          <strong>{found.mark.title}</strong> {state && t(state)} {show(found.mark.start, lang.value, 3)}–{show(found.mark.end, lang.value, 3)}
        </div>
      )}
    </>
  );
}

/** Up to which time the marks are uncovered. */
export function untilOf(answer: Answer, lines: Lines, run: RunView, place: number): number {
  const step = run.steps[place];
  if (!step) return 0;
  if (answer.layer === "router") return step.kind === "dispatch" ? num(step.time) + 1 : num(step.time);
  if (answer.layer === "cluster") return upTo(placesOf(run, "start"), place);
  return Math.min(Math.max(num(step.time), now.value), lines.end);
}

function litLane(answer: Answer, lines: Lines, step: RunView["steps"][number] | undefined): number {
  if (!step || !shapeOf(lines).named) return -1;
  const id = answer.layer === "router" || answer.layer === "ledger" ? step.what["tenant"] : answer.layer === "cluster" ? step.what["user"] : answer.layer === "link" ? step.running[0] : step.what["ran"]?.[0];
  return typeof id === "string" ? indexOf(lines.lanes, id) : -1;
}
