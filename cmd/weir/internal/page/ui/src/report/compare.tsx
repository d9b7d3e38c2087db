import { count } from "../lib/format";
import { t } from "../lib/i18n";
import type { Rule } from "../lib/words";
import { Key } from "../parts/Key";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table } from "../parts/Table";
import type { Change, Comparison, Data } from "./data";
import { any, Drawn, Frame, Keys, origin, Peaks, share, Words } from "./parts";
import { over, type Marked } from "./plots";

/** CompareReport shows the requests that new rules decide otherwise than old ones. */
export function CompareReport({ d }: { d: Extract<Data, { kind: "compare" }> }) {
  const r = d.report;
  const about = origin(d);
  const [denials, admissions] = [r.denials ?? [], r.admissions ?? []];
  const keys = denials.reduce((n, c) => n + c.keys, 0);
  const values = { denied: <b class="denied">{count(r.newly_denied)}</b>, share: share(r.newly_denied, r.requests), keys: count(keys), k: keys, allowed: count(r.newly_allowed), requests: count(r.requests) };
  const text =
    r.newly_denied + r.newly_allowed + r.other_outcome === 0 ? "report.same" : r.newly_denied === 0 ? "report.newly.none" : "report.newly";
  const before = (n: number) => `${count(n)} (${share(n, r.requests)})`;
  return (
    <Frame
      d={d}
      answer={r.requests === 0 ? <p class="answer">{t("report.empty")}</p> : <Sentence large text={text} values={values} />}
      facts={[
        [t("report.before"), before(r.denied_old)],
        [t("report.after"), before(r.denied_new)],
        [t("report.requests"), count(r.requests)],
      ]}
    >
      <RulesOf d={d} />
      {denials.map((c) => (
        <Changed key={"d" + c.rule} kind="report.newlydenied" of={c} />
      ))}
      {r.newly_denied > 0 && r.newly_denied_over && (
        <section class="panel">
          <Drawn plot={over(t("report.over.newlydenied"), r.newly_denied_over, ["newlydenied"], about)} />
        </section>
      )}
      {admissions.map((c) => (
        <Changed key={"a" + c.rule} kind="report.newlyallowed" of={c} />
      ))}
      {r.newly_allowed > 0 && r.newly_allowed_over && (
        <section class="panel">
          <Drawn plot={over(t("report.over.newlyallowed"), r.newly_allowed_over, ["newlyallowed"], about)} />
        </section>
      )}
      {(r.peaks ?? []).map((p) => (
        <ComparedPeaks key={p.rule} of={p} about={about} />
      ))}
    </Frame>
  );
}

/** RulesOf shows the rules of both files in words, and what changes. */
function RulesOf({ d }: { d: Data }) {
  const [old, now] = [d.files[0]?.rules ?? [], d.files[1]?.rules ?? []];
  const rows = [
    ...now.map((rule) => ({ rule, was: old.find((o) => o.name === rule.name), here: true })),
    ...old.filter((o) => !now.some((n) => n.name === o.name)).map((rule) => ({ rule, was: rule as Rule | undefined, here: false })),
  ].map((x) => ({ ...x, state: !x.here ? ("report.removed" as const) : !x.was ? ("report.added" as const) : JSON.stringify(x.was) === JSON.stringify(x.rule) ? ("report.unchanged" as const) : ("report.changed" as const) }));
  if (rows.length === 0) return null;
  rows.sort((a, b) => Number(a.state === "report.unchanged") - Number(b.state === "report.unchanged"));
  return (
    <section class="panel stack">
      <h2>{t("report.rules")}</h2>
      {rows.every((x) => x.state === "report.unchanged") && <p>{t("report.same.rules")}</p>}
      <Table
        label={t("report.rules")}
        rows={rows}
        id={(x) => x.rule.name}
        most={30}
        columns={[
          { id: "name", title: t("report.rule"), cell: (x) => <Key text={x.rule.name} n={40} /> },
          { id: "state", title: t("report.state"), bare: true, cell: (x) => <Pill kind={x.state === "report.unchanged" ? "" : "allowed"}>{t(x.state)}</Pill> },
          { id: "old", title: t("report.col.old"), wide: true, cell: (x) => (x.was ? <Words rule={x.was} /> : "–") },
          { id: "new", title: t("report.col.new"), wide: true, cell: (x) => (x.here ? <Words rule={x.rule} /> : "–") },
        ]}
      />
    </section>
  );
}

function Changed({ kind, of }: { kind: "report.newlydenied" | "report.newlyallowed"; of: Change }) {
  return (
    <section class="panel stack">
      <h2>
        {t(kind)} · {of.rule ? <Key text={of.rule} /> : t("report.norule")}
      </h2>
      <p>{t("report.of.keys", { requests: count(of.requests), r: of.requests, keys: count(of.keys), k: of.keys })}</p>
      <Keys label={`${t(kind)} · ${of.rule}`} keys={of.top} />
      {of.examples && of.examples.length > 0 && (
        <details>
          <summary>{t("report.examples")}</summary>
          <ul class="examples">
            {of.examples.map((e) => (
              <li>
                <span class="quiet">
                  {e.log}:{e.line}
                </span>{" "}
                <Key text={e.text} n={160} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

/** ComparedPeaks is one chart with both limits if the peaks are the same, or else one for each set of rules. */
function ComparedPeaks({ of: { rule, old, new: now }, about }: { of: NonNullable<Comparison["peaks"]>[number]; about: string }) {
  const like = old && now && !old.percent === !now.percent && old.above === now.above && String(old.bounds) === String(now.bounds) && String(old.keys) === String(now.keys);
  const limits: Marked[] = like && old.quota !== now.quota ? [{ quota: old.quota, text: "report.limit.old" }, { quota: now.quota, text: "report.limit.new" }] : [{ quota: (now ?? old)!.quota, text: "report.limit" }];
  if (!any(old) && !any(now)) return null;
  return (
    <section class="panel stack">
      {old && !like && <Peaks title={t("report.peaks.old", { rule })} of={old} limits={[{ quota: old.quota, text: "report.limit" }]} about={about} head="h2" />}
      {(now || like) && <Peaks title={t(like || !old ? "report.peaks" : "report.peaks.new", { rule })} of={now} limits={limits} about={about} head="h2" />}
    </section>
  );
}
