// The time line: every mark is drawn once; the clock only moves what uncovers them. So playing costs next to nothing.
import { memo } from "preact/compat";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Answer, RunView } from "../api.types";
import { t, type Key } from "../i18n";
import { num, show, ticks } from "../numbers";
import { lang } from "../settings";
import { Dot, fill } from "./colours";
import { entities, linesOf, type Lines } from "./marks";

const ROOMY = { lane: 34, bar: 24 };
const DENSE = { lane: 9, bar: 8 };
const size = (lines: Lines) => (lines.dense ? DENSE : ROOMY);
const LEFT = 12;
const TOP = 6;
const AXIS = 24;

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
  const lines = useMemo(() => linesOf(answer, run), [answer, run]);
  const [box, width] = useWidth();
  const clip = useId();
  const step = run.steps[place];
  const until = untilOf(answer, lines, run, place);
  const { lane: LANE } = size(lines);
  const name = 38 + 8.5 * Math.min(12, Math.max(...lines.lanes.map((lane) => lane.length), 1));
  const scale = (width - name - LEFT) / Math.max(end, 1);
  const height = TOP + lines.lanes.length * LANE + AXIS;
  const lit = lines.dense ? -1 : litLane(answer, lines, step);
  const done = lines.marks.filter((mark) => mark.start < until && mark.lane >= 0);
  const text = done.slice(-12).map((mark) => `${mark.title} ${mark.start}–${Math.min(mark.end, until)}`).join(", ") || t("notYet");
  return (
    <figure class="timeline" ref={box}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t("timelineOf", { policy: run.spec, time: show(step?.time ?? 0, lang.value), text })}>
        <clipPath id={clip}>
          <rect class="uncover" x={name - 4} y={0} width={Math.max(0, until * scale + 4)} height={height} />
        </clipPath>
        <clipPath id={`${clip}-names`}>
          <rect x={0} y={0} width={name - 6} height={height} />
        </clipPath>
        <Grid lines={lines} scale={scale} name={name} width={width} lit={lit} names={`${clip}-names`} end={end} />
        <g clip-path={`url(#${clip})`}>{run.fluid ? <Fluid run={run} lines={lines} scale={scale} name={name} /> : <Marks lines={lines} scale={scale} name={name} />}</g>
        <Signs lines={lines} scale={scale} name={name} until={until} all={lines.unit === "time"} />
        <g class="head" style={{ transform: `translateX(${name + until * scale}px)` }}>
          <line y1={TOP} y2={height - AXIS + 5} />
          <path d={`M-5 ${height - AXIS + 5} h10 l-5 -7 z`} />
        </g>
      </svg>
    </figure>
  );
}

/** Up to which time the marks are uncovered. */
export function untilOf(answer: Answer, lines: Lines, run: RunView, place: number): number {
  const step = run.steps[place];
  if (!step) return 0;
  if (answer.layer === "router") return step.kind === "dispatch" ? num(step.time) + 1 : num(step.time);
  if (answer.layer === "cluster") return run.steps.slice(0, place + 1).filter((each) => each.kind === "start").length;
  return Math.min(num(step.time), lines.end);
}

function litLane(answer: Answer, lines: Lines, step: RunView["steps"][number] | undefined): number {
  if (!step) return -1;
  const id = answer.layer === "router" ? step.what["tenant"] : answer.layer === "cluster" ? step.what["user"] : answer.layer === "link" ? step.running[0] : step.what["ran"]?.[0];
  if (typeof id !== "string") return -1;
  const exact = lines.lanes.indexOf(id);
  return exact >= 0 ? exact : lines.lanes.indexOf(id.slice(0, Math.max(id.lastIndexOf("#"), 0)));
}

