import { useEffect, useRef, useState } from "preact/hooks";
import { api, url } from "../lib/api";
import { clock, count, date, moment } from "../lib/format";
import { split, t } from "../lib/i18n";
import { asParams, href, param, route, setParams } from "../lib/route";
import { keyOf, keyParams, useRules } from "../lib/ruleset";
import { paused, stream } from "../lib/stream";
import { decider, id, mostOf, reasons, wait, type Decision as Made, type Live } from "../lib/why";
import { Decision, Reason } from "../parts/Decision";
import { Dialog } from "../parts/Dialog";
import { Empty } from "../parts/Empty";
import { Key } from "../parts/Key";
import { Failed, Loading, Notice } from "../parts/Notice";
import { streams } from "../parts/Page";
import { Pill } from "../parts/Pill";
import { Sentence } from "../parts/Sentence";
import { Table, type Column } from "../parts/Table";
import { Ask } from "./Ask";
import "./why.css";

/** most is how many denials the list has. */
const most = 500;

const rest = (): Record<string, string> => Object.fromEntries([...route.value.query].filter(([name]) => name !== "at" && name !== "ask" && name !== "hits" && !name.startsWith("a.")));

/** Why shows denials as they happen, why each of them was one, and how any request would be decided. */
export function Why() {
  const filter = { rule: param("rule"), reason: param("reason"), q: param("q"), shadow: param("shadow") };
  const [answer, setAnswer] = useState<Live>();
  const [list, setList] = useState<Made[]>([]);
  const [waiting, setWaiting] = useState<Made[]>([]);
  const [missed, setMissed] = useState(0);
  const [error, setError] = useState<unknown>();
  const frozen = useRef(false);
  const [still, setStill] = useState(false);
  const rules = useRules();
  const at = param("at");
  const asking = route.value.query.has("ask");

  useEffect(() => {
    let gone = false;
    setWaiting([]);
    const read = () =>
      void api<Live>("page/live", { query: filter }).then(
        (a) => {
          if (gone) return;
          setAnswer(a);
          setError(undefined);
          setMissed(a.dropped ?? 0);
          setList(a.decisions);
          setWaiting([]);
        },
        (e) => gone || setError(e),
      );
    const add = (data: unknown) => {
      const m = data as { decisions: Made[]; missed?: number };
      const fresh = m.decisions.reverse();
      setMissed((n) => n + (m.missed ?? 0));
      (frozen.current ? setWaiting : setList)((before) => merge(fresh, before));
    };
    read();
    streams.value++;
    const stop = stream(() => url("page/live/stream", filter), { denials: add }, read);
    return () => {
      gone = true;
      streams.value--;
      stop();
    };
  }, [filter.rule, filter.reason, filter.q, filter.shadow]);

  const freeze = (on: boolean) => {
    frozen.current = on;
    setStill(on);
    if (!on) flush();
  };
  const flush = () =>
    setWaiting((fresh) => {
      if (fresh.length > 0) setList((before) => merge(fresh, before));
      return [];
    });

  const opened = at ? (list.find((d) => id(d) === at) ?? waiting.find((d) => id(d) === at)) : undefined;
  const keep = useRef<Made | undefined>(undefined);
  if (opened) keep.current = opened;
  const shown = at ? (opened ?? (keep.current && id(keep.current) === at ? keep.current : undefined)) : undefined;
  const filtered = !!(filter.rule || filter.reason || filter.q);
  return (
    <>
      <div class="title">
        <h1>{t("nav.live")}</h1>
        <a class="button push" href={href(["live"], { ...rest(), ask: "1" })}>
          {t("why.ask")}
        </a>
      </div>
      {error !== undefined && <Failed error={error} />}
      {!answer && error === undefined && <Loading />}
      {answer && (
        <>
          {list.length === 0 && !filtered ? (
            <Empty title={t("why.answer.none")}>
              <p>{t("why.empty.what")}</p>
              <a class="button main" href={href(["live"], { ...rest(), ask: "1" })}>
                {t("why.ask")}
              </a>
            </Empty>
          ) : (
            <>
              <div class="lead">
                <Mostly list={list} />
                <p class="quiet">
                  {t("why.sampled")} {missed > 0 && t("why.dropped", { n: count(missed), k: missed })}
                </p>
              </div>
              <Filter rules={rules ? [...rules.keys()] : []} />
              {answer.degraded && <Notice kind="warn">{t("why.degraded")}</Notice>}
              {answer.keys !== "plain" && <Notice>{t(answer.keys === "none" ? "why.hidden" : "why.hashed")}</Notice>}
              <div
                class="panel denials"
                onPointerEnter={(e) => e.pointerType === "mouse" && freeze(true)}
                onPointerLeave={(e) => e.pointerType === "mouse" && freeze(false)}
                onFocusIn={() => freeze(true)}
                onFocusOut={(e) => !(e.relatedTarget instanceof Node && e.currentTarget.contains(e.relatedTarget)) && freeze(false)}
              >
                <p class="fresh" role="status">
                  {waiting.length > 0 ? (
                    <button type="button" class="small" onClick={flush}>
                      {t("why.new", { n: waiting.length })}
                    </button>
                  ) : (
                    still && !paused.value && <Pill>{t("why.frozen")}</Pill>
                  )}
                </p>
                <Table<Made> label={t("why.list")} rows={list} id={id} columns={columns()} empty={t("why.filtered")} />
              </div>
              <p class="quiet">{t("why.instance")}</p>
            </>
          )}
        </>
      )}
      {shown && !asking && (
        <Dialog side title={t(shown.allowed ? "why.title.shadow" : "why.title")} onClose={() => (location.hash = href(["live"], rest()))}>
          <Decision made={shown} rules={rules} />
          {!shown.cut && shown.attributes && (
            <p>
              <a href={href(["live"], { ...rest(), ask: "1", hits: String(shown.hits ?? 1), ...asParams(shown.attributes) })}>{t("why.again")}</a>
            </p>
          )}
        </Dialog>
      )}
      {at && !shown && answer && !asking && <Notice kind="warn">{t("why.gone")}</Notice>}
      {asking && (
        <Dialog side title={t("why.title.ask")} onClose={() => (location.hash = href(["live"], rest()))}>
          <Ask rules={rules} />
        </Dialog>
      )}
    </>
  );

  function columns(): Column<Made>[] {
    const many = list.length > 0 && Date.now() - date(list[list.length - 1]!.time).getTime() > 20 * 3_600_000;
    return [
      {
        id: "time",
        title: t("why.col.time"),
        cell: (d) => (
          <a href={href(["live"], { ...rest(), at: id(d) })}>
            <time dateTime={d.time} title={moment(d.time)}>
              {many ? moment(d.time) : clock(d.time)}
            </time>
          </a>
        ),
      },
      {
        id: "rule",
        title: t("why.col.rule"),
        cell: (d) => {
          const rule = decider(d)?.rule;
          return (
            <span class="inline">
              <Key text={rule ?? t("why.noname")} n={36} href={rule && href(["rules", rule])} />
              {d.allowed && <Pill kind="shadow">{t("why.shadow.word")}</Pill>}
            </span>
          );
        },
      },
      {
        id: "key",
        title: t("why.col.key"),
        wide: true,
        cell: (d) => {
          const j = decider(d);
          if (!j?.key) return "";
          const key = answer?.keys === "plain" ? keyOf(rules?.get(j.rule), d.attributes, j.key) : undefined;
          return <Key text={j.key} n={48} href={key && href(["key"], keyParams(j.rule, key))} />;
        },
      },
      {
        id: "reason",
        title: t("why.col.reason"),
        cell: (d) => <Reason d={d} />,
      },
      {
        id: "wait",
        title: t("why.col.wait"),
        number: true,
        cell: (d) => (d.retry_after === undefined ? (decider(d) ? wait(decider(d)!.retry_after) : "") : wait(d.retry_after)),
      },
    ];
  }
}

