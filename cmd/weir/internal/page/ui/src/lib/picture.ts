import { compact } from "./format";

/** Zone is a part of the x axis that has a meaning, such as a gap. */
export interface Zone {
  from: number;
  to: number;
  text: string;
}

/** Picture is a plot with all that a picture of it needs, apart from the page. */
export interface Picture {
  title: string;
  unit?: string;
  x: number[];
  lines: { name: string; values: (number | null)[]; paint: string; fill?: boolean; bars?: boolean }[];
  marks?: { x: number; text: string }[];
  log?: boolean;
  zone?: Zone;
  numbered?: boolean;
  name: (x: number) => string;
  paints: { text: string; quiet: string; line: string; ground: string };
  foot: string;
}

const escape = (s: string) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);

/** ticks returns round numbers from 0 to at least most. */
export function ticks(most: number, n = 4): number[] {
  const raw = Math.max(most, 1) / n;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw)!);
  const all = [0];
  while (all[all.length - 1]! < most || all.length < 2) all.push(all[all.length - 1]! + step);
  return all;
}

/** powers returns 0, 1 and the powers of ten up to at least most, for an axis whose steps grow. */
export function powers(most: number): number[] {
  const all = [0, 1];
  while (all[all.length - 1]! < most) all.push(all[all.length - 1]! * 10);
  return all;
}

/** grow is the height of n on an axis whose steps grow: few are visible beside many, and none has no height. */
export const grow = (n: number): number => Math.asinh(n);

/** draw returns an SVG image of p, with its title and legend: one that says what it is when it is sent on. */
export function draw(p: Picture): string {
  const [w, h, left, right, top, bottom] = [880, 400, 64, 24, 84, 56];
  const all = p.lines.flatMap((l) => l.values.filter((v): v is number => v !== null));
  const highest = Math.max(1, ...all);
  const scale = p.log ? powers(highest) : ticks(highest);
  const height = p.log ? grow : (n: number) => n;
  const most = height(p.log ? highest * (p.numbered ? 2.2 : 1.2) : scale[scale.length - 1]!);
  const [x0, x1] = [p.x[0] ?? 0, p.x[p.x.length - 1] ?? 1];
  const pad = p.lines.some((l) => l.bars) ? 0.6 : 0;
  const x = (v: number) => left + ((v - x0 + pad) / (x1 - x0 + 2 * pad || 1)) * (w - left - right);
  const y = (v: number) => h - bottom - (height(v) / most) * (h - top - bottom);
  const f = (n: number) => n.toFixed(1);
  const text = (at: [number, number], s: string, more = "") => `<text x="${f(at[0])}" y="${f(at[1])}" ${more}>${escape(s)}</text>`;
  const out: string[] = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="${w}" height="${h}" fill="${p.paints.ground}"/>`,
    text([24, 34], p.title + (p.unit ? " · " + p.unit : ""), `font-size="18" font-weight="600" fill="${p.paints.text}"`),
  ];
  let at = 24;
  for (const l of p.lines) {
    out.push(`<rect x="${at}" y="49" width="12" height="12" rx="2" fill="${l.paint}"/>`, text([at + 18, 60], l.name, `fill="${p.paints.quiet}"`));
    at += 36 + 8 * l.name.length;
  }
  if (p.zone) {
    const [a, b] = [x(p.zone.from), x(p.zone.to)];
    out.push(`<rect x="${f(a)}" y="${top}" width="${f(b - a)}" height="${h - top - bottom}" fill="${p.paints.quiet}" fill-opacity="0.12"/>`);
    out.push(text([b - 6, top + (h - top - bottom) / 2], p.zone.text, `text-anchor="end" fill="${p.paints.quiet}"`));
  }
  for (const v of scale) {
    if (y(v) < top) continue;
    out.push(`<path d="M${left},${f(y(v))}H${w - right}" stroke="${p.paints.line}"/>`, text([left - 8, y(v) + 4], compact(v), `text-anchor="end" fill="${p.paints.quiet}"`));
  }
  const every = Math.max(1, Math.ceil(p.x.length / 9));
  p.x.forEach((v, i) => i % every === 0 && out.push(text([x(v), h - bottom + 20], p.name(v), `text-anchor="middle" fill="${p.paints.quiet}"`)));
  const bar = Math.max(1, ((w - left - right) / Math.max(p.x.length, 1)) * 0.7);
  for (const l of p.lines) {
    if (l.bars) {
      const d = p.x.map((v, i) => (l.values[i] ? `M${f(x(v) - bar / 2)},${f(y(0))}V${f(y(l.values[i]!))}h${f(bar)}V${f(y(0))}z` : "")).join("");
      out.push(`<path d="${d}" fill="${l.paint}"/>`);
      if (p.numbered) p.x.forEach((v, i) => l.values[i] && out.push(text([x(v), y(l.values[i]!) - 5], compact(l.values[i]!), `text-anchor="middle" font-size="12" fill="${p.paints.text}"`)));
      continue;
    }
    const points = p.x.flatMap((v, i) => (l.values[i] == null ? [] : [`${f(x(v))},${f(y(l.values[i]!))}`]));
    if (points.length === 0) continue;
    if (l.fill) out.push(`<path d="M${points[0]!.split(",")[0]},${f(y(0))}L${points.join("L")}V${f(y(0))}Z" fill="${l.paint}" fill-opacity="0.16"/>`);
    out.push(`<path d="M${points.join("L")}" fill="none" stroke="${l.paint}" stroke-width="2"/>`);
  }
  let row = 0;
  for (const m of p.marks ?? []) {
    const end = x(m.x) + 7 * m.text.length > w - right;
    out.push(`<path d="M${f(x(m.x))},${top}V${h - bottom}" stroke="${p.paints.text}" stroke-dasharray="5 4"/>`);
    out.push(text([x(m.x) + (end ? -6 : 6), top + 12 + 16 * row++], m.text, `${end ? 'text-anchor="end" ' : ""}fill="${p.paints.text}"`));
  }
  out.push(text([24, h - 14], p.foot, `font-size="12" fill="${p.paints.quiet}"`), "</svg>");
  return out.join("");
}