const Grid = memo(function Grid({ lines, scale, name, width, lit, names, end }: { lines: Lines; scale: number; name: number; width: number; lit: number; names: string; end: number }) {
  const { lane: LANE } = size(lines);
  const bottom = TOP + lines.lanes.length * LANE;
  const wide = scale >= 16 && end <= 60;
  return (
    <g>
      {lines.lanes.map((lane, index) => (
        <g key={lane}>
          <rect class={index === lit ? "lane lit" : "lane"} x={0} y={TOP + index * LANE + (lines.dense ? 0 : 1)} width={width} height={LANE - (lines.dense ? 1 : 2)} rx={lines.dense ? 1 : 5} />
          {!lines.dense && <rect x={6} y={TOP + index * LANE + 10} width={12} height={14} rx={3} {...fill(index)} />}
          {!lines.dense && <text class="name" x={24} y={TOP + index * LANE + LANE / 2} dominant-baseline="central" clip-path={`url(#${names})`}>{lane}</text>}
        </g>
      ))}
      {ticks(end, wide ? end : Math.max(2, Math.floor((width - name) / 70))).map((at) => (
        <g key={at} transform={`translate(${name + at * scale} 0)`}>
          <line class="grid" y1={TOP} y2={bottom} />
          <text class="tick" y={bottom + 17} text-anchor="middle">{at}</text>
        </g>
      ))}
    </g>
  );
});

const Marks = memo(function Marks({ lines, scale, name }: { lines: Lines; scale: number; name: number }) {
  const { lane: LANE, bar: BAR } = size(lines);
  return (
    <g>
      {lines.spans.map((span, index) => (
        <rect key={`s${index}`} class="span" x={name + span.start * scale} y={TOP + span.lane * LANE + LANE / 2 - 2.5} width={Math.max(0, (span.end - span.start) * scale)} height={5} rx={2.5} />
      ))}
      {lines.marks.map((mark, index) => {
        const width = Math.max(1, (mark.end - mark.start) * scale - 1);
        const x = name + mark.start * scale + 0.5;
        if (mark.lane < 0)
          return <rect key={index} class={`lost ${mark.state}`} x={x} y={TOP} width={width} height={lines.lanes.length * LANE} />;
        const y = TOP + mark.lane * LANE + (LANE - BAR) / 2;
        return (
          <g key={index} class={`mark ${mark.state}`}>
            <rect x={x} y={y} width={width} height={BAR} rx={Math.min(4, width / 3)} {...fill(mark.who ?? mark.lane)} />
            {width > 7 * mark.label.length + 8 && mark.label && (
              <text class="label" x={x + width / 2} y={y + BAR / 2 + 0.5} text-anchor="middle" dominant-baseline="central">{mark.label}</text>
            )}
          </g>
        );
      })}
    </g>
  );
});

const Fluid = memo(function Fluid({ run, lines, scale, name }: { run: RunView; lines: Lines; scale: number; name: number }) {
  const { lane: LANE, bar: BAR } = size(lines);
  return (
    <g>
      {(run.fluid ?? []).flatMap((flood) =>
        Object.entries(flood.shares).map(([flow, share]) => {
          const lane = lines.lanes.indexOf(flow);
          const tall = Math.max(2, share * BAR);
          return (
            <rect key={`${flood.start}${flow}`} x={name + flood.start * scale} width={(flood.end - flood.start) * scale + 0.3} y={TOP + lane * LANE + (LANE + BAR) / 2 - tall} height={tall} {...fill(lane)} />
          );
        }),
      )}
    </g>
  );
});

const Signs = memo(
  function Signs({ lines, scale, name, until, all }: { lines: Lines; scale: number; name: number; until: number; all: boolean }) {
    const { lane: LANE } = size(lines);
    return (
      <g>
        {lines.signs.map((sign, index) => {
          if (sign.kind === "finish" || (!all && sign.at > until) || (sign.kind === "missed" && sign.at > until)) return null;
          const x = name + sign.at * scale;
          const y = TOP + sign.lane * LANE;
          if (sign.kind === "arrival") return <path key={index} class={sign.at > until ? "sign later" : "sign"} d={`M${x} ${y + LANE - 4} v-11 m-3.5 4 l3.5 -4.5 l3.5 4.5`} />;
          return <path key={index} class={`sign ${sign.kind}`} d={`M${x} ${y + 4} v${LANE - 9} m-3.5 -4 l3.5 4.5 l3.5 -4.5`} />;
        })}
      </g>
    );
  },
  (a, b) => a.lines === b.lines && a.scale === b.scale && a.name === b.name && (a.until === b.until || (a.all && !a.lines.signs.some((sign) => sign.kind !== "finish"))),
);

