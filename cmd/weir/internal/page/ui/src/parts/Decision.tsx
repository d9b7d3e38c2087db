import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api } from "../lib/api";
import { curl } from "../lib/example";
import { clock, count, moment } from "../lib/format";
import { t, type Text } from "../lib/i18n";
import { href, namespace } from "../lib/route";
import { keyOf, keyParams } from "../lib/ruleset";
import { session } from "../lib/session";
import { amount, decider, past, wait, type Decision as Made, type Differ, type Judged } from "../lib/why";
import { inUse, windowInWords, type Rule } from "../lib/words";
import { Copy } from "./Copy";
import { Key } from "./Key";
import { Failed, Notice } from "./Notice";
import { Pill } from "./Pill";
import { Sentence } from "./Sentence";
import { Window } from "./Window";

/** Decision shows a decision: why it is as it is, what would have had to differ, each rule with its numbers, and the windows
 * of the rules that count. A decision that was kept gets its windows as they were; those that are not known any more, as they
 * are now. */
export function Decision({ made: d, rules, asked }: { made: Made; rules?: Map<string, Rule>; asked?: boolean }) {
  const [now, setNow] = useState<Made>();
  const [error, setError] = useState<unknown>();
  const known = !d.cut && d.attributes && Object.keys(d.attributes).length > 0;
  const read = () => {
    api<Made>("page/why", { method: "POST", body: { attributes: d.attributes, hits: d.hits || 1 } }).then(setNow, setError);
  };
  useEffect(() => {
    setNow(undefined);
    setError(undefined);
    if (!asked && known) read();
  }, [d]);

  const windows = ((asked ? d : now)?.rules ?? []).flatMap((n) => {
    const j = d.rules.find((j) => j.rule === n.rule && j.numbers);
    if (!n.leaving || !j) return [];
    const was = !asked && j.window === n.window && j.reason !== "ban" ? past(n.leaving, j, d.time) : undefined;
    const of = was ? j : n;
    return of.used > 0 || !j.allowed ? [{ of, leaving: was ?? n.leaving, was }] : [];
  });
  const of = decider(d);
  const key = of && keyOf(rules?.get(of.rule), d.attributes, of.key);
  const others = d.rules.filter((j) => !j.matched);
  const ns = namespace() && "/ns/" + encodeURIComponent(namespace());
  return (
    <div class="decision">
      <Because d={d} />
      <dl class="known">
        <Fact name="why.time">{moment(d.time)}</Fact>
        <Fact name="why.outcome">
          <Pill kind={d.allowed ? "allowed" : "denied"}>{d.outcome}</Pill>
        </Fact>
        {!!d.hits && d.hits !== 1 && <Fact name="why.cost">{amount(d.hits)}</Fact>}
        {d.attributes && (
          <Fact name="why.attributes">
            <span class="values">
              {Object.entries(d.attributes).map(([name, value]) => (
                <span key={name}>
                  <Key text={name} />=<Key text={value} />
                </span>
              ))}
            </span>
          </Fact>
        )}
      </dl>
      {!d.whole ? <Notice>{t("why.line")}</Notice> : d.cut && <Notice>{t("why.cut")}</Notice>}
      {d.differ && d.differ.length > 0 && <Differs d={d} title={asked ? "why.differ.now" : "why.differ"} />}
      <section>
        <h3>{t("why.rules")}</h3>
        <ol class="judged">
          {d.rules
            .filter((j) => j.matched)
            .map((j) => (
              <Answer key={j.rule} j={j} />
            ))}
        </ol>
        {others.length > 0 && (
          <details>
            <summary>{t("why.others", { n: others.length })}</summary>
            <ul class="others">
              {others.map((j) => (
                <li key={j.rule}>
                  <Key text={j.rule} /> <span class="quiet">{j.why?.join("; ")}</span>
                </li>
              ))}
            </ul>
          </details>
        )}
      </section>
      {error !== undefined && <Failed error={error} retry={() => (setError(undefined), read())} />}
      {windows.map(({ of: j, leaving, was }) => (
        <section key={j.rule}>
          <h3>{t("why.window", { rule: j.rule })}</h3>
          {!asked && <p class="quiet">{was ? t("why.window.was", { time: clock(d.time), left: was.gone > 0 ? t("why.window.gone", { n: was.gone, gone: count(was.gone) }) : "" }) : t("why.window.now", { time: clock(now!.time) })}</p>}
          <Window of={leaving} used={j.used} quota={j.quota} unit={j.unit} banned={was ? undefined : j.banned_until} past={!!was} />
        </section>
      ))}
      <div class="bar">
        {known && session.value && <Copy text={curl(session.value.api, ns + "/v1/explain", { attributes: d.attributes, ...(d.hits && d.hits !== 1 ? { hits: d.hits } : {}) }, session.value.tokens)} label={t("why.copy.curl")} />}
        {d.test && <Copy text={d.test} label={t("why.copy.step")} />}
        <Copy text={JSON.stringify(d, null, 2)} label={t("why.copy.json")} />
        {of && key && (
          <a class="button small push" href={href(["key"], keyParams(of.rule, key))}>
            {t("why.key")}
          </a>
        )}
      </div>
    </div>
  );
}

