import { useEffect, useMemo, useState } from "preact/hooks";
import "./Rules.css";
import { api, Failure } from "../lib/api";
import { check, draft, draftOf, loadSource, save, saved, type Source } from "../lib/draft";
import { patch } from "../lib/diff";
import { ago, base, count } from "../lib/format";
import { t } from "../lib/i18n";
import { go, href, namespace, param, route, setParams } from "../lib/route";
import { mayWrite } from "../lib/session";
import { details, inUse, inWords, type Rule, type Rules as InForce } from "../lib/words";
import { spans, type Span } from "../lib/yaml";
import { download } from "../parts/Chart";
import { Code, Editor, type Findings } from "../parts/Code";
import { Dialog } from "../parts/Dialog";
import { Diff } from "../parts/Diff";
import { Empty } from "../parts/Empty";
import { Key } from "../parts/Key";
import { Failed, Loading, Notice } from "../parts/Notice";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table, type Column } from "../parts/Table";

/** fewLines is the number of lines up to which a file is drawn whole. */
const fewLines = 2000;

/** Rules shows the rules in words and as text, and changes them. */
export function Rules() {
  const ns = namespace();
  const [rules, setRules] = useState<InForce>();
  const [source, setSource] = useState<Source>();
  const [error, setError] = useState<unknown>();
  const load = () => {
    setError(undefined);
    void Promise.allSettled([api<InForce>("v1/rules"), loadSource()]).then(([r, s]) => {
      if (r.status === "fulfilled") setRules(r.value);
      if (s.status === "fulfilled") setSource(s.value);
      const failed = r.status === "rejected" ? r.reason : s.status === "rejected" ? s.reason : undefined;
      if (failed) setError(failed);
    });
  };
  useEffect(load, [ns]);
  useEffect(() => () => void (saved.value = undefined), []);
  if (!rules && !source) return error ? <Failed error={error} retry={load} /> : <Loading />;

  const name = route.value.path[1];
  const rule = name !== undefined ? rules?.rules.find((r) => r.name === name) : undefined;
  if (param("edit") && source && source.format === undefined) {
    return (
      <Edit
        key={source.hash}
        source={source}
        ns={ns}
        onSaved={(s) => {
          setSource(s);
          go(["rules"]);
          load();
        }}
        onReload={load}
      />
    );
  }
  const d = draftOf(ns);
  return (
    <>
      <div class="title">
        <h1>{t("nav.rules")}</h1>
        {source?.format === undefined && source && (
          <a class="button push" href={href(["rules"], { edit: "1" })}>
            {d ? t("rules.goon") : source.read_only ? t("rules.change") : t("rules.edit")}
          </a>
        )}
      </div>
      {error !== undefined && <Failed error={error} retry={load} />}
      {saved.value && (
        <Notice kind="good" title={t("rules.saved")}>
          {t("rules.saved.what", { file: base(saved.value.name), backup: base(saved.value.name) + ".1" })}
        </Notice>
      )}
      {rules && (
        <Sentence
          large
          text={rules.rules.every((r) => r.mode === "shadow" || r.mode === "off") && rules.rules.length > 0 ? "rules.answer.shadow" : "rules.answer"}
          values={{ file: <Key text={base(rules.file)} />, n: count(rules.rules.length), ago: ago(rules.loaded) }}
        />
      )}
      {source && !source.in_force && source.text && (
        <Notice kind="bad" title={t("rules.broken")}>
          {t("rules.broken.what")}
        </Notice>
      )}
      {d && (
        <Notice title={t("rules.drafted")}>
          <a href={href(["rules"], { edit: "1" })}>{t("rules.goon")}</a> · <a href={href(["try"])}>{t("rules.try")}</a>
        </Notice>
      )}
      {name !== undefined && rules && (rule ? <One rule={rule} source={source} /> : <Notice kind="warn">{t("rules.none", { name })}</Notice>)}
      {rules && (rules.rules.length === 0 ? <Empty title={t("rules.empty")} command="weir init rules.yaml && weir serve --rules rules.yaml" /> : <InWords rules={rules.rules} />)}
      {source && <Text source={source} rule={name} />}
    </>
  );
}

/** isNumber reports whether the limit of a rule is one number, so that others can be tried. */
export const isNumber = (r: Rule) => r.kind === "limit" && typeof r.limit === "number" && r.mode !== "off" && !inUse(r.window);

