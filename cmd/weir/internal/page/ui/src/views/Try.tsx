import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, Failure, request } from "../lib/api";
import { draft, draftOf, loadSource, type Source } from "../lib/draft";
import { diff } from "../lib/diff";
import { ago, base, bytes, clock, count, duration, moment, percent } from "../lib/format";
import { t } from "../lib/i18n";
import { href, namespace, param, setParams } from "../lib/route";
import { mayWrite } from "../lib/session";
import { inWords, lengthOf, sweptInWords, type Rule, type Rules } from "../lib/words";
import { limitOf, withLimit } from "../lib/yaml";
import { peaks } from "../report/plots";
import type { Candidate, Change, Comparison, DeniedKey, Suggestion, Timeline } from "../report/data";
import { Chart, download, type Plot } from "../parts/Chart";
import { Diff } from "../parts/Diff";
import { Empty } from "../parts/Empty";
import { Key } from "../parts/Key";
import { Failed, Loading, Notice } from "../parts/Notice";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table, type Column } from "../parts/Table";
import { isNumber, Save } from "./Rules";

interface Result {
  comparison: Comparison;
  suggestions: Suggestion[];
  quotas: Record<string, [number, number]>;
  unswept?: string[];
  tests: string;
  seconds: number;
}

interface Trial {
  id: string;
  log: string;
  state: "reading" | "running" | "done" | "failed";
  started: string;
  bytes: number;
  total: number;
  lines: number;
  error?: string;
  result?: Result;
}

interface Recording {
  since: string;
  share: number;
  bytes: number;
  most: number;
  attributes: string[];
  hidden: string[];
}

interface State {
  trial: Trial | null;
  recording: Recording | null;
  upload: boolean;
  max_log: number;
  formats: { name: string; about: string }[];
}

/** form is what the reader has chosen, as long as the page is open. */
const form = {
  file: signal<File | undefined>(undefined),
  format: signal("combined"),
  fields: signal(""),
  recorded: signal<boolean | undefined>(undefined),
};

/** tried is the text that the result on the page is about. */
const tried = signal<{ ns: string; id: string; text: string; recorded: boolean } | undefined>(undefined);

/** Try runs requests through changed rules. */
export function Try() {
  const ns = namespace();
  const [source, setSource] = useState<Source>();
  const [rules, setRules] = useState<Rule[]>();
  const [state, setState] = useState<State>();
  const [error, setError] = useState<unknown>();
  const [sending, setSending] = useState<AbortController>();
  const running = state?.trial?.state === "running" || state?.trial?.state === "reading";

  const look = () => api<State>("page/try").then(setState);
  const load = () => {
    setError(undefined);
    Promise.all([loadSource().then(setSource), api<Rules>("v1/rules").then((r) => setRules(r.rules)), look()]).catch(setError);
  };
  useEffect(load, [ns]);
  useEffect(() => {
    if (!running && !sending) return;
    const again = setInterval(() => void look().catch(() => {}), 400);
    return () => clearInterval(again);
  }, [running, sending]);

  if (!state || !source || !rules) return error !== undefined ? <Failed error={error} retry={load} /> : <Loading />;
  if (source.format !== undefined)
    return (
      <>
        <h1>{t("nav.try")}</h1>
        <Empty title={t("try.format")}>{source.read_only}</Empty>
      </>
    );

  const d = draftOf(ns);
  const text = d?.text ?? source.text;
  const numbers = rules.filter(isNumber);
  const rule = param("rule");
  const recorded = form.recorded.value ?? (state.recording !== null && state.recording.bytes > 0);

  const start = () => {
    const job = { text, rules: rule ? [rule] : [], recorded, log: recorded ? "" : (form.file.value?.name ?? ""), format: recorded ? undefined : spec(form.format.value, form.fields.value) };
    const body = new FormData();
    body.append("job", new Blob([JSON.stringify(job)], { type: "application/json" }));
    if (!recorded && form.file.value) body.append("log", form.file.value);
    const stop = new AbortController();
    setError(undefined);
    setSending(stop);
    request("page/try", { method: "POST", body, signal: stop.signal })
      .then((r) => r.json() as Promise<Trial>)
      .then((trial) => (tried.value = { ns, id: trial.id, text, recorded }))
      .then(look)
      .catch((e) => !stop.signal.aborted && setError(e))
      .finally(() => setSending(undefined));
  };
  const cancel = () => {
    sending?.abort();
    api<void>("page/try", { method: "DELETE" })
      .catch((e) => !(e instanceof Failure && e.status === 404) && setError(e))
      .then(look)
      .catch(() => {});
  };
  const trial = state.trial;
  const about = tried.value?.ns === ns && tried.value.id === trial?.id ? tried.value : undefined;

  return (
    <>
      <h1>{t("nav.try")}</h1>
      {trial?.state === "done" && trial.result && <Answer result={trial.result} trial={trial} recording={about?.recorded ? state.recording : null} source={source} rules={rules} ns={ns} text={about?.text} />}
      {trial?.state === "failed" && trial.error !== "cancelled" && (
        <Notice kind="bad" title={t("try.failed")}>
          {trial.error}
        </Notice>
      )}
      {(running || sending) && <Running trial={running ? trial! : undefined} file={form.file.value} cancel={cancel} />}
      {error !== undefined && <Failed error={error} retry={load} />}
      {!running && !sending && (
        <section class="panel stack try">
          <h2>{trial?.result ? t("try.again") : t("try.title")}</h2>
          <div class="choices">
            <What text={text} source={source} ns={ns} draft={d !== undefined} numbers={numbers} rule={rule} />
            <On state={state} recorded={recorded} />
          </div>
          <div class="bar">
            <button type="button" class="main" disabled={(!d && !rule) || (recorded ? !state.recording : !form.file.value)} onClick={start}>
              {t("try.start")}
            </button>
            {!d && !rule && <span class="quiet">{t("try.nothing")}</span>}
          </div>
        </section>
      )}
    </>
  );
}

