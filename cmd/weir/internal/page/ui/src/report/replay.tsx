import { base, count, moment } from "../lib/format";
import { t } from "../lib/i18n";
import type { Rule } from "../lib/words";
import { Key } from "../parts/Key";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table, type Column } from "../parts/Table";
import type { Data, Tally } from "./data";
import { Drawn, Frame, Heat, Keys, origin, Peaks, share, Words } from "./parts";
import { over } from "./plots";

/** Replay shows what rules did with the requests of a log. */
export function ReplayReport({ d }: { d: Extract<Data, { kind: "replay" }> }) {
  const r = d.report;
  const tallies = r.rules ?? [];
  const rule = (name: string) => d.files[0]?.rules.find((x) => x.name === name);
  const about = origin(d);
  const denying = tallies.map((x, i) => ({ x, id: "rule-" + i })).filter(({ x }) => x.denied > 0 || x.peaks);
  const files = d.files[0] ? <Key text={base(d.files[0].name)} /> : t("report.rules");
  const values = { rules: files, requests: count(r.requests), denied: <b class="denied">{count(r.denied)}</b>, share: share(r.denied, r.requests) };
  return (
    <Frame
      d={d}
      answer={
        <>
          {r.requests === 0 ? <p class="answer">{t("report.empty")}</p> : <Sentence large text={r.denied > 0 ? "report.denied" : "report.denied.none"} values={values} />}
          {tallies.some((x) => x.mode === "shadow" && x.denied > 0) && <p class="quiet">{t("report.denied.shadow")}</p>}
        </>
      }
      facts={r.unmatched > 0 ? [[t("report.unmatched"), t("report.unmatched.what", { n: count(r.unmatched), share: share(r.unmatched, r.requests) })]] : []}
      contents={[["rules", t("report.rules")], ...denying.map(({ x, id }): [string, string] => [id, x.name]), ["time", t("report.over")]]}
    >
      <section class="panel stack" id="rules">
        <h2>{t("report.rules")}</h2>
        <Tallies rows={tallies} rule={rule} />
        <details>
          <summary>{t("report.columns")}</summary>
          <dl class="facts">
            {(
              [
                ["report.matched", "report.matched.what"],
                ["col.denied", "report.denied.what"],
                ["report.decided", "report.decided.what"],
                ["report.alone", "report.alone.what"],
              ] as const
            ).map(([name, what]) => (
              <div>
                <dt>{t(name)}</dt>
                <dd>{t(what)}</dd>
              </div>
            ))}
          </dl>
        </details>
      </section>
      {denying.map(({ x, id }) => (
        <section class="panel stack" id={id} key={id}>
          <h2>
            <Key text={x.name} />
          </h2>
          <Words rule={rule(x.name)} />
          {x.denied > 0 ? (
            <Sentence
              text="report.rule.denied"
              values={{ denied: <b class="denied">{count(x.denied)}</b>, matched: count(x.matched), share: share(x.denied, x.matched), keys: count(x.keys_denied), all: count(x.keys), from: x.first_denied ? moment(x.first_denied) : "–", to: x.last_denied ? moment(x.last_denied) : "–" }}
            />
          ) : (
            <p>{t("report.rule.none")}</p>
          )}
          {x.masked_by && x.masked_by.length > 0 && <p class="quiet">{t("report.masked", { alone: count(x.alone ?? 0), rules: x.masked_by.map((m) => `${m.rule} (${count(m.denied)})`).join(", ") })}</p>}
          {x.top_denied && x.top_denied.length > 0 && <h3>{t("report.denied.keys")}</h3>}
          <Keys label={t("report.denied.keys")} keys={x.top_denied} />
          <Peaks title={t("report.peaks", { rule: x.name })} of={x.peaks} limits={x.peaks ? [{ quota: x.peaks.quota, text: "report.limit" }] : []} about={about} />
          {x.timeline && x.denied > 0 && <Drawn plot={over(t("report.over.rule", { rule: x.name }), x.timeline, ["denied"], about)} />}
        </section>
      ))}
      {r.timeline && (
        <section class="panel stack" id="time">
          <h2>{t("report.over")}</h2>
          {r.denied > 0 && <Drawn plot={over(t("report.over.denied"), r.timeline, ["denied"], about)} height={150} />}
          <Drawn plot={over(t("report.over.allowed"), r.timeline, ["allowed"], about)} height={150} />
        </section>
      )}
      {r.denied > 0 && <Heat title={t("report.hours.denied")} hours={r.hours} denied />}
      <Heat title={t("report.hours.all")} hours={r.hours} />
    </Frame>
  );
}

function Tallies({ rows, rule }: { rows: Tally[]; rule: (name: string) => Rule | undefined }) {
  const red = (n: number) => (n > 0 ? <b class="denied">{count(n)}</b> : "0");
  const columns: Column<Tally>[] = [
    {
      id: "name",
      title: t("report.rule"),
      cell: (x) => (
        <span class="says">
          <span>
            <Key text={x.name} n={40} /> {x.kind !== "limit" && <Pill>{x.kind}</Pill>}
          </span>
          <span class="small">
            <Words rule={rule(x.name)} />
          </span>
        </span>
      ),
    },
    { id: "matched", title: t("report.matched"), number: true, cell: (x) => count(x.matched) },
    { id: "allowed", title: t("col.allowed"), number: true, cell: (x) => count(x.allowed) },
    { id: "denied", title: t("col.denied"), number: true, cell: (x) => red(x.denied) },
    { id: "decided", title: t("report.decided"), number: true, cell: (x) => count(x.decided) },
    { id: "alone", title: t("report.alone"), number: true, cell: (x) => (x.alone === undefined ? "–" : count(x.alone)) },
    { id: "keys", title: t("report.rulekeys"), number: true, cell: (x) => count(x.keys) },
    { id: "keysdenied", title: t("report.keysdenied"), number: true, cell: (x) => red(x.keys_denied) },
  ];
  return <Table label={t("report.rules")} rows={rows} columns={columns} id={(x) => x.name} />;
}
