"use strict";
const plots = JSON.parse(document.getElementById("data").textContent) || [];
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const drawn = [];

// utc returns a time in UTC, with as much of it as the distance between two needs.
function utc(seconds, increment) {
  const text = new Date(seconds * 1000).toISOString();
  if (increment >= 86400) return text.slice(5, 10);
  return increment >= 60 ? text.slice(11, 16) : text.slice(11, 19);
}

// label returns the label of an index, and nothing between two indexes.
const label = (p) => (i) => (Number.isInteger(i) && p.labels[i] !== undefined ? p.labels[i] : "");

function axes(p, width) {
  const style = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
  const x = { ...style, space: 70 };
  if (p.kind === "time") {
    x.values = (u, splits, at, space, increment) => splits.map((s, i) => {
      const day = new Date(s * 1000).toISOString().slice(0, 10);
      return increment < 86400 && (i === 0 || s % 86400 === 0) ? utc(s, increment) + "\n" + day : utc(s, increment);
    });
  } else {
    const every = Math.max(1, Math.ceil((p.x.length * 46) / width));
    x.splits = () => p.x.filter((i) => i % every === 0);
    x.values = (u, splits) => splits.map(label(p));
    x.grid = { show: false };
  }
  return [x, { ...style, size: 60 }];
}

// mark draws a line at the limit.
function mark(u, p) {
  if (p.mark < 0) return;
  const at = p.kind === "bars" ? p.mark + 0.5 : p.mark;
  const x = Math.round(u.valToPos(at, "x", true));
  const { ctx, bbox } = u;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color("--mark");
  ctx.lineWidth = 2 * ratio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${13 * ratio}px system-ui, sans-serif`;
  const right = x + 8 * ratio + ctx.measureText(p.text).width > bbox.left + bbox.width;
  ctx.textAlign = right ? "right" : "left";
  ctx.fillText(p.text, x + (right ? -6 : 6) * ratio, bbox.top + 14 * ratio);
  ctx.restore();
}

function draw(p, i) {
  const at = document.getElementById("plot-" + i);
  if (!at) return;
  if (drawn[i]) drawn[i].destroy();
  const width = Math.max(240, at.clientWidth);
  const series = [p.kind === "time"
    ? { label: "Time (UTC)", value: (u, v) => (v === null ? "–" : new Date(v * 1000).toISOString().slice(0, 19).replace("T", " ")) }
    : { label: "Limit", value: (u, v) => (v === null ? "–" : label(p)(v)) }];
  for (const s of p.series) {
    const one = { label: s.name, stroke: color(s.color), width: 2, points: { show: p.kind === "curve" } };
    if (p.kind === "time") one.fill = color(s.color) + "33";
    if (p.kind === "bars") {
      one.paths = uPlot.paths.bars({ size: [0.8, 60] });
      one.fill = color(s.color);
      one.points = { show: false };
    }
    series.push(one);
  }
  const x = p.kind === "time" ? { time: true } : { time: false, range: () => [-0.7, p.x.length - 0.3] };
  drawn[i] = new uPlot({
    width, height: 240, series, axes: axes(p, width), tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
    scales: { x, y: { range: (u, low, high) => [0, Math.max(1, high * 1.08)] } },
    cursor: { drag: { x: p.kind === "time", y: false } },
    hooks: { draw: [(u) => mark(u, p)] },
  }, [p.x, ...p.series.map((s) => s.values)], at);
}

const all = () => plots.forEach(draw);
all();
let width = window.innerWidth;
window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; all(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
window.addEventListener("beforeprint", all);
window.addEventListener("afterprint", all);
