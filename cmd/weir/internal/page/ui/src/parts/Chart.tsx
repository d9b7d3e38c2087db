import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock, compact, count, dayOf, inZone, moment } from "../lib/format";
import { language, t } from "../lib/i18n";
import { color, repaint } from "../lib/theme";
import { draw, powers, type Picture, type Zone } from "../lib/picture";

export interface Line {
  name: string;
  color: "--allowed" | "--near" | "--denied" | "--shadow" | "--banned" | "--degraded" | "--quiet";
  values: (number | null)[];
  fill?: boolean;
  bars?: boolean;
}

/** Mark is a line across the chart at a value of x, with a text: a limit. */
export interface Mark {
  x: number;
  text: string;
}

/** Plot is what a chart shows. x is the time in seconds since 1970, unless labels names its values. */
export interface Plot {
  title: string;
  unit?: string;
  x: number[];
  labels?: string[];
  lines: Line[];
  marks?: Mark[];
  log?: boolean; // the steps of the y axis grow, so that few are visible beside many
  zone?: Zone;
  numbered?: boolean; // the numbers of bars are above them
  about?: string; // what the picture of it says about its origin
}

/** Chart draws a plot, has its numbers in a table, and saves it as a picture. */
export function Chart({ plot, height = 200, quiet }: { plot: Plot; height?: number; quiet?: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const shape = JSON.stringify([plot.title, plot.x.length > 1 ? plot.x[1]! - plot.x[0]! : 0, plot.labels, plot.lines.map((l) => [l.name, l.color, l.fill, l.bars]), plot.marks, plot.log, plot.zone, height, language.value, repaint.value]);

  useEffect(() => {
    const at = ref.current!;
    const width = () => Math.max(240, at.clientWidth);
    const u = new uPlot(options(plot, width(), height), data(plot), at);
    drawn.current = u;
    latest(u);
    const resize = new ResizeObserver(() => u.width !== width() && u.setSize({ width: width(), height }));
    resize.observe(at);
    const redraw = () => u.redraw();
    const prints = ["beforeprint", "afterprint"];
    for (const e of prints) addEventListener(e, redraw);
    return () => {
      for (const e of prints) removeEventListener(e, redraw);
      resize.disconnect();
      u.destroy();
      drawn.current = null;
    };
  }, [shape]);
  useEffect(() => {
    const u = drawn.current;
    if (!u) return;
    u.setData(data(plot));
    latest(u);
  }, [plot]);

  return (
    <figure class="chart">
      {!quiet && (
        <figcaption>
          {plot.title}
          {plot.unit && <span class="quiet"> · {plot.unit}</span>}
        </figcaption>
      )}
      <div class="plot" ref={ref} role="img" aria-label={plot.title + ". " + t("chart.numbers", { title: plot.title })} />
      <div class="under">
        <Numbers plot={plot} />
        <span class="saves">
          <button type="button" class="plain" onClick={() => save(plot, "svg")}>
            {t("chart.svg")}
          </button>
          <button type="button" class="plain" onClick={() => save(plot, "png")}>
            {t("chart.png")}
          </button>
        </span>
      </div>
    </figure>
  );
}

/** latest makes the legend show the last numbers, unless the pointer is on others. */
function latest(u: uPlot): void {
  const n = u.data[0].length;
  if (n > 0 && (u.cursor.left ?? -1) < 0) u.setLegend({ idx: n - 1 });
}

const data = (p: Plot) => [p.x, ...p.lines.map((l) => l.values)] as uPlot.AlignedData;

const name = (p: Plot) => {
  const short = p.x.length > 1 && p.x[1]! - p.x[0]! < 60;
  const long = p.x.length > 1 && p.x[p.x.length - 1]! - p.x[0]! > 86400;
  return (v: number) => (p.labels ? (p.labels[v] ?? "") : long ? (v % 86400 === 0 ? dayOf(v) : clock(v, false)) : clock(v, short));
};

function options(p: Plot, width: number, height: number): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: () => color("--quiet"), // functions, for another theme
    grid: { stroke: () => color("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height,
    legend: { live: !p.labels },
    padding: [null, 28, null, null], // room for half of the last label
    tzDate: inZone,
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: !p.labels, ...(p.labels && { range: () => [-0.7, p.x.length - 0.3] as uPlot.Range.MinMax }) }, y: { distr: p.log ? 4 : 1, asinh: 1, range: (_, __, high) => [0, Math.max(1, (high ?? 0) * (p.log && p.numbered ? 2.2 : p.numbered ? 1.18 : 1.1))] } },
    axes: [
      { ...axis, grid: { show: false }, space: 64, size: 30, ...(p.labels && { splits: () => every(p, width) }), values: (_, splits) => splits.map((s) => (Number.isInteger(s) ? name(p)(s) : "")) },
      { ...axis, size: 52, ...(p.log && { splits: (u: uPlot) => powers(u.scales.y!.max ?? 1).filter((n) => n <= (u.scales.y!.max ?? 1)), filter: (_: uPlot, splits: number[]) => splits }), values: (_, splits) => splits.map((s) => (Number.isInteger(s) ? compact(s) : "")) },
    ],
    series: [
      { label: t("chart.time"), value: (_, v) => (v == null ? "–" : p.labels ? name(p)(v) : moment(v)) },
      ...p.lines.map(
        (l): uPlot.Series => ({
          label: l.name,
          stroke: () => color(l.color),
          width: l.bars ? 0 : 1.5,
          fill: l.fill || l.bars ? () => faint(color(l.color), l.bars ? 0.9 : 0.16) : undefined,
          paths: l.bars ? uPlot.paths.bars!({ size: [0.8, 40] }) : undefined,
          points: { show: false },
          value: (_, v) => (v == null ? "–" : count(v)),
        }),
      ),
    ],
    hooks: { drawClear: [(u) => shade(u, p)], draw: [(u) => mark(u, p)], setCursor: [latest] },
  };
}

