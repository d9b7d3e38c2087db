import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, Failure, url } from "../lib/api";
import { curl, example } from "../lib/example";
import { ago, base, bytes, clock, compact, count, duration, moment, percent, rate } from "../lib/format";
import { t } from "../lib/i18n";
import { apply, attributesOf, model, seriesOf, withState, within, type Answer, type Counts, type KeyCount, type Line, type Model, type State, type Store, type Tick } from "../lib/overview";
import { href, param, setParams } from "../lib/route";
import { keyParams } from "../lib/ruleset";
import { session } from "../lib/session";
import { live, paused, stream } from "../lib/stream";
import { details, inWords, type Rules, inUse } from "../lib/words";
import { Chart } from "../parts/Chart";
import { Empty } from "../parts/Empty";
import { Key } from "../parts/Key";
import { Failed, Loading, Notice, textOf } from "../parts/Notice";
import { streams } from "../parts/Page";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Sparkline } from "../parts/Sparkline";
import { Table, type Column } from "../parts/Table";
import "./overview.css";

const spans = ["5m", "1h", "24h"] as const;
const lengths: Record<string, number> = { "5m": 300, "1h": 3600, "24h": 86400 };

/** shown is what the overview shows; it stays while another view is open. */
const shown = signal<{ ns: string; span: string; rules: Rules; model: Model } | undefined>(undefined);
const fault = signal<unknown>(undefined);

/** span is how much of the past is shown: an hour, or less just after the start. */
const span = () => (lengths[param("span")] ? param("span") : (session.value?.since ?? 0) > Date.now() / 1000 - 900 ? "5m" : "1h");

/** early is what was asked for before it was known who reads, so that the first numbers come sooner. */
let early: { ns: string; span: string; answer: Promise<Answer>; rules: Promise<Rules> } | undefined;

/** prefetch asks for what the overview shows first. */
export function prefetch(): void {
  early = { ns: param("ns"), span: span(), answer: api<Answer>("page/overview", { query: { span: span() } }), rules: api<Rules>("v1/rules") };
  for (const p of [early.answer, early.rules]) p.catch(() => {});
}

/** Overview says what is going on: a sentence, the decisions over time, each rule, the keys, the store. */
export function Overview() {
  const ns = param("ns");
  const at = span();
  useEffect(() => {
    let ended = false;
    let loading = false;
    const read = async () => {
      if (loading) return;
      loading = true;
      try {
        const first = early?.ns === ns && early.span === at ? early : undefined;
        early = undefined;
        const [answer, rules] = await Promise.all([
          first?.answer ?? api<Answer>("page/overview", { query: { span: at } }),
          shown.value?.ns === ns ? shown.value.rules : (first?.rules ?? api<Rules>("v1/rules")),
        ]);
        const now = answer.hash === rules.hash ? rules : await api<Rules>("v1/rules");
        if (!ended) {
          shown.value = { ns, span: at, rules: now, model: model(now.rules, answer) };
          fault.value = undefined;
        }
      } catch (e) {
        if (!ended) fault.value = e;
      } finally {
        loading = false;
      }
    };
    const current = () => (shown.value?.ns === ns && shown.value.span === at ? shown.value : undefined);
    let last = 0;
    const stop = stream(
      () => url("page/stream"),
      {
        tick: (data) => {
          const tick = data as Tick;
          const s = current();
          if (!s || tick.at <= s.model.answer.now) return;
          if (tick.lost) return void read();
          shown.value = { ...s, model: apply(s.model, tick, last ? Math.max(1, tick.at - last) : 1) };
          last = tick.at;
        },
        state: (data) => {
          const { hash, state } = data as { hash: string; state: State };
          const s = current();
          if (s && hash !== s.rules.hash) void read();
          else if (s) shown.value = { ...s, model: withState(s.model, state) };
        },
      },
      () => void read(),
    );
    void read();
    streams.value++;
    // Ticks name the rules that changed, and state those that hold: now and then all is read.
    const timer = setInterval(() => !paused.value && !document.hidden && void read(), live.value === "on" ? 60_000 : 10_000);
    return () => {
      ended = true;
      stop();
      clearInterval(timer);
      streams.value--;
    };
  }, [ns, at]);

  const s = shown.value?.ns === ns ? shown.value : undefined;
  if (!s) return fault.value ? noRules(fault.value) : <Loading />;
  return <Shown rules={s.rules} m={s.model} />;
}

