import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, Failure } from "../lib/api";
import { count, duration, moment, pairs } from "../lib/format";
import { t, type Text } from "../lib/i18n";
import { given, href, param } from "../lib/route";
import { keyParams, useRules } from "../lib/ruleset";
import { may, session } from "../lib/session";
import { live, paused } from "../lib/stream";
import { amount, decider, fitsAt, id, wait, type Change, type Decision as Made, type KeyState, type Keys } from "../lib/why";
import { inUse, inWords, windowInWords, type Rule } from "../lib/words";
import { Decision, Fact, Meter, Reason } from "../parts/Decision";
import { Dialog } from "../parts/Dialog";
import { Empty } from "../parts/Empty";
import { Key as KeyText } from "../parts/Key";
import { Failed, Loading, Notice } from "../parts/Notice";
import { streams } from "../parts/Page";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table } from "../parts/Table";
import { HitsTable, Window } from "../parts/Window";
import { Act, type Action } from "./Act";
import "./why.css";

/** pace is how often the numbers of a key are read again, in milliseconds. */
const pace = 2000;

/** Key finds a key of a rule, shows what weir knows about it, and changes it. */
export function Key() {
  const rules = useRules();
  const name = param("rule");
  const key = Object.fromEntries(given());
  const rule = rules?.get(name);
  const whole = !!rule && rule.kind !== "verdict" && (rule.per ?? []).every((p) => key[p]);
  return (
    <>
      <h1>{t("nav.key")}</h1>
      {!rules ? (
        <Loading />
      ) : (
        <>
          {whole ? (
            <details class="another">
              <summary>{t("keyview.another")}</summary>
              <Find key={name + JSON.stringify(key)} rules={rules} name={name} attributes={key} />
            </details>
          ) : (
            <Find key={name + JSON.stringify(key)} rules={rules} name={name} attributes={key} />
          )}
          {name && (!rule || rule.kind === "verdict") && <Notice kind="warn">{t("keyview.unknown", { rule: name })}</Notice>}
          {whole && <State key={name + JSON.stringify(key)} rule={rule} attributes={key} rules={rules} />}
        </>
      )}
    </>
  );
}