/** spec describes a log as weir replay --log reads it. */
function spec(format: string, fields: string): unknown {
  const map: Record<string, string> = {};
  const set: Record<string, string> = {};
  const more: Record<string, string> = {};
  for (const line of fields.split("\n")) {
    const [, name, how, value] = /^\s*([^=:\s]+)\s*(:=|=|:)\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name || !value) continue;
    if (how === ":=") set[name] = value;
    else if (how === ":") more[name] = value;
    else map[name] = value;
  }
  return { format, ...more, ...(Object.keys(map).length && { map }), ...(Object.keys(set).length && { set }) };
}

/** What says which rules are tried, and for which limit other numbers are measured. */
function What({ text, source, ns, draft: changed, numbers, rule }: { text: string; source: Source; ns: string; draft: boolean; numbers: Rule[]; rule: string }) {
  const n = useMemo(() => (changed ? diff(source.text, text).filter((c) => c.kind !== " ").length : 0), [text, source.text, changed]);
  const limit = useMemo(() => (rule ? limitOf(text, rule) : undefined), [text, rule]);
  return (
    <fieldset>
      <legend>{t("try.what")}</legend>
      {changed ? (
        <p>
          {t("try.changed", { n })} <a href={href(["rules"], { edit: "1" })}>{t("rules.goon")}</a>
        </p>
      ) : (
        <p>
          {t("try.unchanged")}{" "}
          <a href={href(["rules"], { edit: "1" })}>{t("try.edit")}</a>
        </p>
      )}
      <label class="field">
        {changed ? t("try.rule.also") : t("try.rule")}
        <select value={rule} onChange={(e) => setParams({ rule: e.currentTarget.value })}>
          <option value="">{changed ? t("try.rule.changed") : t("try.rule.choose")}</option>
          {numbers.slice(0, 2000).map((r) => (
            <option value={r.name} key={r.name}>
              {r.name} · {inWords(r)}
              {r.mode === "shadow" && " · shadow"}
            </option>
          ))}
        </select>
      </label>
      {limit !== undefined && (
        <label class="field">
          {t("try.number")}
          <input
            type="number"
            min={1}
            key={rule}
            value={limit}
            onInput={(e) => {
              const to = Number(e.currentTarget.value);
              if (Number.isSafeInteger(to) && to > 0) draft.value = { ns, source: draftOf(ns)?.source ?? source, text: withLimit(text, rule, to)! };
            }}
          />
        </label>
      )}
      {changed && <Diff before={source.text} after={text} />}
    </fieldset>
  );
}