export const Fact = ({ name, children }: { name: Text; children: ComponentChildren }) => (
  <div>
    <dt>{t(name)}</dt>
    <dd>{children}</dd>
  </div>
);

/** Because says in a sentence why a decision is as it is. */
export function Because({ d }: { d: Made }) {
  const j = decider(d);
  const values: Record<string, ComponentChildren> = j
    ? {
        rule: <Key text={j.rule} n={40} />,
        key: <Key text={j.key ?? ""} n={40} />,
        used: amount(j.used, j.unit, j.window),
        quota: count(j.quota ?? 0),
        hits: amount(j.hits, j.unit, j.window),
        until: j.banned_until ? moment(j.banned_until) : "",
        cause: j.degraded_reason ?? "",
      }
    : {};
  let text: Text = "why.because.allowed";
  if (!d.allowed && d.unmatched) text = "why.because.unmatched";
  else if (j && d.allowed) text = "why.because.shadow";
  else if (j?.reason === "limit") text = `why.because.${inUse(j.window) ? "held" : "limit"}${j.key ? "" : ".all"}`;
  else if (j?.reason) text = `why.because.${j.reason}`;
  return <Sentence large text={text} values={values} />;
}

function Differs({ d, title }: { d: Made; title: Text }) {
  const enforced = d.differ!.filter((x) => !x.shadow);
  const shadow = d.differ!.filter((x) => x.shadow);
  return (
    <section>
      <h3>{t(title)}</h3>
      {enforced.length > 1 && <p class="quiet">{t("why.differ.all")}</p>}
      {enforced.map((x) => (
        <Options key={x.rule} x={x} d={d} name={enforced.length > 1} />
      ))}
      {shadow.map((x) => (
        <div key={x.rule}>
          <Sentence text="why.differ.shadow" values={{ rule: <Key text={x.rule} /> }} />
          <Options x={x} d={d} />
        </div>
      ))}
    </section>
  );
}

/** Options lists what, each alone, would have made a rule allow the request. */
function Options({ x, d, name }: { x: Differ; d: Made; name?: boolean }) {
  const j = d.rules.find((r) => r.rule === x.rule);
  const all: ComponentChildren[] = [];
  const rule = <Key text={x.rule} />;
  const add = (text: Text, values: Record<string, ComponentChildren> = {}) => all.push(<Sentence text={text} values={values} />);
  switch (x.reason) {
    case "limit":
      if (x.most! > 0) add("why.differ.most", { most: amount(x.most!, x.unit), hits: amount(j?.hits ?? 0, x.unit) });
      if (x.wait! >= 0) add("why.differ.wait", { wait: wait(x.wait!) });
      else add("why.differ.never");
      if (x.quota) add("why.differ.quota", { quota: count(x.quota) });
      break;
    case "ban":
      add("why.differ.ban", { rule, until: x.until ? moment(x.until) : "" });
      break;
    case "holds":
      add("why.differ.holds", { wait: wait(x.wait ?? -1) });
      break;
    case "verdict":
      add("why.differ.verdict", { rule });
      break;
    case "outage":
      add("why.differ.outage");
  }
  return (
    <ul class="options" aria-label={x.rule}>
      {name && <li class="of">{rule}</li>}
      {all.map((one, i) => (
        <li key={i}>{one}</li>
      ))}
    </ul>
  );
}