/** InWords says what each rule does. */
function InWords({ rules }: { rules: Rule[] }) {
  const filter = param("q").toLowerCase();
  const shown = useMemo(() => (filter ? rules.filter((r) => (r.name + " " + (r.when ?? []).join(" ") + " " + (r.per ?? []).join(" ")).toLowerCase().includes(filter)) : rules), [rules, filter]);
  const columns: Column<Rule>[] = [
    { id: "name", title: t("rules.rule"), cell: (r) => <Key text={r.name} n={40} href={href(["rules", r.name], { q: param("q") })} />, value: (r) => r.name },
    {
      id: "words",
      title: t("rules.words"),
      wide: true,
      bare: true,
      cell: (r) => (
        <div class="says">
          <span>{inWords(r)}</span>
          <When rule={r} />
        </div>
      ),
    },
    {
      id: "mode",
      title: t("rules.mode"),
      bare: true,
      cell: (r) => (
        <>
          {r.mode === "shadow" && <Pill kind="shadow">shadow</Pill>}
          {r.mode === "off" && <Pill>off</Pill>}
        </>
      ),
      value: (r) => r.mode ?? "",
    },
    { id: "try", title: t("rules.numbers"), bare: true, cell: (r) => (isNumber(r) ? <a href={href(["try"], { rule: r.name })}>{t("rules.number")}</a> : null) },
  ];
  return (
    <section class="panel stack" aria-label={t("rules.inwords")}>
      {rules.length > 8 && (
        <div class="bar">
          <label class="field">
            <span class="hidden">{t("rules.filter")}</span>
            <input type="search" data-filter placeholder={t("rules.filter")} value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} />
          </label>
        </div>
      )}
      <Table label={t("rules.inwords")} rows={shown} columns={columns} id={(r) => r.name} />
    </section>
  );
}

/** When says for which requests a rule is. */
function When({ rule, all }: { rule: Rule; all?: boolean }) {
  const when = rule.when ?? [];
  const shown = all ? when : when.slice(0, 3);
  if (when.length === 0) return <span class="quiet">{t("rules.every")}</span>;
  return (
    <span class="quiet">
      {t("rules.when")}{" "}
      {shown.map((w, i) => (
        <>
          {i > 0 && t("list.and")}
          <Key text={w} n={all ? 400 : 48} />
        </>
      ))}
      {when.length > shown.length && " …"}
    </span>
  );
}

/** One shows one rule. */
function One({ rule, source }: { rule: Rule; source?: Source }) {
  const lines = useMemo(() => source?.text.split("\n") ?? [], [source]);
  const span = useMemo(() => spans(lines).get(rule.name), [lines, rule.name]);
  const findings = of(source, span);
  return (
    <section class="panel stack">
      <div class="title">
        <h2>
          <Key text={rule.name} n={100} />
        </h2>
        <a class="push" href={href(["rules"])} aria-label={t("dialog.close")}>
          ×
        </a>
      </div>
      <p>{inWords(rule)}</p>
      <p>
        <When rule={rule} all />
      </p>
      {details(rule).length > 0 && (
        <ul class="pills">
          {details(rule).map((d) => (
            <li>
              <Pill>{d}</Pill>
            </li>
          ))}
        </ul>
      )}
      {span && <Code text={lines.slice(span.from, span.to).join("\n")} first={span.from + 1} findings={findings} label={t("rules.textof", { file: rule.name })} />}
      <div class="bar">
        {isNumber(rule) && (
          <a class="button" href={href(["try"], { rule: rule.name })}>
            {t("rules.number")}
          </a>
        )}
        {span && (
          <a class="button" href={href(["rules"], { edit: String(span.from + 1) })}>
            {t("rules.edit")}
          </a>
        )}
        <a class="button" href={href(["live"], { rule: rule.name })}>
          {t("rules.denials")}
        </a>
      </div>
    </section>
  );
}

/** of returns the findings about some of the lines. */
function of(source: Source | undefined, span: Span | undefined): Findings {
  const here = (f: { line?: number }) => span !== undefined && (f.line ?? 0) > span.from && (f.line ?? 0) <= span.to;
  return { errors: source?.errors.filter(here) ?? [], warnings: source?.warnings.filter(here) ?? [] };
}

/** Text shows the file. */
function Text({ source, rule }: { source: Source; rule?: string }) {
  const lines = useMemo(() => source.text.split("\n"), [source.text]);
  const marked = useMemo(() => (rule !== undefined ? spans(lines).get(rule) : undefined), [lines, rule]);
  if (source.format !== undefined) return <Notice>{source.read_only}</Notice>;
  const n = source.errors.length + source.warnings.length;
  return (
    <section class="panel stack" aria-label={t("rules.text")}>
      <div class="title">
        <h2>
          <Key text={base(source.name)} />
        </h2>
        {n > 0 && <Pill kind={source.errors.length ? "denied" : "degraded"}>{t("rules.found", { errors: source.errors.length, warnings: source.warnings.length })}</Pill>}
        <button type="button" class="plain push" onClick={() => download(new Blob([source.text], { type: "application/yaml" }), base(source.name))}>
          {t("rules.download")}
        </button>
      </div>
      {lines.length > fewLines ? <Editor readOnly text={source.text} findings={source} label={base(source.name)} at={marked && marked.from + 1} /> : <Code text={source.text} findings={source} label={base(source.name)} marked={marked} />}
    </section>
  );
}

