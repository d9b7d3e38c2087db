import { useEffect, useId, useRef, useState } from "preact/hooks";
import { clock, compact, count, day, moment } from "../lib/format";
import { t } from "../lib/i18n";
import { amount, course, fitsAt, ticks, type Hits, type Leaving } from "../lib/why";

const height = 172;
const top = 22;
const bottom = 26;

/** Window draws what a key has in use over time: on the left of now when hits came, on the right when they leave. past
 * reports that now is the instant of an earlier decision. */
export function Window({ of: l, used, quota, unit, banned, past }: { of: Leaving; used: number; quota?: number; unit?: string; banned?: string; past?: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  const id = useId();
  const dated = l.hits.length > 0 || !!l.drains;
  useEffect(() => {
    const at = ref.current;
    if (!at) return;
    const look = () => setWidth(Math.max(240, at.clientWidth));
    look();
    const watch = new ResizeObserver(look);
    watch.observe(at);
    return () => watch.disconnect();
  }, [dated]);

  if (banned) return <p class="quiet">{t("window.banned", { until: moment(banned) })}</p>;
  if (used === 0) return <p class="quiet">{t("window.empty")}</p>;
  if (l.kind === "ever") return <p class="quiet">{t("window.stays")}</p>;
  if (!dated) return <p class="quiet">{t(l.kind === "held" || l.kind === "sliding" ? "window.holding" : "window.undated", { n: count(l.held ?? used), k: l.held ?? used })}</p>;

  const points = course(l, used);
  const now = Date.parse(l.now);
  const from = points[0]!.at;
  const to = points[points.length - 1]!.at;
  const high = Math.max(quota ?? 0, ...points.map((p) => p.used), 1) * 1.08;
  const x = (at: number) => Math.round((8 + ((at - from) / Math.max(to - from, 1)) * (width - 16)) * 10) / 10;
  const y = (n: number) => Math.round((top + (1 - n / high) * (height - top - bottom)) * 10) / 10;
  const line = points.map((p, i) => (i === 0 ? "M" : "L") + x(p.at) + " " + y(p.used)).join("");
  const area = `${line}L${x(to)} ${y(0)}L${x(from)} ${y(0)}Z`;
  const again = quota !== undefined && used >= quota && !l.drains ? fitsAt(l, used, quota) : undefined;
  const next = l.hits.filter((h) => h.leave).sort((a, b) => a.leave!.localeCompare(b.leave!))[0];
  const summary = t(past ? "window.summary.then" : "window.summary", {
    used: amount(used, unit, l.kind),
    next: next ? t("window.next", { n: next.hits, hits: amount(next.hits, unit, l.kind), time: moment(next.leave!) }) : "",
  });
  const nowAt = x(now);
  const long = to - from > 20 * 3_600_000;
  const label = (at: number) => (long ? day(at / 1000, to - from > 40 * 86_400_000) : clock(at / 1000, to - from < 600_000));
  const fits = again === undefined ? "" : `${t("window.again")} ${label(again)}`;
  const fitsLeft = again !== undefined && x(again) + 12 + [...fits].reduce((n, c) => n + (c > "\u2e80" ? 13 : 7.5), 0) > width; // the text is left of its dot
  const half = long ? 44 : 30; // of a label
  const shown = ticks(from, to, Math.floor((width - 2 * half) / (2 * half + 16))).filter((at) => x(at) >= half && x(at) <= width - half);
  return (
    <figure class="chart window">
      <div ref={ref}>
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t("window.of") + ". " + summary}>
          <clipPath id={id + "a"}>
            <rect x="0" y="0" width={nowAt} height={height} />
          </clipPath>
          <clipPath id={id + "b"}>
            <rect x={nowAt} y="0" width={Math.max(0, width - nowAt)} height={height} />
          </clipPath>
          <path class="w-past" d={area} clip-path={`url(#${id}a)`} />
          <path class="w-next" d={area} clip-path={`url(#${id}b)`} />
          <path class="w-line" d={line} clip-path={`url(#${id}a)`} />
          <path class="w-line dashed" d={line} clip-path={`url(#${id}b)`} />
          <path class="w-base" d={`M8 ${y(0)}H${width - 8}`} />
          {shown.map((at) => (
            <g key={at}>
              <path class="w-base" d={`M${x(at)} ${y(0)}v5`} />
              <text class="w-text" x={x(at)} y={height - 6} text-anchor="middle">
                {label(at)}
              </text>
            </g>
          ))}
          {quota !== undefined && (
            <>
              <path class="w-quota" d={`M8 ${y(quota)}H${width - 8}`} />
              <text class="w-text" x={width - 8} y={y(quota) - 5} text-anchor="end">
                {t("window.quota", { n: compact(quota) })}
              </text>
            </>
          )}
          <path class="w-now" d={`M${nowAt} ${top - 8}V${y(0)}`} />
          <text class="w-text strong" x={nowAt} y={top - 11} text-anchor={nowAt < 40 ? "start" : nowAt > width - 40 ? "end" : "middle"}>
            {past ? clock(l.now) : t("window.now")}
          </text>
          {again !== undefined && again <= to && (
            <g>
              <circle class="w-again" cx={x(again)} cy={y(quota!)} r="4.5" />
              <text class="w-text strong" x={x(again)} y={y(quota!) + 18} text-anchor={fitsLeft ? "end" : "start"} dx={fitsLeft ? -8 : 8}>
                {fits}
              </text>
            </g>
          )}
        </svg>
      </div>
      <div class="under">
        <span class="quiet">{summary}</span>
        {!!l.held && <span class="quiet">{t("window.holding", { n: count(l.held), k: l.held })}</span>}
        {l.hits.length > 0 && (
          <details>
            <summary>{t("window.numbers")}</summary>
            <HitsTable label={t("window.of")} hits={l.hits} />
          </details>
        )}
      </div>
    </figure>
  );
}

/** HitsTable lists hits: when they came, and when they leave; or holds. */
export const HitsTable = ({ label, hits, holds }: { label: string; hits: Hits[]; holds?: boolean }) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={label}>
    <table class="numbers">
      <thead>
        <tr>
          <th scope="col">{t(holds ? "window.taken" : "window.came")}</th>
          <th scope="col" class="n">
            {t("window.hits")}
          </th>
          <th scope="col">{t(holds ? "window.ends" : "window.leave")}</th>
        </tr>
      </thead>
      <tbody>
        {hits.map((h, i) => (
          <tr key={i}>
            <th scope="row">{moment(h.at)}</th>
            <td class="n">{count(h.hits)}</td>
            <td>{h.leave ? moment(h.leave) : t("why.never")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
