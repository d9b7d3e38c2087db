import { compact, count, duration } from "../lib/format";
import { t } from "../lib/i18n";
import type { Plot } from "../parts/Chart";
import type { Candidate, Distribution, Timeline } from "./data";

/** Split is how the peaks of keys lie around a limit: how many keys are within it and above it, and the first and the
 * last bar without a key between the two, if there are any. */
export interface Split {
  below: number;
  above: number;
  gap?: [number, number];
}

/** split returns how peaks lie around a limit. Bars are those of the bounds, and one for what is above all of them. */
export function split(p: Distribution, quota: number): Split {
  const keys = p.above > 0 ? [...p.keys, p.above] : p.keys;
  const at = p.bounds.filter((b) => b <= quota).length; // the first bar above the limit
  const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
  const s: Split = { below: sum(keys.slice(0, at)), above: sum(keys.slice(at)) };
  if (s.below === 0 || s.above === 0) return s;
  let [first, last] = [at, at - 1];
  while (keys[first - 1] === 0) first--;
  while (keys[last + 1] === 0) last++;
  return last >= first ? { ...s, gap: [first, last] } : s;
}

/** marked is a limit in a chart of peaks. */
export interface Marked {
  quota: number;
  text: "report.limit" | "report.limit.old" | "report.limit.new" | "report.limit.suggested";
}

/** peaks is the chart of the peaks of keys, with limits: the bars above the last one are those of denied keys. */
export function peaks(title: string, p: Distribution, limits: Marked[], about: string): Plot {
  const quota = limits[limits.length - 1]?.quota ?? p.quota;
  const unit = p.percent ? "%" : "";
  const keys = p.above > 0 ? [...p.keys, p.above] : p.keys;
  const labels = p.bounds.map((b) => compact(b) + unit);
  if (p.above > 0) labels.push(t("report.more"));
  const above = p.bounds.filter((b) => b <= quota).length;
  const gap = split(p, quota).gap;
  return {
    title,
    unit: t(p.percent ? "report.peaks.percent" : "report.peaks.unit"),
    x: labels.map((_, i) => i),
    labels,
    lines: [
      { name: t("report.below"), color: "--allowed", values: keys.map((n, i) => (i < above ? n : null)), bars: true },
      { name: t("report.above"), color: "--denied", values: keys.map((n, i) => (i < above ? null : n)), bars: true },
    ],
    marks: limits.map((l) => ({ x: p.bounds.filter((b) => b <= l.quota).length - 0.5, text: t(l.text, { n: count(l.quota) + unit }) })),
    zone: gap && { from: gap[0] - 0.5, to: gap[1] + 0.5, text: t("report.gap") },
    log: Math.max(...keys) > 20,
    numbered: true,
    about,
  };
}

/** candidates is the chart of the requests that each limit would deny. */
export function candidates(list: Candidate[], suggested: number, window: string, about: string): Plot {
  return {
    title: t("report.candidates.chart"),
    unit: t("report.candidates.unit", { window }),
    x: list.map((_, i) => i),
    labels: list.map((c) => compact(c.quota)),
    lines: [{ name: t("report.quota.denied"), color: "--denied", values: list.map((c) => c.denied), bars: true }],
    marks: suggested < 0 ? [] : [{ x: suggested, text: t("report.limit.suggested", { n: count(list[suggested]!.quota) }) }],
    numbered: true,
    about,
  };
}

/** over is a chart over time of one kind of requests. */
export function over(title: string, of: Timeline, lines: ("allowed" | "denied" | "newlyallowed" | "newlydenied")[], about: string): Plot {
  const start = Date.parse(of.start) / 1000;
  const names = { allowed: t("col.allowed"), denied: t("col.denied"), newlyallowed: t("report.newlyallowed"), newlydenied: t("report.newlydenied") };
  return {
    title,
    unit: t("report.each", { for: duration(of.seconds) }),
    x: of.denied.map((_, i) => start + i * of.seconds),
    lines: lines.map((l) => ({ name: names[l], color: l === "denied" || l === "newlydenied" ? "--denied" : "--allowed", values: l === "allowed" ? of.allowed : of.denied, fill: true })),
    about,
  };
}