/** Answer is the answer of one rule that matches. */
function Answer({ j }: { j: Judged }) {
  const verdict: Text = j.kind === "verdict" && j.allowed ? "why.applies" : !j.numbers && j.allowed ? "why.applies" : j.quota === undefined && j.allowed ? "why.counts" : j.allowed ? "why.allows" : j.shadow ? "why.would" : "why.denies";
  return (
    <li class={j.allowed ? undefined : j.shadow ? "would" : "no"}>
      <span class="mark" aria-hidden="true">
        {j.allowed ? "✓" : "✗"}
      </span>
      <div class="about">
        <a href={href(["rules", j.rule])}>
          <Key text={j.rule} />
        </a>{" "}
        {j.numbers && j.quota !== undefined && <span class="quiet">{t("rule.limit", { n: count(j.quota), what: j.unit ? " " + j.unit : "", window: windowInWords(j.window ?? "") })}</span>}
        {j.shadow && <Pill kind="shadow">{t("why.shadow.word")}</Pill>}
        {j.override && <Pill>{t("why.overridden")}</Pill>}
        {j.why && j.why.length > 0 && <p class="quiet">{j.why.join("; ")}</p>}
      </div>
      <div class="says">
        <Pill kind={j.allowed ? "" : kindOf(j, j.shadow)}>
          {t(verdict)}
          {j.reason && j.reason !== "limit" ? ` · ${t(`why.reason.${j.reason}`)}` : ""}
        </Pill>
      </div>
      {j.numbers && j.quota !== undefined && (
        <div class="use">
          {j.reason !== "ban" && <Meter used={j.used} hits={j.hits} quota={j.quota} />}
          <span>
            {t(inUse(j.window) ? "why.asks.held" : "why.asks", { used: t("why.of", { used: count(j.used), quota: count(j.quota) }), hits: amount(j.hits, j.unit, j.window) })}
            {!j.allowed && j.retry_after !== 0 && <> · {j.retry_after < 0 ? t("why.differ.never") : t("why.fits", { wait: wait(j.retry_after) })}</>}
          </span>
        </div>
      )}
    </li>
  );
}

/** kindOf is the colour of a denial by a rule. */
const kindOf = (j: Judged, shadow?: boolean) => (j.reason === "ban" ? "banned" : j.reason === "outage" ? "degraded" : shadow ? "shadow" : "denied");

/** Reason says in a list why a request was denied. */
export function Reason({ d }: { d: Made }) {
  const j = decider(d);
  if (!j) return <Pill kind="denied">{d.outcome}</Pill>;
  return (
    <span class="inline">
      <Pill kind={kindOf(j, d.allowed)}>{t(`why.reason.${j.reason ?? "limit"}`)}</Pill>
      {j.numbers && j.quota !== undefined && <span class="quiet">{t(j.hits > 1 ? "why.of.asks" : "why.of", { used: count(j.used), hits: count(j.hits), quota: count(j.quota) })}</span>}
    </span>
  );
}

/** Meter is a bar: what is used, what a request asks, and the quota as a mark. */
export function Meter({ used, hits = 0, quota, label }: { used: number; hits?: number; quota: number; label?: string }) {
  const most = Math.max(quota, used + hits, 1);
  const part = (n: number) => (100 * n) / most;
  return (
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" role={label ? "img" : undefined} aria-label={label} aria-hidden={label ? undefined : true}>
      <rect class="m-all" width="100" height="8" />
      <rect class="m-used" width={part(Math.min(used, quota))} height="8" />
      {used > quota && <rect class="m-over" x={part(quota)} width={part(used - quota)} height="8" />}
      {hits > 0 && <rect class={used + hits > quota ? "m-asks over" : "m-asks"} x={part(used)} width={part(hits)} height="8" />}
      {most > quota && <rect class="m-quota" x={part(quota) - 0.4} width="0.8" height="8" />}
    </svg>
  );
}