/** On says which requests are tried. */
function On({ state, recorded }: { state: State; recorded: boolean }) {
  const r = state.recording;
  return (
    <fieldset>
      <legend>{t("try.on")}</legend>
      <div class="segments" role="group" aria-label={t("try.on")}>
        <button type="button" aria-pressed={recorded} onClick={() => (form.recorded.value = true)}>
          {t("try.recorded")}
        </button>
        <button type="button" aria-pressed={!recorded} onClick={() => (form.recorded.value = false)}>
          {t("try.log")}
        </button>
      </div>
      {recorded ? (
        r === null ? (
          <Empty title={t("try.off")} command="weir serve --rules rules.yaml --record 64MiB">
            <p>{t("try.off.what")}</p>
          </Empty>
        ) : r.bytes === 0 ? (
          <p class="quiet">{t("try.norequests")}</p>
        ) : (
          <>
            <p>{t(r.share < 1 ? "try.share" : "try.since", { since: clock(r.since), ago: ago(r.since), share: percent(r.share) })}</p>
            {r.attributes.length > 0 && <p class="quiet">{t("try.attributes", { names: r.attributes.join(", ") })}</p>}
            {r.hidden.length > 0 && <p class="quiet">{t("try.hidden", { names: r.hidden.join(", ") })}</p>}
          </>
        )
      ) : !state.upload ? (
        <Notice>{t("try.noupload")}</Notice>
      ) : (
        <>
          <label class="field">
            {t("try.file", { most: bytes(state.max_log) })}
            <input
              type="file"
              onChange={(e) => {
                const file = e.currentTarget.files?.[0];
                form.file.value = file;
                if (file) form.format.value = guess(file.name) ?? form.format.value;
              }}
            />
            {form.file.value && (
              <span>
                <Key text={form.file.value.name} /> · {bytes(form.file.value.size)}
              </span>
            )}
          </label>
          <label class="field">
            {t("try.log.format")}
            <select value={form.format.value} onChange={(e) => (form.format.value = e.currentTarget.value)}>
              {state.formats.map((f) => (
                <option value={f.name} key={f.name} title={f.about}>
                  {f.name} · {f.about}
                </option>
              ))}
            </select>
          </label>
          <details>
            <summary>{t("try.fields")}</summary>
            <label class="field">
              {t("try.fields.what")}
              <textarea rows={4} spellcheck={false} value={form.fields.value} placeholder={"user=.auth.sub\naction:=login\ntimezone: Europe/Berlin"} onInput={(e) => (form.fields.value = e.currentTarget.value)} />
            </label>
          </details>
        </>
      )}
    </fieldset>
  );
}

/** guess returns the format that the name of a log says. */
function guess(name: string): string | undefined {
  const plain = name.toLowerCase().replace(/\.(gz|zst)$/, "");
  return /\.(jsonl?|ndjson)$/.test(plain) ? "json" : /\.csv$/.test(plain) ? "csv" : undefined;
}

/** Running shows how far a trial is. */
function Running({ trial, file, cancel }: { trial?: Trial; file?: File; cancel: () => void }) {
  const reading = !trial || trial.state === "reading";
  const total = reading ? (file?.size ?? 0) : trial.total;
  const done = trial?.bytes ?? 0;
  return (
    <section class="panel stack" aria-busy="true">
      <div class="bar">
        <label class="running">
          <span role="status">{reading ? t("try.reading") : t("try.running", { lines: count(trial.lines) })}</span>
          <progress max={total || 1} value={total ? Math.min(done, total) : undefined} />
        </label>
        <button type="button" onClick={cancel}>
          {t("dialog.cancel")}
        </button>
      </div>
    </section>
  );
}