/** every returns the values of x whose labels have room. */
function every(p: Plot, width: number): number[] {
  const longest = Math.max(...p.labels!.map((l) => l.length), 2);
  const step = Math.max(1, Math.ceil((p.x.length * (7 * longest + 10)) / Math.max(width - 60, 1)));
  return p.x.filter((_, i) => i % step === 0);
}

/** shade fills the zone of a plot, and names it. */
function shade(u: uPlot, p: Plot): void {
  if (!p.zone) return;
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio || 1;
  const [a, b] = [u.valToPos(p.zone.from, "x", true), u.valToPos(p.zone.to, "x", true)];
  ctx.save();
  ctx.fillStyle = faint(color("--quiet"), 0.12);
  ctx.fillRect(a, bbox.top, b - a, bbox.height);
  ctx.fillStyle = color("--quiet");
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right"; // limits are rather on the left
  if (ctx.measureText(p.zone.text).width < b - a - 12 * ratio) ctx.fillText(p.zone.text, b - 6 * ratio, bbox.top + bbox.height / 2);
  ctx.restore();
}

/** faint returns a colour that lets others through. */
const faint = (c: string, alpha: number) => c.replace(/^rgb\((.*)\)$/, (_, v: string) => `rgba(${v}, ${alpha})`);

/** mark draws the marks of a plot. */
function mark(u: uPlot, p: Plot): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  if (p.numbered) {
    ctx.fillStyle = color("--text");
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    const room = u.valToPos(1, "x", true) - u.valToPos(0, "x", true);
    for (const l of p.lines)
      l.values.forEach((n, i) => {
        const text = n ? compact(n) : "";
        if (n && ctx.measureText(text).width < room + 8 * ratio) ctx.fillText(text, u.valToPos(i, "x", true), u.valToPos(n, "y", true) - 5 * ratio);
      });
  }
  let row = 0;
  ctx.strokeStyle = ctx.fillStyle = color("--text");
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([5 * ratio, 4 * ratio]);
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  for (const m of p.marks ?? []) {
    ctx.beginPath();
    const x = u.valToPos(m.x, "x", true);
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    const end = x + 8 * ratio + ctx.measureText(m.text).width > bbox.left + bbox.width;
    ctx.textAlign = end ? "right" : "left";
    ctx.fillText(m.text, x + (end ? -6 : 6) * ratio, bbox.top + (12 + 16 * row++) * ratio);
    ctx.stroke();
  }
  ctx.restore();
}

/** Numbers has the numbers of a plot as a table, those without any left out. */
function Numbers({ plot }: { plot: Plot }) {
  const open = (e: Event) => {
    const details = e.currentTarget as HTMLDetailsElement;
    details.toggleAttribute("data-open", details.open);
  };
  return (
    <details onToggle={open}>
      <summary>{t("chart.numbers", { title: plot.title })}</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("chart.numbers", { title: plot.title })}>
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">{plot.labels ? "" : t("chart.time")}</th>
              {plot.lines.map((l) => (
                <th scope="col" class="n">
                  {l.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {plot.x.map((x, i) =>
              plot.lines.some((l) => l.values[i]) ? (
                <tr key={x}>
                  <th scope="row">{plot.labels ? plot.labels[i] : moment(x)}</th>
                  {plot.lines.map((l) => (
                    <td class="n">{l.values[i] == null ? "–" : count(l.values[i]!)}</td>
                  ))}
                </tr>
              ) : null,
            )}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** save hands the reader a picture of a plot. */
async function save(p: Plot, as: "svg" | "png"): Promise<void> {
  const picture: Picture = {
    ...p,
    lines: p.lines.map((l) => ({ ...l, paint: color(l.color) })),
    name: name(p),
    paints: { text: color("--text"), quiet: color("--quiet"), line: color("--line"), ground: color("--panel") },
    foot: p.about ?? `weir · ${moment(Date.now() / 1000)}`,
  };
  const svg = draw(picture);
  let blob = new Blob([svg], { type: "image/svg+xml" });
  if (as === "png") {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width * 2;
    canvas.height = image.height * 2;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    blob = await new Promise<Blob>((done, failed) => canvas.toBlob((b) => (b ? done(b) : failed(new Error("no picture"))), "image/png"));
  }
  download(blob, p.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) + "." + as);
}

/** download hands the reader a file. */
export function download(blob: Blob, name: string): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}
