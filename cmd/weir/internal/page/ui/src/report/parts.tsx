import type { ComponentChildren } from "preact";
import { base, count, moment, percent } from "../lib/format";
import { locale, t } from "../lib/i18n";
import { details, inWords, type Rule } from "../lib/words";
import { Chart, type Plot } from "../parts/Chart";
import { Brand, Preferences } from "../parts/Frame";
import { cut, Key, visible } from "../parts/Key";
import { Notice } from "../parts/Notice";
import { Pill } from "../parts/Pill";
import { Table } from "../parts/Table";
import type { Data, DeniedKey, Distribution, Read, Timeline } from "./data";
import { peaks, split, type Marked } from "./plots";

/** share writes a part of all, with the digits that the command line has. */
export const share = (part: number, all: number) => percent(all > 0 ? part / all : 0, 2);

/** logs names the logs of a report. */
export function logs(d: Data): string {
  const names = (d.logs ?? []).map((name) => (name === "-" ? t("report.stdin") : base(name)));
  if (names.length === 0) return t("report.stdin");
  return cut(visible(names.length > 3 ? `${names.slice(0, 2).join(", ")}, … (${names.length})` : names.join(", ")), 80);
}

/** origin is what pictures say about where they are from. */
export const origin = (d: Data) => t("report.foot", { kind: t(`report.kind.${d.kind}`), logs: logs(d), version: d.version });

/** Frame is what all reports have: what they are about, first the answer, and what is wrong with the log. */
export function Frame({ d, answer, facts, contents, children }: { d: Data; answer: ComponentChildren; facts?: [string, ComponentChildren][]; contents?: [string, string][]; children: ComponentChildren }) {
  const r: Read = d.report;
  const title = t("report.of", { kind: t(`report.kind.${d.kind}`), logs: logs(d) });
  const missing = r.missing ?? [];
  return (
    <>
      <a class="skip" href="#main">
        {t("nav.skip")}
      </a>
      <header class="head">
        <span class="mark">
          <Brand />
        </span>
        <div class="tools">
          <Preferences small />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <section class="lead">
          <h1 class="kicker">{title}</h1>
          {answer}
        </section>
        {missing.length > 0 && (
          <Notice kind="warn" title={t("report.missing", { names: missing.map((m) => cut(visible(m))).join(", ") })}>
            {t("report.missing.what")}
          </Notice>
        )}
        {r.bad > 0 && (
          <Notice kind="warn" title={t("report.bad", { n: count(r.bad), lines: count(r.lines) })}>
            <ul>
              {(r.bad_lines ?? []).map((b) => (
                <li>
                  {cut(visible(b.log), 60)}:{b.line}: {b.problem}: <Key text={b.text} n={100} />
                </li>
              ))}
            </ul>
          </Notice>
        )}
        <dl class="facts">
          {(facts ?? []).map(([name, value]) => (
            <Fact name={name}>{value}</Fact>
          ))}
          {r.from && r.to && <Fact name={t("report.time")} wide>{t("report.utc", { from: moment(r.from), to: moment(r.to) })}</Fact>}
          <Fact name={t("report.lines")}>{r.bad > 0 ? t("report.lines.read", { lines: count(r.lines), bad: count(r.bad) }) : count(r.lines)}</Fact>
          {d.files.map((f, i) => (
            <Fact name={t(d.files.length < 2 ? "report.files" : i === 0 ? "report.files.old" : "report.files.new")}>
              {cut(visible(f.name), 80)} <span class="quiet mono">{f.hash.slice(0, 12)}</span>
            </Fact>
          ))}
          <Fact name={t("report.by")} wide>
            <code>{cut(visible(d.command), 400)}</code>
          </Fact>
        </dl>
        {contents && contents.length > 1 && (
          <nav class="contents" aria-label={t("report.contents")}>
            {contents.map(([id, text]) => (
              <a href={"#" + id}>{text}</a>
            ))}
          </nav>
        )}
        {children}
      </main>
      <footer class="foot">{origin(d)}</footer>
    </>
  );
}