/** Answer says what the change would have done: the sentence first. */
function Answer({ result, trial, recording, source, rules, ns, text }: { result: Result; trial: Trial; recording: Recording | null; source: Source; rules: Rule[]; ns: string; text?: string }) {
  const c = result.comparison;
  const [denials, admissions] = [c.denials ?? [], c.admissions ?? []];
  const [saving, setSaving] = useState(false);
  const share = (n: number) => percent(c.requests ? n / c.requests : 0);
  const keys = denials.reduce((n, one) => n + one.keys, 0);
  const same = text !== undefined && text === source.text;
  const d = draftOf(ns);
  const values = {
    denied: count(c.newly_denied),
    share: share(c.newly_denied),
    keys: count(keys),
    k: keys,
    allowed: count(c.newly_allowed),
    requests: count(c.requests),
    file: <Key text={base(source.name)} />,
  };
  const covered = c.from && c.to ? (Date.parse(c.to) - Date.parse(c.from)) / 1000 : Infinity;
  const longer = windows(result, rules).filter(([, length]) => length > covered);
  return (
    <>
      <div class="lead" aria-live="polite">
        {same ? (
          <Sentence large text="try.answer.same" values={{ ...values, denied: count(c.denied_old), share: share(c.denied_old) }} />
        ) : c.newly_denied + c.newly_allowed + c.other_outcome === 0 ? (
          <Sentence large text="try.answer.none" values={values} />
        ) : (
          <Sentence large text="try.answer" values={values} />
        )}
        <p class="quiet">
          {t(recording ? "try.about.recorded" : "try.about", { log: trial.log, requests: count(c.requests), from: c.from ? moment(c.from) : "–", to: c.to ? moment(c.to) : "–", seconds: duration(result.seconds) })}
        </p>
        {longer.length > 0 && <Notice kind="warn">{t("try.short", { span: duration(Math.max(1, Math.round(covered))), rules: longer.map(([name, length]) => t("try.short.rule", { name, length: duration(length) })).join(t("list.and")) })}</Notice>}
      </div>
      {recording && recording.share < 1 && <Notice kind="warn">{t("try.share.what", { share: percent(recording.share), n: count(Math.round(1 / recording.share)) })}</Notice>}
      {c.missing && c.missing.length > 0 && <Notice kind="warn" title={t("try.missing")}>{t("try.missing.what", { names: c.missing.join(", ") })}</Notice>}
      {c.bad > 0 && (
        <Notice kind="warn" title={t("try.bad", { n: count(c.bad), lines: count(c.lines) })}>
          <ul>
            {c.bad_lines?.map((b) => (
              <li>
                {b.line}: {b.problem}: <Key text={b.text} n={80} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {denials.length + admissions.length > 0 && (
        <section class="panel stack">
          <h2>{t("try.rules")}</h2>
          <div class="changes">
            <Changes denials={denials} admissions={admissions} requests={c.requests} />
          </div>
        </section>
      )}
      {result.suggestions.map((s) => (
        <Slider key={s.rule} of={s} quotas={result.quotas[s.rule] ?? [0, 0]} source={source} shadow={rules.some((r) => r.name === s.rule && r.mode === "shadow")} ns={ns} same={same} />
      ))}
      {result.unswept && <Notice kind="warn">{t("try.unswept", { names: result.unswept.join(", ") })}</Notice>}
      {c.newly_denied > 0 && c.newly_denied_over && (
        <section class="panel stack">
          <Chart plot={over(c.newly_denied_over)} />
        </section>
      )}
      <div class="bar">
        {d && (
          <>
            <button type="button" class="main" disabled={text !== d.text} onClick={() => setSaving(true)}>
              {mayWrite.value && !source.read_only ? t("rules.save") : t("rules.take")}
            </button>
            {text !== d.text && <span class="quiet">{t("try.other")}</span>}
          </>
        )}
        {result.tests && (
          <button type="button" onClick={() => download(new Blob([result.tests], { type: "application/yaml" }), base(source.name).replace(/\.yaml$/, "") + "_test.yaml")}>
            {t("try.test")}
          </button>
        )}
        <button type="button" onClick={() => download(new Blob([JSON.stringify(result, null, 2)], { type: "application/json" }), "trial.json")}>
          {t("try.json")}
        </button>
      </div>
      {saving && d && <Save source={d.source} text={d.text} onClose={() => setSaving(false)} onSaved={() => (location.hash = href(["rules"]))} />}
    </>
  );
}

/** windows returns the lengths of the windows that a result is about, in seconds, by the rules that have them. */
function windows(result: Result, rules: Rule[]): [string, number][] {
  const all = new Map(result.suggestions.map((s) => [s.rule, lengthOf(s.windows[0]?.window ?? "")]));
  for (const c of [...(result.comparison.denials ?? []), ...(result.comparison.admissions ?? [])]) if (!all.has(c.rule)) all.set(c.rule, lengthOf(rules.find((r) => r.name === c.rule)?.window ?? ""));
  return [...all];
}

/** over is the newly denied requests over time. */
function over(of: Timeline): Plot {
  const start = Date.parse(of.start) / 1000;
  return {
    title: t("try.over"),
    unit: t("try.each", { for: duration(of.seconds) }),
    x: of.denied.map((_, i) => start + i * of.seconds),
    lines: [{ name: t("try.newlydenied"), color: "--denied", values: of.denied, bars: true }],
  };
}

interface Row {
  rule: string;
  denied?: Change;
  allowed?: Change;
  top: DeniedKey[];
}

const of = (c: Change | undefined) => c?.requests ?? 0;

/** Changes has a row for each rule whose decisions change, with the keys that are concerned most. */
function Changes({ denials, admissions, requests }: { denials: Change[]; admissions: Change[]; requests: number }) {
  const rows: Row[] = denials.map((c) => ({ rule: c.rule, denied: c, top: c.top ?? [] }));
  for (const c of admissions) {
    const row = rows.find((r) => r.rule === c.rule);
    if (row) row.allowed = c;
    else rows.push({ rule: c.rule, allowed: c, top: c.top ?? [] });
  }
  const cell = (c: Change | undefined, kind: string) =>
    c ? (
      <>
        <b class={kind}>{count(c.requests)}</b> {c.keys > 0 && <span class="quiet">{t("try.of", { keys: count(c.keys), n: c.keys })}</span>}
      </>
    ) : (
      "0"
    );
  const columns: Column<Row>[] = [
    { id: "rule", title: t("rules.rule"), cell: (r) => (r.rule ? <Key text={r.rule} n={40} href={href(["rules", r.rule])} /> : t("try.unmatched")), value: (r) => r.rule },
    { id: "denied", title: t("try.newlydenied"), number: true, cell: (r) => cell(r.denied, "denied"), value: (r) => of(r.denied) },
    { id: "allowed", title: t("try.newlyallowed"), number: true, cell: (r) => cell(r.allowed, ""), value: (r) => of(r.allowed) },
    { id: "share", title: t("try.ofall"), number: true, cell: (r) => percent(requests ? (of(r.denied) + of(r.allowed)) / requests : 0), value: (r) => of(r.denied) + of(r.allowed) },
    {
      id: "top",
      title: t("try.top"),
      wide: true,
      cell: (r) =>
        r.top.length === 0 ? null : (
          <details class="top">
            <summary>
              <Key text={r.top[0]!.key} n={32} /> {count(r.top[0]!.denied)}
              {r.top.length > 1 && " …"}
            </summary>
            <table class="numbers">
              <thead>
                <tr>
                  <th scope="col">{t("why.col.key")}</th>
                  <th scope="col" class="n">
                    {t("try.requests")}
                  </th>
                  <th scope="col">{t("try.first")}</th>
                  <th scope="col">{t("try.last")}</th>
                </tr>
              </thead>
              <tbody>
                {r.top.map((k) => (
                  <tr key={k.key}>
                    <th scope="row">
                      <Key text={k.key} />
                    </th>
                    <td class="n">{count(k.denied)}</td>
                    <td>{moment(k.first)}</td>
                    <td>{moment(k.last)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </details>
        ),
    },
  ];
  return <Table label={t("try.rules")} rows={rows} columns={columns} id={(r) => r.rule} />;
}

/** Slider says what other numbers of a limit would deny, without another trial. */
function Slider({ of, quotas: [before, after], source, shadow, ns, same }: { of: Suggestion; quotas: [number, number]; source: Source; shadow: boolean; ns: string; same: boolean }) {
  const w = of.windows[0];
  const list = w?.candidates ?? [];
  const now = Math.max(0, list.findIndex((c) => c.quota === (after || before)));
  const [at, setAt] = useState(now);
  const first = useRef(of);
  if (first.current !== of) {
    first.current = of;
    setAt(now);
  }
  if (!w || list.length === 0) return null;
  const c = list[Math.min(at, list.length - 1)]!;
  const marks = [
    before > 0 && { quota: before, text: t("try.inforce") },
    after > 0 && after !== before && { quota: after, text: t("try.changedto") },
    w.suggested >= 0 && { quota: list[w.suggested]!.quota, text: t("try.suggested") },
  ].filter((m) => m !== false);
  const half = near(list, before / 2);
  const say = (c: Candidate) => t("try.would", { n: count(c.quota), window: sweptInWords(w.window), denied: count(c.denied), matched: count(of.matched), share: percent(c.denied_share), keys: count(c.keys_denied), k: c.keys_denied });
  const use = () => {
    const text = withLimit(draftOf(ns)?.text ?? source.text, of.rule, c.quota);
    if (text !== undefined) draft.value = { ns, source: draftOf(ns)?.source ?? source, text };
  };
  const text = draftOf(ns)?.text ?? source.text;
  const changed = useMemo(() => withLimit(text, of.rule, c.quota), [text, of.rule, c.quota]);
  return (
    <section class="panel stack slider">
      <h2>
        {t("try.numbers")} <Key text={of.rule} /> {shadow && <Pill kind="shadow">shadow</Pill>}
      </h2>
      <Sentence
        large
        text={c.denied === 0 ? "try.would.none" : "try.would.many"}
        values={{ n: count(c.quota), window: sweptInWords(w.window), denied: count(c.denied), matched: count(of.matched), share: percent(c.denied_share), keys: count(c.keys_denied), all: count(of.keys) }}
      />
      <input type="range" min={0} max={list.length - 1} step={1} value={at} aria-label={t("try.slide", { rule: of.rule })} aria-valuetext={say(c)} onInput={(e) => setAt(Number(e.currentTarget.value))} />
      <div class="marks">
        {marks.map((m) => (
          <button type="button" class="small" key={m.text} aria-pressed={m.quota === c.quota} onClick={() => setAt(list.findIndex((x) => x.quota === m.quota))}>
            {count(m.quota)} · {m.text}
          </button>
        ))}
        {before > 1 && !marks.some((m) => m.quota === half) && (
          <button type="button" class="small" aria-pressed={c.quota === half} onClick={() => setAt(list.findIndex((x) => x.quota === half))}>
            {count(half)} · {t("try.half")}
          </button>
        )}
      </div>
      {w.suggested >= 0 && <p class="quiet">{t("try.suggested.what")}</p>}
      {of.keys > 0 && <Chart plot={peaks(t("report.peaks", { rule: of.rule }), { ...w.peaks, quota: c.quota, above: 0 }, [{ quota: c.quota, text: at === w.suggested ? "report.limit.suggested" : "report.limit" }], base(source.name))} />}
      <details>
        <summary>{t("chart.numbers", { title: of.rule })}</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={t("chart.numbers", { title: of.rule })}>
          <table class="numbers">
            <thead>
              <tr>
                <th scope="col" class="n">{t("try.quota")}</th>
                <th scope="col" class="n">{t("try.denied")}</th>
                <th scope="col" class="n">{t("try.ofmatching")}</th>
                <th scope="col" class="n">{t("try.keys")}</th>
                <th scope="col" class="n">{t("try.ofkeys")}</th>
              </tr>
            </thead>
            <tbody>
              {list.map((x, i) => (
                <tr key={x.quota} aria-current={i === at ? "true" : undefined}>
                  <th scope="row" class="n">{count(x.quota)}</th>
                  <td class="n">{count(x.denied)}</td>
                  <td class="n">{percent(x.denied_share)}</td>
                  <td class="n">{count(x.keys_denied)}</td>
                  <td class="n">{percent(x.keys_share)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
      <div class="bar">
        <button type="button" class={same ? "main" : ""} disabled={changed === undefined || changed === text} onClick={use}>
          {t("try.use", { n: count(c.quota) })}
        </button>
        <span class="quiet">{changed === text && draftOf(ns) && c.quota !== after ? t("try.used") : t("try.alone")}</span>
      </div>
    </section>
  );
}

/** near returns the candidate that is closest to a number. */
const near = (list: Candidate[], n: number) => list.reduce((a, b) => (Math.abs(b.quota - n) < Math.abs(a - n) ? b.quota : a), list[0]!.quota);