/** Find is a form that names a rule and the attributes of a key. */
function Find({ rules, name: first, attributes: given }: { rules: Map<string, Rule>; name: string; attributes: Record<string, string> }) {
  const counting = [...rules.values()].filter((r) => r.kind !== "verdict");
  const [name, setName] = useState(first || (counting.find((r) => r.per?.length) ?? counting[0])?.name || "");
  const [values, setValues] = useState(given);
  const rule = rules.get(name);
  const per = rule?.per ?? [];
  const extra = rule && typeof rule.limit === "object" ? [("of" in rule.limit ? rule.limit.of : rule.limit.by)].filter((a) => !per.includes(a)) : [];
  if (counting.length === 0) return <Empty title={t("keyview.none")} />;
  const show = () => (location.hash = href(["key"], keyParams(name, Object.fromEntries([...per, ...extra].map((a) => [a, values[a] ?? ""])))));
  const typed = name.toLowerCase();
  return (
    <section class="panel find">
      <h2>{t("keyview.find")}</h2>
      <form onSubmit={(e) => (e.preventDefault(), show())}>
        <label class="field">
          {t("keyview.rule")}
          {counting.length <= 200 ? (
            <select value={name} onChange={(e) => setName(e.currentTarget.value)}>
              {counting.map((r) => (
                <option key={r.name}>{r.name}</option>
              ))}
            </select>
          ) : (
            <>
              <input list="key-rules" value={name} onInput={(e) => setName(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
              <datalist id="key-rules">
                {counting
                  .filter((r) => r.name.toLowerCase().includes(typed))
                  .slice(0, 100)
                  .map((r) => (
                    <option key={r.name} value={r.name} />
                  ))}
              </datalist>
            </>
          )}
        </label>
        {[...per, ...extra].map((a, i) => (
          <label class="field grow" key={a}>
            {a}
            <input data-filter={i === 0 ? "" : undefined} value={values[a] ?? ""} required={per.includes(a)} onInput={(e) => setValues({ ...values, [a]: e.currentTarget.value })} autocomplete="off" spellcheck={false} autocapitalize="none" />
          </label>
        ))}
        <button type="submit" class="main">
          {t("keyview.show")}
        </button>
      </form>
      {rule && <p class="quiet">{inWords(rule)}</p>}
      {rule && per.length > 0 && <List key={name} rule={rule} />}
    </section>
  );
}

/** List lists keys of a rule, if its store has them; otherwise it says why not. */
function List({ rule }: { rule: Rule }) {
  const [open, setOpen] = useState(false);
  const [prefix, setPrefix] = useState("");
  const [keys, setKeys] = useState<Keys>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!open) return;
    const timer = setTimeout(
      () =>
        void api<Keys>("page/keys", { query: { rule: rule.name, prefix, n: "50" } }).then(
          (k) => (setKeys(k), setError(undefined)),
          (e) => setError(e),
        ),
      prefix ? 300 : 0,
    );
    return () => clearTimeout(timer);
  }, [open, prefix]);
  return (
    <details onToggle={(e) => setOpen((e.currentTarget as HTMLDetailsElement).open)}>
      <summary>{t("keyview.list")}</summary>
      {error !== undefined ? (
        <Notice>{error instanceof Failure ? error.problem.detail : String(error)}</Notice>
      ) : !keys ? (
        open && <Loading />
      ) : (
        <div class="listed">
          {(!keys.complete || prefix) && (
            <label class="field beside">
              {t("keyview.prefix")}
              <input value={prefix} onInput={(e) => setPrefix(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
            </label>
          )}
          {keys.keys.length === 0 ? (
            <p class="quiet">{t("keyview.list.none")}</p>
          ) : (
            <ul aria-label={t("keyview.list.what")}>
              {keys.keys.map((k) => (
                <li key={JSON.stringify(k.attributes)}>
                  <a href={href(["key"], keyParams(rule.name, k.attributes))}>
                    {Object.values(k.attributes).map((v, i) => (
                      <>
                        {i > 0 && " · "}
                        <KeyText text={v} n={32} />
                      </>
                    ))}
                  </a>
                  <span class="quiet">{k.quota === undefined ? count(k.used + (k.held ?? 0)) : t("why.of", { used: count(k.used + (k.held ?? 0)), quota: count(k.quota) })}</span>
                </li>
              ))}
            </ul>
          )}
          {!keys.complete && keys.keys.length > 0 && <p class="quiet">{t("keyview.list.more")}</p>}
        </div>
      )}
    </details>
  );
}

/** State shows what weir knows about a key. It moves unless the reader pauses. */
function State({ rule, attributes: of, rules }: { rule: Rule; attributes: Record<string, string>; rules: Map<string, Rule> }) {
  const [k, setK] = useState<KeyState>();
  const [error, setError] = useState<unknown>();
  const [action, setAction] = useState<Action>();
  const [done, setDone] = useState("");
  const [opened, setOpened] = useState<Made>();

  const read = () =>
    api<KeyState>("page/key", { query: keyParams(rule.name, of) }).then(
      (a) => (setK(a), setError(undefined), (live.value = "on")),
      (e) => (setError(e), (live.value = "lost")),
    );
  useEffect(() => {
    void read();
    streams.value++;
    const timer = setInterval(() => {
      if (paused.value || document.hidden) live.value = "off";
      else void read();
    }, pace);
    return () => {
      clearInterval(timer);
      streams.value--;
      live.value = "off";
    };
  }, []);

  if (!k) return error !== undefined ? <Failed error={error} retry={() => void read()} /> : <Loading />;
  return (
    <>
      <section class="state" aria-label={k.key}>
        <Answer k={k} />
        {k.quota !== undefined && <Meter used={k.used} quota={k.quota} label={t("keyview.bar", { used: count(k.used), quota: count(k.quota) })} />}
      </section>
      {error !== undefined && <Failed error={error} />}
      {done && (
        <Notice kind="good">{t("act.done", { what: done })}</Notice>
      )}
      {k.degraded && <Notice kind="warn">{t("keyview.degraded")}</Notice>}
      {k.shadow && <Notice>{t("keyview.shadow")}</Notice>}
      <div class="halves">
        <section class="panel">
          <h2>{t("window.of")}</h2>
          <Window of={k.leaving} used={k.used} quota={k.quota} unit={k.unit} banned={k.banned_until} />
        </section>
        <section class="panel">
          <dl class="known column">
            <Fact name="keyview.reset">{wait(k.reset_after)}</Fact>
            {!!k.holds && <Fact name="keyview.holds">{count(k.holds)}</Fact>}
            {k.bans && (
              <>
                <Fact name="keyview.ban">{k.banned_until ? <Pill kind="banned">{moment(k.banned_until)}</Pill> : t("keyview.ban.none")}</Fact>
                <Fact name="keyview.strikes">{count(k.strikes ?? 0)}</Fact>
              </>
            )}
            {k.overrides && (
              <Fact name="keyview.override">
                {!k.override ? (
                  t("keyview.override.none")
                ) : (
                  <>
                    <Pill>{k.override.until ? t("keyview.override.is", { limit: count(k.override.limit), until: moment(k.override.until) }) : t("keyview.override.ever", { limit: count(k.override.limit) })}</Pill>
                    {k.override.note && (
                      <p>
                        <KeyText text={k.override.note} n={256} />
                      </p>
                    )}
                    {k.override.by && <p class="quiet">{t("keyview.override.by", { by: k.override.by })}</p>}
                    {Object.keys(k.override.attributes).length < k.per.length && (
                      <p class="quiet">{t("keyview.override.for", { attributes: pairs(k.override.attributes) })}</p>
                    )}
                  </>
                )}
              </Fact>
            )}
          </dl>
          <Actions k={k} act={setAction} />
        </section>
      </div>
      {k.held && (
        <section class="panel">
          <h2>{t("keyview.holds")}</h2>
          {k.holds! > k.held.length && <p class="quiet">{t("keyview.holds.first", { n: count(k.held.length), all: count(k.holds!) })}</p>}
          <HitsTable label={t("keyview.holds")} hits={k.held} holds />
        </section>
      )}
      <section class="panel">
        <h2>{t("keyview.denials")}</h2>
        {k.denials.length === 0 ? (
          <p class="quiet">{t(k.hidden === "off" ? "keyview.denials.off" : k.hidden === "none" ? "keyview.denials.hidden" : "keyview.denials.none")}</p>
        ) : (
          <Table<Made>
            label={t("keyview.denials")}
            rows={k.denials}
            id={id}
            columns={[
              {
                id: "at",
                title: t("why.col.time"),
                cell: (d) => (
                  <button type="button" class="plain" onClick={() => setOpened(d)}>
                    {moment(d.time)}
                  </button>
                ),
              },
              {
                id: "why",
                title: t("why.col.reason"),
                wide: true,
                cell: (d) => <Reason d={d} />,
              },
              { id: "wait", title: t("why.col.wait"), number: true, cell: (d) => wait(decider(d)?.retry_after ?? 0) },
            ]}
          />
        )}
      </section>
      {may("admin") && (
        <section class="panel">
          <h2>{t("keyview.changes")}</h2>
          {!k.changes?.length ? (
            <p class="quiet">{t("keyview.changes.none")}</p>
          ) : (
            <Table<Change>
              label={t("keyview.changes")}
              rows={k.changes}
              id={(c) => c.time + c.action}
              columns={[
                { id: "at", title: t("why.col.time"), cell: (c) => moment(c.time) },
                { id: "what", title: t("keyview.changes.what"), cell: (c) => t(`change.${c.action}`) },
                { id: "who", title: t("keyview.changes.who"), cell: (c) => (c.token ? <KeyText text={c.token} /> : t("keyview.nobody")) },
                { id: "before", title: t("keyview.changes.before"), cell: (c) => brief(c.before) },
                { id: "after", title: t("keyview.changes.after"), wide: true, cell: (c) => brief(c.after) },
              ]}
            />
          )}
        </section>
      )}
      {action && <Act action={action} k={k} rule={rule} onClose={() => setAction(undefined)} onDone={(what) => (setAction(undefined), setDone(what), void read())} />}
      {opened && (
        <Dialog side title={t(opened.allowed ? "why.title.shadow" : "why.title")} onClose={() => setOpened(undefined)}>
          <Decision made={opened} rules={rules} />
        </Dialog>
      )}
    </>
  );
}

/** brief writes what the audit has of a change. */
function brief(of: Record<string, unknown> | undefined): ComponentChildren {
  if (!of) return "–";
  return (
    <span class="values">
      {Object.entries(of)
        .filter(([name]) => !["rule", "attributes", "set", "by"].includes(name))
        .map(([name, value]) => (
          <span key={name}>
            {name} <KeyText text={typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) ? moment(value) : String(value)} />
          </span>
        ))}
    </span>
  );
}

