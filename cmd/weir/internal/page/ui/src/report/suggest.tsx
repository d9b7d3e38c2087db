import { useState } from "preact/hooks";
import { count, moment, percent } from "../lib/format";
import { t } from "../lib/i18n";
import { sweptInWords } from "../lib/words";
import { Key } from "../parts/Key";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table } from "../parts/Table";
import type { Candidate, Data, Suggestion, Swept } from "./data";
import { Drawn, Frame, origin, Peaks, Words } from "./parts";
import { candidates } from "./plots";

/** SuggestReport shows what numbers of a limit would have denied, and which one fits. */
export function SuggestReport({ d }: { d: Extract<Data, { kind: "suggest" }> }) {
  const r = d.report;
  const about = origin(d);
  const rule = d.files[0]?.rules.find((x) => x.name === r.rule);
  return (
    <Frame
      d={d}
      answer={
        r.keys === 0 ? (
          <Sentence large text="report.nothing" values={{ rule: <Key text={r.rule} /> }} />
        ) : (
          r.windows.map((w) => <Answer key={w.window} w={w} r={r} />)
        )
      }
      facts={[
        [t("report.requests"), count(r.matched)],
        [t("report.keys"), count(r.keys)],
        [t("report.one"), <Words rule={rule} />],
      ]}
    >
      {r.windows.map((w) => (
        <Window key={w.window} w={w} r={r} about={about} />
      ))}
    </Frame>
  );
}

function Answer({ w, r }: { w: Swept; r: Suggestion }) {
  const c = w.candidates[w.suggested];
  if (!c) return <Sentence large text="report.unsuggested" values={{ rule: <Key text={r.rule} /> }} />;
  return <Sentence large text="report.suggested" values={{ ...said(c, w, r), rule: <Key text={r.rule} /> }} />;
}

const said = (c: Candidate, w: Swept, r: Suggestion) => ({
  quota: <b>{count(c.quota)}</b>,
  window: sweptInWords(w.window),
  denied: c.denied > 0 ? <b class="denied">{count(c.denied)}</b> : "0",
  share: percent(c.denied_share, 2),
  keys: count(c.keys_denied),
  all: count(r.keys),
});

function Window({ w, r, about }: { w: Swept; r: Suggestion; about: string }) {
  const [at, setAt] = useState(Math.max(0, w.suggested));
  const c = w.candidates[at];
  const p = w.peaks;
  const distribution = { quota: w.candidates[Math.max(0, w.suggested)]?.quota ?? 0, bounds: p.bounds, keys: p.keys, above: 0 };
  return (
    <section class="panel stack">
      <h2>{t("report.windows", { window: sweptInWords(w.window) })}</h2>
      {r.keys > 0 && c && (
        <>
          <div class="slider screen">
            <label class="running">
              {t("report.slide")}
              <input type="range" min={0} max={w.candidates.length - 1} value={at} aria-valuetext={count(c.quota)} onInput={(e) => setAt(Number(e.currentTarget.value))} />
            </label>
            <div aria-live="polite">
              <Sentence text={c.denied > 0 ? "report.would" : "report.would.none"} values={said(c, w, r)} />
            </div>
          </div>
          <Peaks title={t("report.peaks", { rule: r.rule })} of={distribution} limits={[{ quota: c.quota, text: at === w.suggested ? "report.limit.suggested" : "report.limit" }]} about={about} />
          <p class="quiet">{t("report.percentiles", { p50: count(p.p50), p90: count(p.p90), p99: count(p.p99), p999: count(p.p99_9), max: count(p.max) })}</p>
          <h3>{t("report.top")}</h3>
          <Table
            label={t("report.top")}
            rows={p.top}
            id={(k) => k.key}
            most={20}
            columns={[
              { id: "key", title: t("report.key"), cell: (k) => <Key text={k.key} /> },
              { id: "peak", title: t("report.peak"), number: true, cell: (k) => (k.peak > c.quota ? <b class="denied">{count(k.peak)}</b> : count(k.peak)) },
              { id: "at", title: t("report.at"), number: true, cell: (k) => moment(k.at) },
              { id: "requests", title: t("report.count"), number: true, cell: (k) => count(k.requests) },
            ]}
          />
          <h3>{t("report.candidates")}</h3>
          <Drawn plot={candidates(w.candidates, w.suggested, sweptInWords(w.window), about)} />
          <Candidates w={w} />
        </>
      )}
    </section>
  );
}

/** Candidates is a table of what each limit would deny. */
function Candidates({ w }: { w: Swept }) {
  const heads = ["report.quota", "report.quota.denied", "report.quota.share", "report.quota.keys", "report.quota.keyshare"] as const;
  return (
    <table class="numbers" aria-label={t("report.candidates")}>
      <thead>
        <tr>
          {heads.map((h) => (
            <th scope="col" class="n">
              {t(h)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {w.candidates.map((c, i) => (
          <tr key={c.quota} aria-current={i === w.suggested ? "true" : undefined}>
            <th scope="row" class="n">
              {i === w.suggested && <Pill kind="allowed">{t("report.suggested.short")}</Pill>} {count(c.quota)}
            </th>
            <td class="n">{count(c.denied)}</td>
            <td class="n">{percent(c.denied_share, 2)}</td>
            <td class="n">{count(c.keys_denied)}</td>
            <td class="n">{percent(c.keys_share, 2)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