/** Edit changes the text of the rules file. */
function Edit({ source, ns, onSaved, onReload }: { source: Source; ns: string; onSaved: (s: Source) => void; onReload: () => void }) {
  const begun = draft.value?.ns === ns ? draft.value : undefined;
  const [text, setText] = useState(begun?.text ?? source.text);
  const of = begun?.source ?? source;
  const [findings, setFindings] = useState<Findings & { rules?: number; unlinted?: boolean }>(source);
  const [error, setError] = useState<unknown>();
  const [checking, setChecking] = useState(false);
  const [saving, setSaving] = useState(false);
  const at = Number(param("edit")) || 1;

  useEffect(() => {
    draft.value = { ns, source: of, text };
    if (text === source.text) {
      setFindings(source);
      return;
    }
    const stop = new AbortController();
    setChecking(true);
    const later = setTimeout(() => {
      check(text, stop.signal)
        .then((c) => (setFindings(c), setError(undefined)))
        .catch((e) => !stop.signal.aborted && setError(e))
        .finally(() => !stop.signal.aborted && setChecking(false));
    }, 400);
    return () => {
      clearTimeout(later);
      stop.abort();
    };
  }, [text]);

  const stale = of.hash !== source.hash;
  const changed = text !== of.text;
  const bad = findings.errors.length > 0;
  const [leaving, setLeaving] = useState(false);
  const leave = () => {
    draft.value = undefined;
    go(["rules"]);
  };
  return (
    <>
      <div class="title">
        <h1>
          <Key text={base(source.name)} />
        </h1>
        <span class="quiet" role="status">
          {checking ? t("rules.checking") : bad ? t("rules.found", { errors: findings.errors.length, warnings: findings.warnings.length }) : findings.warnings.length ? t("rules.found", { errors: 0, warnings: findings.warnings.length }) : t("rules.fine")}
          {" · " + t(changed ? "rules.changed" : "rules.unchanged")}
        </span>
        <div class="bar push">
          <button type="button" class="plain" onClick={() => (changed ? setLeaving(true) : leave())}>
            {changed ? t("rules.discard") : t("rules.back")}
          </button>
          <button type="button" disabled={!changed || bad || checking} onClick={() => go(["try"])}>
            {t("rules.try")}
          </button>
          <button type="button" class="main" disabled={!changed || bad || checking} onClick={() => setSaving(true)}>
            {mayWrite.value && !of.read_only ? t("rules.save") : t("rules.take")}
          </button>
        </div>
      </div>
      {stale && (
        <Notice kind="warn" title={t("rules.stale")}>
          {t("rules.stale.what")}
        </Notice>
      )}
      {error !== undefined && <Failed error={error} />}
      {findings.unlinted && <Notice kind="warn">{t("rules.unlinted")}</Notice>}
      <Editor text={text} findings={findings} label={t("rules.textof", { file: base(source.name) })} at={at} onInput={setText} onSave={() => changed && !bad && !checking && setSaving(true)} />
      {leaving && (
        <Dialog
          title={t("rules.discard.sure")}
          onClose={() => setLeaving(false)}
          actions={
            <button type="button" class="danger" onClick={leave}>
              {t("rules.discard")}
            </button>
          }
        >
          <Diff before={of.text} after={text} />
        </Dialog>
      )}
      {saving && <Save source={of} text={text} onClose={() => setSaving(false)} onSaved={onSaved} onReload={onReload} />}
    </>
  );
}

/** Save shows the difference, and saves it or hands it out. */
export function Save({ source, text, onClose, onSaved, onReload }: { source: Source; text: string; onClose: () => void; onSaved: (s: Source) => void; onReload?: () => void }) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const whole = text === "" || text.endsWith("\n") ? text : text + "\n";
  const file = base(source.name);
  const can = mayWrite.value && !source.read_only;
  const put = () => {
    setBusy(true);
    setError(undefined);
    save(whole, source.hash)
      .then((s) => {
        draft.value = undefined;
        saved.value = s;
        onSaved(s);
      })
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <Dialog
      title={can ? t("rules.save.title", { file }) : t("rules.take.title")}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={() => download(new Blob([patch(source.name, source.text, whole)], { type: "text/x-diff" }), file + ".patch")}>
            {t("rules.patch")}
          </button>
          <button type="button" onClick={() => download(new Blob([whole], { type: "application/yaml" }), file)}>
            {t("rules.whole")}
          </button>
          {can && (
            <button type="button" class="main" disabled={busy} onClick={put}>
              {t("rules.save.do")}
            </button>
          )}
        </>
      }
    >
      {can ? <p>{t("rules.save.what", { file, backup: file + ".1", n: source.backups })}</p> : <Notice>{source.read_only || t("rules.noscope")}</Notice>}
      <Diff before={source.text} after={whole} />
      {error !== undefined && (error instanceof Failure && error.status === 412 && onReload ? <Notice kind="bad" action={{ text: t("rules.reload"), run: () => (onClose(), onReload()) }}>{error.problem.detail}</Notice> : <Failed error={error} />)}
    </Dialog>
  );
}
