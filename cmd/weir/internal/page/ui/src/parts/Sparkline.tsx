import { useId } from "preact/hooks";
import { count } from "../lib/format";
import { t } from "../lib/i18n";

/** Series are the numbers of a rule over time, the newest at the end. near is a part of allowed, and shadow is what
 * would have been denied. */
export interface Series {
  allowed: number[];
  near: number[];
  denied: number[];
  shadow: number[];
}

const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);

/** Sparkline draws what a rule allowed above a line, with the part that was near the limit, and what it denied below it.
 * The two have scales of their own, so that few denials among many requests are seen. */
export function Sparkline({ series, width = 160, height = 34 }: { series: Series; width?: number; height?: number }) {
  const id = useId();
  const n = Math.max(series.allowed.length, series.denied.length, series.shadow.length, 1);
  const over = series.denied.map((d, i) => d + (series.shadow[i] ?? 0));
  const top = Math.max(1, ...series.allowed);
  const bottom = Math.max(1, ...over);
  const some = sum(over) > 0;
  const base = some ? height * 0.62 : height - 1;
  const step = width / n;
  const bar = Math.max(step * 0.72, 1);
  const area = (values: number[]) => {
    if (!values.some((v) => v > 0)) return "";
    const y = (v: number) => (base - 1 - (v / top) * (base - 3)).toFixed(1);
    const points = values.map((v, i) => `${((i + 0.5) * step).toFixed(1)},${y(v)}`);
    return `M${(0.5 * step).toFixed(1)},${(base - 1).toFixed(1)}L${points.join("L")}L${((values.length - 0.5) * step).toFixed(1)},${(base - 1).toFixed(1)}Z`;
  };
  const bars = (values: number[], from: (i: number) => number) =>
    values
      .map((v, i) => {
        if (v <= 0) return "";
        const room = height - base - 1;
        const h = Math.max((v / bottom) * room, 1.5);
        return `M${(i * step + (step - bar) / 2).toFixed(1)},${(base + 1 + (from(i) / bottom) * room).toFixed(1)}h${bar.toFixed(1)}v${h.toFixed(1)}h-${bar.toFixed(1)}z`;
      })
      .join("");
  const label = [
    `${t("col.allowed")} ${count(sum(series.allowed))}`,
    sum(series.near) > 0 && `${t("col.near")} ${count(sum(series.near))}`,
    `${t("col.denied")} ${count(sum(series.denied))}`,
    sum(series.shadow) > 0 && `${t("col.shadow")} ${count(sum(series.shadow))}`,
  ];
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" preserveAspectRatio="none">
      <title>{label.filter(Boolean).join(", ")}</title>
      <defs>
        <pattern id={id} width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="1.6" height="4" class="s-shadow" />
        </pattern>
      </defs>
      <path class="s-allowed" d={area(series.allowed)} />
      <path class="s-near" d={area(series.near)} />
      <path class="s-base" d={`M0,${base}H${width}`} />
      <path class="s-denied" d={bars(series.denied, () => 0)} />
      <path fill={`url(#${id})`} d={bars(series.shadow, (i) => series.denied[i] ?? 0)} />
    </svg>
  );
}
