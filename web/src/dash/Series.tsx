import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { lang, theme } from "../settings";
import { place, points, type Point } from "./stream";

const TONES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]];

/** Lines over time, one per tenant: colour and dash. Text beside it says the present values. */
export function Series({ title, names, read, most }: { title: string; names: string[]; read: (point: Point) => Record<string, number>; most?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const key = names.join("\n") + theme.value + lang.value;
  const data = (): uPlot.AlignedData => [points.value.map((point) => point.time), ...names.map((name) => points.value.map((point) => read(point)[name] ?? 0))];
  useEffect(() => {
    if (!box.current) return;
    const style = getComputedStyle(box.current);
    const axis = { stroke: style.getPropertyValue("color"), grid: { stroke: style.getPropertyValue("border-color"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const made = new uPlot(
      {
        width: Math.max(220, box.current.clientWidth), height: 170, legend: { show: false }, cursor: { show: false },
        scales: { y: { range: (_, __, max) => [0, most ?? Math.max(1, max * 1.1)] } },
        axes: [{ ...axis, space: 90, values: (_, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString(lang.value)) }, { ...axis, size: 44 }],
        series: [{}, ...names.map((name) => ({ label: name, stroke: TONES[place(name) % TONES.length]!, width: 2.2, dash: DASHES[place(name) % DASHES.length]!, points: { show: false } }))],
      },
      data(), box.current,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => box.current && made.setSize({ width: Math.max(220, box.current.clientWidth), height: 170 }));
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [key]);
  const latest = points.value;
  useEffect(() => plot.current?.setData(data()), [latest, key]);
  return (
    <figure class="series">
      <figcaption>{title}</figcaption>
      <div ref={box} class="plot" role="img" aria-label={title} />
    </figure>
  );
}