export function Legend({ answer, run }: { answer: Answer; run: RunView }) {
  const { layer } = answer;
  const bar: Key = layer === "router" ? "legendDispatch" : layer === "link" ? "legendSend" : "legendRun";
  const jobs = run.result["jobs"] as unknown[] | undefined;
  const lost = layer === "cpu" && (run.result["timeline"] as Record<string, any>[]).some((slice) => slice["state"] === "blocked");
  if (layer === "cluster") return null;
  if (layer === "engine")
    return (
      <ul class="legend">
        {entities(answer).slice(0, 6).map((client, index) => <li key={client}><Dot index={index} />{client}</li>)}
        <li><svg width="22" height="14" class="mark switch"><rect class="key-bar" x="1" y="1" width="20" height="12" /></svg>{t("legendPrefill")}</li>
        <li><svg width="22" height="14"><rect class="key-bar" x="1" y="1" width="20" height="12" /></svg>{t("legendDecode")}</li>
      </ul>
    );
  return (
    <ul class="legend" aria-hidden="true">
      {!run.fluid && <li><svg width="22" height="14"><rect class="key-bar" x="1" y="1" width="20" height="12" rx="3" /></svg>{t(bar)}</li>}
      {run.fluid && <li><svg width="22" height="14"><rect class="key-bar" x="1" y="7" width="20" height="6" /></svg>{t("legendFluid")}</li>}
      {!run.fluid && <li><svg width="22" height="14"><rect class="span" x="1" y="4.5" width="20" height="5" rx="2.5" /></svg>{t("legendWait")}</li>}
      <li><svg width="14" height="14"><path class="sign" d="M7 13 v-11 m-3.5 4 l3.5 -4.5 l3.5 4.5" /></svg>{t("legendArrival")}</li>
      {jobs && <li><svg width="14" height="14"><path class="sign deadline" d="M7 1 v11 m-3.5 -4 l3.5 4.5 l3.5 -4.5" /></svg>{t("legendDeadline")}</li>}
      {jobs && <li><svg width="14" height="14"><path class="sign missed" d="M7 1 v11 m-3.5 -4 l3.5 4.5 l3.5 -4.5" /></svg>{t("legendMissed")}</li>}
      {lost && <li><svg width="22" height="14"><rect class="lost" x="1" y="0" width="20" height="14" /></svg>{t("legendBlocked")}</li>}
    </ul>
  );
}

/** The same as numbers, for who cannot or does not want to see it. */
export function TimelineTable({ answer, run, place }: { answer: Answer; run: RunView; place: number }) {
  const [open, setOpen] = useState(false);
  const lines = useMemo(() => linesOf(answer, run), [answer, run]);
  const until = untilOf(answer, lines, run, place);
  useEffect(() => setOpen(false), [answer.layer]);
  return (
    <details class="table-of" open={open} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{t("timelineTable")}</summary>
      {open && (
        <div class="scroll" tabIndex={0} role="region" aria-label={`${t("timelineTable")}: ${run.spec}`}>
          <table>
            <thead><tr><th scope="col">{t("tableLane")}</th><th scope="col">{t("tableStart")}</th><th scope="col">{t("tableEnd")}</th><th scope="col">{t("tableState")}</th></tr></thead>
            <tbody>
              {lines.marks.filter((mark) => mark.start < until).map((mark, index) => (
                <tr key={index} aria-current={mark.end >= until ? "step" : undefined}>
                  <th scope="row">{mark.title}</th><td>{show(mark.start, lang.value)}</td><td>{show(Math.min(mark.end, until), lang.value)}</td>
                  <td>{t(lines.dense ? (mark.state === "run" ? "legendDecode" : "legendPrefill") : mark.state === "run" ? "stateRun" : mark.state === "blocked" ? "stateBlocked" : mark.state === "switch" ? "stateSwitch" : "stateIdle")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