/** Answer says in a sentence how a key stands. */
function Answer({ k }: { k: KeyState }) {
  const values: Record<string, ComponentChildren> = {
    rule: <KeyText text={k.rule} n={40} href={href(["rules", k.rule])} />,
    key: <KeyText text={k.key} n={48} />,
    used: amount(k.used, k.unit, k.window),
    quota: count(k.quota ?? 0),
    window: <span class="light">{windowInWords(k.window)}</span>,
  };
  let text: Text = "keyview.counter";
  if (k.banned_until) {
    text = "keyview.banned";
    values.until = moment(k.banned_until);
    values.wait = <span class="whole">{duration(Math.max(0, Math.ceil((Date.parse(k.banned_until) - Date.parse(k.leaving.now)) / 1000)))}</span>;
  } else if (k.quota !== undefined && k.used === 0) text = "keyview.unused";
  else if (k.quota !== undefined && k.remaining! > 0) text = "keyview.used";
  else if (k.quota !== undefined) {
    const at = k.leaving.drains ? Date.parse(k.leaving.now) + k.leaving.drains * 1000 : fitsAt(k.leaving, k.used, k.quota);
    if (at === undefined) text = k.reset_after < 0 ? "keyview.full.never" : "keyview.used";
    else {
      text = "keyview.full";
      values.wait = <span class="whole">{duration(Math.max(1, Math.ceil((at - Date.parse(k.leaving.now)) / 1000)))}</span>;
    }
  }
  if (inUse(k.window)) text = text === "keyview.used" ? "keyview.held" : text === "keyview.full" ? "keyview.held.full" : text;
  return <Sentence large text={text} values={values} />;
}

/** Actions offers what the reader may do to the key. */
function Actions({ k, act }: { k: KeyState; act: (a: Action) => void }) {
  const admin = may("admin");
  const override = may("override") && k.overrides;
  if (!session.value?.tokens) return null;
  if (!admin && !may("override")) return <p class="quiet">{t("act.scope")}</p>;
  return (
    <div class="actions" role="group" aria-label={t("act.title")}>
      {override && (
        <button type="button" class="main" onClick={() => act("override")}>
          {t(k.override ? "act.override.change" : "act.override")}
        </button>
      )}
      {override && k.override && (
        <button type="button" onClick={() => act("remove")}>
          {t("act.remove")}
        </button>
      )}
      {admin && k.banned_until && (
        <button type="button" onClick={() => act("ban")}>
          {t("act.ban")}
        </button>
      )}
      {admin && (
        <button type="button" disabled={!!k.sets} title={k.sets && t(`act.set.${k.sets}`)} onClick={() => act("set")}>
          {t("act.set")}
        </button>
      )}
      {admin && (
        <button type="button" onClick={() => act("forget")}>
          {t("act.forget")}
        </button>
      )}
      {admin && k.sets && <p class="quiet">{t(`act.set.${k.sets}`)}</p>}
    </div>
  );
}