function noRules(e: unknown) {
  if (e instanceof Failure && e.status === 503) return <Empty title={t("over.norules")}>{<p>{textOf(e)}</p>}</Empty>;
  return <Failed error={e} />;
}

function Shown({ rules, m }: { rules: Rules; m: Model }) {
  const lines = useMemo(() => [...m.lines.values()], [m]);
  const quiet = m.total.every((c) => c[0] === 0) && lines.every((l) => l.sum[0] === 0);
  return (
    <>
      <h1 class="hidden">{t("nav.overview")}</h1>
      <section class="first" aria-label={t("nav.overview")}>
        <Answered m={m} rules={rules} />
        <p class="quiet small">
          {t(instancesOf(m) > 1 ? "over.instances" : "over.instance", {
            since: moment(m.answer.since),
            n: count(instancesOf(m)),
          })}
        </p>
        <Banners m={m} lines={lines} />
      </section>
      {rules.rules.length === 0 ? <NoRules /> : quiet ? <NoTraffic rules={rules} /> : <Decisions m={m} />}
      {lines.length > 0 && <RuleTable lines={lines} rules={rules} m={m} />}
      <Keys s={m.state} />
      <div class="pair">
        {m.state.store && <StorePanel store={m.state.store} />}
        {m.state.namespaces && <Spaces s={m.state} />}
      </div>
    </>
  );
}

const instancesOf = (m: Model) => m.state.store?.instances ?? 0;

/** Answered is the sentence that says what is going on. */
function Answered({ m, rules }: { m: Model; rules: Rules }) {
  const r = m.state.recent;
  const time = duration(Math.min(r.seconds, 300) >= 295 ? 300 : Math.max(10, Math.ceil(r.seconds / 10) * 10));
  if (r.takes === 0) return <Sentence large text="over.none" values={{ time }} />;
  const values: Record<string, ComponentChildren> = { time, takes: count(r.takes), share: percent(r.denied / r.takes) };
  if (r.denied === 0) return <Sentence large text="over.all" values={{ ...values, none: t("over.no") }} />;
  if (!r.rule) return <Sentence large text="over.some" values={values} />;
  const rule = rules.rules.find((x) => x.name === r.rule);
  values.rule = <Key text={r.rule} href={href(["rules", r.rule])} />;
  if (!r.key) return <Sentence large text="over.rule" values={values} />;
  values.key = <Key text={r.key} href={keyHref(r.rule, r.key, rule?.per)} />;
  return <Sentence large text="over.key" values={values} />;
}

/** keyHref returns the view of a key, or of its rule if its text does not say what its attributes are. */
const keyHref = (rule: string, key: string, per?: string[]) => href(["key"], keyParams(rule, attributesOf(key, per ?? []) ?? {}));

/** Banners say what makes numbers other than they seem. */
function Banners({ m, lines }: { m: Model; lines: Line[] }) {
  const r = m.state.recent;
  const limits = lines.filter((l) => l.rule.kind === "limit" || l.rule.kind === "verdict");
  const shadow = limits.length > 0 && limits.every((l) => l.rule.mode === "shadow" || l.rule.mode === "off");
  const away = m.state.store?.nodes?.filter((n) => n.unavailable).length ?? 0;
  const degraded = r.degraded > 0 && t("over.degraded", { n: count(r.degraded), time: duration(300) });
  return (
    <>
      {away > 0 && (
        <Notice kind="warn" title={t("over.store.away")}>
          {degraded}
        </Notice>
      )}
      {m.state.store?.failing && <Notice kind="warn">{t("over.store.failing")}</Notice>}
      {m.state.store?.loading && <Notice>{t("over.store.loading")}</Notice>}
      {away === 0 && degraded && <Notice kind="warn">{degraded}</Notice>}
      {shadow && <Notice>{t("over.shadow", { n: limits.length, time: duration(300), would: count(r.shadow) })}</Notice>}
      {r.unmatched > 0 && (
        <p class="quiet">
          {t("over.unmatched", { n: count(r.unmatched), share: percent(r.unmatched / Math.max(1, r.takes)) })} <a href={href(["live"])}>{t("over.unmatched.why")}</a>
        </p>
      )}
    </>
  );
}