function Fact({ name, wide, children }: { name: string; wide?: boolean; children: ComponentChildren }) {
  return (
    <div class={wide ? "wide" : undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Words says what a rule limits, and what else it does. */
export function Words({ rule }: { rule?: Rule }) {
  if (!rule) return null;
  const when = rule.when?.map((w) => cut(visible(w), 60)).join(t("list.and"));
  return (
    <span class="words">
      {inWords(rule)}
      {when && <span class="quiet when">{when}</span>}
      {details(rule).map((text) => (
        <Pill kind={rule.mode === "shadow" && text === details(rule)[0] ? "shadow" : ""}>{text}</Pill>
      ))}
    </span>
  );
}

/** Keys is a table of keys with denied requests. */
export function Keys({ label, keys }: { label: string; keys: DeniedKey[] | null }) {
  if (!keys?.length) return null;
  return (
    <Table
      label={label}
      rows={keys}
      id={(k) => k.key}
      most={20}
      columns={[
        { id: "key", title: t("report.key"), cell: (k) => <Key text={k.key} /> },
        { id: "denied", title: t("report.count"), number: true, cell: (k) => <b class="denied">{count(k.denied)}</b> },
        { id: "first", title: t("report.first"), number: true, cell: (k) => moment(k.first) },
        { id: "last", title: t("report.last"), number: true, cell: (k) => moment(k.last) },
      ]}
    />
  );
}

/** Drawn is a chart, unless it has nothing to show. */
export function Drawn({ plot, height }: { plot: Plot; height?: number }) {
  return plot.lines.some((l) => l.values.some((v) => v)) ? <Chart plot={plot} height={height} /> : null;
}

/** any reports whether there is a peak. */
export const any = (of?: Distribution): of is Distribution => !!of && (of.above > 0 || of.keys.some((n) => n > 0));

/** Peaks is the chart of the peaks of keys, with a sentence that says how they lie around the limit. */
export function Peaks({ title, of, limits, about, head = "h3" }: { title: string; head?: "h2" | "h3"; of?: Distribution; limits: Marked[]; about: string }) {
  if (!any(of)) return null;
  const quota = limits[limits.length - 1]!.quota;
  const s = split(of, quota);
  const unit = of.percent ? "%" : "";
  const plot = peaks(title, of, limits, about);
  const Head = head;
  return (
    <div class="stack">
      <Head>{title}</Head>
      <p>
        {t("report.peaks.say", { below: count(s.below), b: s.below, above: count(s.above), a: s.above, limit: count(quota) + unit })}
        {s.gap && " " + t("report.peaks.gap", { from: count((of.bounds[s.gap[0] - 1] ?? 0) + 1) + unit, to: count(of.bounds[s.gap[1]]!) + unit })}
      </p>
      <p class="quiet small">
        {plot.unit}
        {plot.log && " · " + t("report.log")}
      </p>
      <Chart plot={plot} height={240} quiet />
    </div>
  );
}

/** mostDays is how many days a heat map shows: the last ones. */
const mostDays = 62;

/** Heat shows requests by day and hour. */
export function Heat({ title, hours, denied }: { title: string; hours: Timeline | null; denied?: boolean }) {
  if (!hours || hours.seconds !== 3600) return null;
  const days = new Map<string, number[]>();
  const start = Date.parse(hours.start);
  hours.denied.forEach((n, i) => {
    const at = new Date(start + i * 3_600_000);
    const name = at.toISOString().slice(0, 10);
    if (!days.has(name)) days.set(name, new Array<number>(24).fill(0));
    days.get(name)![at.getUTCHours()] = denied ? n : n + hours.allowed[i]!;
  });
  const rows = [...days].slice(-mostDays);
  const most = Math.max(...rows.flatMap(([, cells]) => cells), 1);
  const level = (n: number) => (n === 0 ? 0 : 1 + Math.floor((n * 6 - 1) / most));
  const name = (day: string) => new Intl.DateTimeFormat(locale(), { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" }).format(new Date(day));
  return (
    <section class="panel stack">
      <h2>{title}</h2>
      <p class="quiet">{t("report.hours.what", { most: count(most) })}</p>
      <table class={denied ? "heat red" : "heat"} aria-label={title}>
        <thead>
          <tr>
            <td />
            {rows[0]![1].map((_, h) => (
              <th scope="col" class={h % 6 ? "some" : undefined}>
                <span>{h}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([day, cells]) => (
            <tr key={day}>
              <th scope="row">{name(day)}</th>
              {cells.map((n, h) => (
                <td class={"h" + level(n)} title={n > 0 ? t("report.hour", { day: name(day), hour: h, n: count(n) }) : undefined}>
                  <span>{n > 0 ? (n < 10_000 ? count(n).replace(/,/g, "") : Math.round(n / 1000) + "k") : ""}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

