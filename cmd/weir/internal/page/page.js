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
    const longest = Math.max(...p.labels.map((l) => l.length));
    const every = Math.max(1, Math.ceil((p.x.length * Math.max(46, 8 * longest + 12)) / width));
    x.splits = () => p.x.filter((i) => i % every === 0);
    x.values = (u, splits) => splits.map(label(p));
    x.grid = { show: false };
  }
  return [x, { ...style, size: 60 }];
}

// annotate draws a line at each limit, and above each bar its number.
function annotate(u, p) {
  const { ctx, bbox } = u;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.font = `${13 * ratio}px system-ui, sans-serif`;
  if (p.kind === "bars") {
    ctx.fillStyle = color("--text");
    ctx.textAlign = "center";
    const room = u.valToPos(1, "x", true) - u.valToPos(0, "x", true);
    p.series[0].values.forEach((n, i) => {
      const text = n.toLocaleString("en").replaceAll(",", "\u202f");
      if (n > 0 && (ctx.measureText(text).width < room || n < 100)) ctx.fillText(text, u.valToPos(i, "x", true), u.valToPos(n, "y", true) - 6 * ratio);
    });
  }
  ctx.strokeStyle = ctx.fillStyle = color("--mark");
  ctx.lineWidth = 2 * ratio;
  p.marks.forEach((m, line) => {
    const x = Math.round(u.valToPos(p.kind === "bars" ? m.at + 0.5 : m.at, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const right = x + 8 * ratio + ctx.measureText(m.text).width > bbox.left + bbox.width;
    ctx.textAlign = right ? "right" : "left";
    ctx.fillText(m.text, x + (right ? -6 : 6) * ratio, bbox.top + (14 + 17 * line) * ratio);
  });
  ctx.restore();
}

function draw(p, i) {
  const at = document.getElementById("plot-" + i);
  if (!at) return;
  if (drawn[i]) drawn[i].destroy();
  const width = Math.max(240, at.clientWidth);
  const series = [p.kind === "time"
    ? { label: p.x0, value: (u, v) => (v === null ? "–" : new Date(v * 1000).toISOString().slice(0, 19).replace("T", " ")) }
    : { label: p.x0, value: (u, v) => (v === null ? "–" : label(p)(v)) }];
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
    scales: { x, y: { range: (u, low, high) => [0, Math.max(1, high * (p.kind === "bars" ? 1.2 : 1.08))] } },
    cursor: { drag: { x: p.kind === "time", y: false } },
    hooks: { draw: [(u) => annotate(u, p)] },
  }, [p.x, ...p.series.map((s) => s.values)], at);
}

const all = () => plots.forEach(draw);
all();
let width = window.innerWidth;
window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; all(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
window.addEventListener("beforeprint", all);
window.addEventListener("afterprint", all);