/** merge returns denials with those that are new in front, each once. */
function merge(fresh: Made[], before: Made[]): Made[] {
  const known = new Set(before.map(id));
  return [...fresh.filter((d) => !known.has(id(d))), ...before].slice(0, most);
}

/** Mostly says in a sentence what the list is about. */
function Mostly({ list }: { list: Made[] }) {
  if (list.length === 0) return <p class="answer">{t("why.filtered")}</p>;
  const names = list.map((d) => decider(d)?.rule ?? "");
  const rule = mostOf(names);
  const keys = list.filter((_, i) => names[i] === rule).map((d) => decider(d)?.key ?? "");
  const key = mostOf(keys);
  return (
    <Sentence
      large
      text={list.length === 1 ? "why.answer.one" : rule === undefined ? "why.answer.mixed" : "why.answer"}
      values={{ n: count(list.length), rules: count(new Set(names).size), rule: <Key text={rule || t("why.noname")} n={40} />, key: key && <Of text={key} /> }}
    />
  );
}

const Of = ({ text }: { text: string }) => (
  <>
    {split("why.answer.key").map((part) => (typeof part === "string" ? <span class="light">{part}</span> : <Key text={text} n={32} />))}
  </>
);

/** Filter narrows the list; it is in the address. */
function Filter({ rules }: { rules: string[] }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const later = (name: string, value: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setParams({ [name]: value, at: undefined }), 300);
  };
  const typed = param("rule").toLowerCase();
  const some = rules.filter((r) => r.toLowerCase().includes(typed)).slice(0, 100);
  return (
    <form class="finder" role="search" onSubmit={(e) => e.preventDefault()}>
      <label class="field">
        {t("why.rule")}
        <input list="why-rules" value={param("rule")} placeholder={t("why.any")} onInput={(e) => later("rule", e.currentTarget.value)} autocomplete="off" spellcheck={false} />
        <datalist id="why-rules">
          {some.map((r) => (
            <option key={r} value={r} />
          ))}
        </datalist>
      </label>
      <label class="field">
        {t("why.reason")}
        <select value={param("reason")} onChange={(e) => setParams({ reason: e.currentTarget.value, at: undefined })}>
          <option value="">{t("why.any")}</option>
          {reasons.map((r) => (
            <option key={r} value={r}>
              {t(`why.reason.${r}`)}
            </option>
          ))}
        </select>
      </label>
      <label class="field grow">
        {t("why.text")}
        <input type="search" data-filter value={param("q")} onInput={(e) => later("q", e.currentTarget.value)} autocomplete="off" spellcheck={false} />
      </label>
      <label class="check">
        <input type="checkbox" checked={param("shadow") !== "no"} onChange={(e) => setParams({ shadow: e.currentTarget.checked ? undefined : "no", at: undefined })} />
        {t("why.shadow")}
      </label>
    </form>
  );
}