/** Spans chooses how much of the past is shown. */
function Spans() {
  return (
    <nav class="segments" aria-label={t("chart.time")}>
      {spans.map((s) => (
        <a key={s} href={href([], { sort: param("sort"), q: param("q"), span: s })} aria-current={s === span() ? "true" : undefined}>
          {duration(lengths[s]!)}
        </a>
      ))}
    </nav>
  );
}

function Decisions({ m }: { m: Model }) {
  // The last step is not over, and would look like a fall.
  const n = m.steps.length - (m.total.slice(0, -1).some((c) => c[0] > 0) ? 1 : 0);
  const total = m.total.slice(0, n);
  const plot = {
    title: t("over.chart"),
    unit: t("over.each", { time: duration(m.answer.step) }),
    x: m.steps.slice(0, n),
    lines: [
      { name: t("col.allowed"), color: "--allowed" as const, values: total.map((c) => c[0] - c[1]), fill: true },
      { name: t("col.denied"), color: "--denied" as const, values: total.map((c) => c[1]), fill: true },
    ],
  };
  return (
    <section class="panel">
      <div class="title">
        <h2>
          {plot.title} <span class="quiet small">{plot.unit}</span>
        </h2>
        <div class="push">
          <Spans />
        </div>
      </div>
      <Chart plot={plot} height={180} quiet />
    </section>
  );
}

const denies = (c: Counts) => c[1] + c[2];

function RuleTable({ lines, rules, m }: { lines: Line[]; rules: Rules; m: Model }) {
  const [typed, setTyped] = useState(param("q"));
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const time = duration(m.answer.seconds);
  const rows = useMemo(() => (words.length ? lines.filter((l) => words.every((w) => l.rule.name.toLowerCase().includes(w) || inWords(l.rule).toLowerCase().includes(w))) : lines), [lines, typed]);
  const kept = !m.state.store?.shared && lines.some((l) => l.keys >= 0);
  const uses = lines.some((l) => l.holds >= 0 || l.banned >= 0);
  const columns: Column<Line>[] = [
    {
      id: "rule",
      title: t("over.col.rule"),
      wide: true,
      value: (l) => l.rule.name,
      cell: (l) => (
        <div class="rule">
          <Key text={l.rule.name} n={48} href={href(["rules", l.rule.name])} />
          {l.rule.mode === "shadow" && <Pill kind="shadow">shadow</Pill>}
          <span class="words" title={[inWords(l.rule), ...details(l.rule)].join(" · ")}>
            {inWords(l.rule)}
          </span>
        </div>
      ),
    },
    { id: "spark", title: t("over.col.last", { time }), bare: true, cell: (l) => (l.cells ? <Sparkline series={seriesOf(l.cells)} /> : null) },
    { id: "now", title: t("over.col.now"), number: true, value: (l) => l.rate, cell: (l) => (l.rate > 0 ? rate(l.rate) : <span class="quiet">0</span>) },
    { id: "allowed", title: t("col.allowed"), number: true, value: (l) => within(l.sum), cell: (l) => <Amount n={within(l.sum)} /> },
    { id: "near", title: t("col.near"), number: true, value: (l) => l.sum[3], cell: (l) => <Amount n={l.sum[3]} /> },
    { id: "denied", title: t("over.col.share"), number: true, value: (l) => denies(l.sum), cell: (l) => <Denied c={l.sum} rule={l.rule.name} /> },
    ...(kept ? [{ id: "keys", title: t("over.col.keys"), number: true, value: (l: Line) => l.keys, cell: (l: Line) => <Amount n={Math.max(0, l.keys)} /> }] : []),
    ...(uses
      ? [
          {
            id: "use",
            title: t("over.col.use"),
            number: true,
            value: (l: Line) => Math.max(0, l.holds) + Math.max(0, l.banned),
            cell: (l: Line) => l.holds < 0 && l.banned < 0 ? null : (
              <span class="uses">
                {l.holds > 0 && <Pill kind="allowed">{t("over.holds", { n: compact(l.holds) })}</Pill>}
                {l.banned > 0 && <Pill kind="banned">{t("over.banned", { n: compact(l.banned) })}</Pill>}
                {l.holds <= 0 && l.banned <= 0 && <span class="quiet">0</span>}
              </span>
            ),
          },
        ]
      : []),
  ];
  return (
    <section class="panel">
      <div class="title">
        <h2>{t("over.rules")}</h2>
        <span class="quiet small">{t("over.rules.of", { n: count(rules.rules.length), file: base(rules.file), ago: ago(rules.loaded) })}</span>
        <input
          class="push filter"
          type="search"
          data-filter
          placeholder={t("over.filter") + "  /"}
          aria-label={t("over.filter")}
          value={typed}
          onInput={(e) => {
            setTyped(e.currentTarget.value);
            setParams({ q: e.currentTarget.value });
          }}
        />
      </div>
      <Legend lines={lines} />
      <Table label={t("over.rules")} rows={rows} columns={columns} id={(l) => l.rule.name} sort="-denied" most={50} />
      {m.state.store?.shared && lines.some((l) => l.rule.hold || l.rule.ban || inUse(l.rule.window)) && <p class="quiet small">{t("over.use.shared")}</p>}
    </section>
  );
}

/** Legend says what the colours of sparklines are. */
function Legend({ lines }: { lines: Line[] }) {
  const some = (n: number) => lines.some((l) => l.sum[n]! > 0);
  if (!some(0)) return null;
  return (
    <p class="legend quiet small">
      {(["allowed", "near", "denied", "shadow"] as const).map((kind) =>
        some({ allowed: 0, near: 3, denied: 1, shadow: 2 }[kind]) ? (
          <span key={kind}>
            <i class={kind} aria-hidden="true" />
            {t(`col.${kind}`)}
          </span>
        ) : null,
      )}
    </p>
  );
}

const Amount = ({ n }: { n: number }) => (n === 0 ? <span class="quiet">0</span> : <span title={count(n)}>{compact(n)}</span>);

/** Denied is how much a rule denies, or would deny in shadow mode. */
function Denied({ c, rule }: { c: Counts; rule: string }) {
  const n = denies(c);
  if (n === 0) return <span class="quiet">0</span>;
  return (
    <a class={"denies" + (c[1] > 0 ? "" : " shadowed")} href={href(["live"], { rule })}>
      {compact(n)} <small>{percent(n / Math.max(1, c[0]))}</small>
    </a>
  );
}

function Keys({ s }: { s: State }) {
  if (s.no_keys) return <p class="quiet">{t("over.nokeys")}</p>;
  if (s.busiest.length + s.denied.length === 0) return null;
  return (
    <section class="pair" aria-label={t("over.keys")}>
      <KeyList title={t("over.busiest")} keys={s.busiest} none={t("over.busiest.none")} kind="allowed" />
      <KeyList title={t("over.denied")} keys={s.denied} none={t("over.denied.none")} kind="denied" />
    </section>
  );
}

function KeyList({ title, keys, none, kind }: { title: string; keys: KeyCount[]; none: string; kind: "allowed" | "denied" }) {
  // Rules count different things, such as requests and bytes: the bars of one compare with those of another only for denials.
  const most = (k: KeyCount) => Math.max(1, ...keys.filter((o) => kind === "denied" || o.rule === k.rule).map((o) => o.count));
  const rules = shown.value?.rules.rules;
  return (
    <div class="panel">
      <div class="title">
        <h2>{title}</h2>
        <span class="quiet small">{t("over.keys")}</span>
      </div>
      {keys.length === 0 ? (
        <p class="quiet">{none}</p>
      ) : (
        <ol class={"bars " + kind}>
          {keys.map((k) => {
            const rule = rules?.find((r) => r.name === k.rule);
            const would = kind === "denied" && rule?.mode === "shadow";
            return (
              <li key={k.rule + "\0" + k.key} class={would ? "shadowed" : undefined}>
                <Key text={k.key} n={40} href={keyHref(k.rule, k.key, rule?.per)} />
                <span class="quiet small of">
                  <Key text={k.rule} n={28} href={href(["rules", k.rule])} /> {would && "shadow"}
                </span>
                <span class="n">
                  {count(k.count)} {kind === "allowed" && rule?.sum && <Key text={rule.sum} n={16} />}
                </span>
                <i aria-hidden="true" style={{ width: `${(100 * k.count) / most(k)}%` }} />
              </li>
            );
          })}
        </ol>
      )}
    </div>
  );
}

function StorePanel({ store }: { store: Store }) {
  const lasting = store.outages ?? [];
  return (
    <section class="panel">
      <h2>{t("over.store")}</h2>
      <dl class="facts">
        <dt>{t("over.store.counts")}</dt>
        <dd>{store.location === "memory" ? t("over.store.memory") : <code>{store.location}</code>}</dd>
        {(!store.shared || store.bytes > 0) && (
          <>
            <dt>{t("over.store.taken")}</dt>
            <dd>
              {store.max_bytes ? t("over.store.used", { bytes: bytes(store.bytes), most: bytes(store.max_bytes) }) : bytes(store.bytes)}
              {store.max_bytes ? <meter min={0} max={store.max_bytes} high={store.max_bytes * 0.9} value={store.bytes} aria-label={t("over.store.taken")} /> : null}
            </dd>
          </>
        )}
        {store.nodes?.map((n) => (
          <>
            <dt>
              {t("over.store.node")} <code>{n.addr}</code>
            </dt>
            <dd>
              {n.unavailable ? <Pill kind="degraded">{t("over.store.down")}</Pill> : <Pill kind="allowed">{t("over.store.up")}</Pill>}
              {n.missed > 0 && <span class="quiet small"> {t("over.store.missed", { n: count(n.missed) })}</span>}
            </dd>
          </>
        ))}
        {(store.instances ?? 0) > 0 && (
          <>
            <dt>{t("over.store.instances")}</dt>
            <dd>{count(store.instances!)}</dd>
          </>
        )}
        {store.shared && (
          <>
            <dt>{t("over.store.outages")}</dt>
            <dd>
              {lasting.length === 0
                ? t("over.store.no")
                : lasting.slice(0, 5).map((o) => (
                    <div>
                      {o.seconds ? t("over.store.lasted", { time: moment(o.at), for: duration(o.seconds) }) : t("over.store.lasts", { time: clock(o.at) })}{" "}
                      <span class="quiet small">
                        {o.addr} {o.reason}
                      </span>
                    </div>
                  ))}
            </dd>
          </>
        )}
      </dl>
      {(store.full ?? 0) > 0 && <Notice kind="warn">{t("over.store.full", { n: count(store.full!) })}</Notice>}
    </section>
  );
}

function Spaces({ s }: { s: State }) {
  return (
    <section class="panel">
      <h2>{t("over.spaces")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("over.spaces")}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t("over.spaces.name")}</th>
              <th scope="col" class="n">
                {t("over.spaces.rules")}
              </th>
              <th scope="col" class="n">
                {t("over.spaces.takes")}
              </th>
              <th scope="col" class="n">
                {t("col.denied")}
              </th>
            </tr>
          </thead>
          <tbody>
            {s.namespaces!.map((n) => (
              <tr key={n.name}>
                <th scope="row">
                  <Key text={n.name} n={32} href={href([], { ns: n.name })} />
                </th>
                {n.broken ? (
                  <td colSpan={3}>
                    <Pill kind="degraded">{t("over.spaces.broken")}</Pill>
                  </td>
                ) : (
                  <>
                    <td class="n">{count(n.rules)}</td>
                    <td class="n">{count(n.takes)}</td>
                    <td class="n">{count(n.denied)}</td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(s.more_namespaces ?? 0) > 0 && <p class="quiet">{t("over.spaces.more", { n: count(s.more_namespaces!) })}</p>}
    </section>
  );
}

function NoRules() {
  return (
    <Empty title={t("over.empty.rules")} command="weir init rules.yaml && weir serve --rules rules.yaml">
      <p>{t("over.empty.rules.what")}</p>
    </Empty>
  );
}

/** NoTraffic says how to make the first request. */
function NoTraffic({ rules }: { rules: Rules }) {
  const rule = rules.rules.find((r) => r.kind === "limit") ?? rules.rules[0]!;
  const s = session.value!;
  return (
    <>
      <Empty title={t("over.empty.traffic")} command={curl(s.api, "/v1/take", { attributes: example(rule) }, s.tokens)}>
        <p>{t("over.empty.traffic.what", { rule: rule.name })}</p>
      </Empty>
      {rules.file === "demo" && (
        <Empty title={t("over.empty.own")} command="weir init rules.yaml && weir serve --rules rules.yaml">
          <p>{t("over.empty.demo")}</p>
        </Empty>
      )}
    </>
  );
}
