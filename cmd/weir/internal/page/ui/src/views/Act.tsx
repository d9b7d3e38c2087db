import { useState } from "preact/hooks";
import { api, Failure } from "../lib/api";
import { count, moment, pairs } from "../lib/format";
import { t, type Text } from "../lib/i18n";
import { amount, ends, local, type KeyState } from "../lib/why";
import { windowInWords, type Rule } from "../lib/words";
import { Dialog } from "../parts/Dialog";
import { Key } from "../parts/Key";
import { Failed } from "../parts/Notice";
import { Sentence } from "../parts/Sentence";

/** Action is something that changes a key. */
export type Action = "forget" | "ban" | "set" | "override" | "remove";

const titles: Record<Action, Text> = { forget: "act.forget", ban: "act.ban", set: "act.set", override: "act.override", remove: "act.remove" };

/** Act says what an action would do to a key, and does it. */
export function Act({ action, k, rule, onClose, onDone }: { action: Action; k: KeyState; rule: Rule; onClose: () => void; onDone: (what: string) => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [hits, setHits] = useState(String(k.used));
  const [limit, setLimit] = useState(String(k.override?.limit ?? (k.quota ?? 0) * 2));
  const [until, setUntil] = useState(k.override ? (k.override.until ? local(new Date(k.override.until)) : "") : local(ends(new Date()).find((e) => e.name === "friday")!.at));
  const [note, setNote] = useState(k.override?.note ?? "");
  const [names, setNames] = useState(() => (k.override ? Object.keys(k.override.attributes) : k.per));

  const key = Object.fromEntries(k.per.map((p) => [p, k.attributes[p] ?? ""]));
  const some = Object.fromEntries(Object.entries(key).filter(([name]) => names.includes(name)));
  const field = error instanceof Failure ? (error.problem.field ?? "") : "";
  const values = { rule: <Key text={k.rule} />, key: <Key text={k.key} />, used: amount(k.used, k.unit, k.window), quota: amount(k.quota ?? 0, k.unit, k.window), window: windowInWords(k.window) };

  const call = (): Promise<void> => {
    switch (action) {
      case "forget":
        return api("v1/usage", { method: "DELETE", query: { rule: k.rule, ...k.attributes } });
      case "ban":
        return api("v1/unban", { method: "POST", body: { rule: k.rule, attributes: k.attributes } });
      case "set":
        return api("v1/set", { method: "POST", body: { rule: k.rule, attributes: k.attributes, hits: Number(hits) } });
      case "remove":
        return api("v1/overrides", { method: "DELETE", query: { rule: k.rule, ...k.override!.attributes } });
      case "override":
        return api("v1/overrides", {
          method: "PUT",
          body: { rule: k.rule, attributes: some, limit: Number(limit), ...(until ? { until: new Date(until).toISOString() } : {}), ...(note ? { note } : {}) },
        });
    }
  };
  const run = () => {
    if (busy) return;
    setBusy(true);
    call().then(
      () => onDone(t(titles[action])),
      (e) => (setError(e), setBusy(false)),
    );
  };

  const title = t(action === "override" && k.override ? "act.override.change" : titles[action]);
  const at = (name: string) => (field === name || field.startsWith(name + ".") ? (error as Failure).problem.detail.replace(/^[\w.]+: /, "") : "");
  const known = field !== "" && ((action === "set" && field === "hits") || (action === "override" && ["limit", "until", "note"].includes(field)));
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {t("dialog.cancel")}
          </button>
          <button type="submit" form="act" class={action === "forget" ? "danger" : "main"} disabled={busy}>
            {title}
          </button>
        </>
      }
    >
      <form id="act" class="act" noValidate onInput={() => setError(undefined)} onSubmit={(e) => (e.preventDefault(), run())}>
        {action === "forget" && <Sentence text="act.forget.what" values={values} />}
        {action === "ban" && <Sentence text="act.ban.what" values={{ ...values, until: k.banned_until ? moment(k.banned_until) : "" }} />}
        {action === "remove" && <Sentence text="act.remove.what" values={{ attributes: <Key text={pairs(k.override!.attributes)} /> }} />}
        {action === "set" && (
          <>
            <Field label={t("act.set.hits")} fault={at("hits")}>
              {(props) => <input {...props} type="number" min="0" step="1" value={hits} onInput={(e) => setHits(e.currentTarget.value)} autofocus />}
            </Field>
            <Sentence text="act.set.what" values={{ ...values, n: amount(Number(hits) || 0, k.unit), then: left(Number(hits) || 0, k.quota) }} />
          </>
        )}
        {action === "override" && (
          <>
            <Field label={t("act.override.limit") + (k.unit ? ` (${k.unit})` : "")} fault={at("limit")}>
              {(props) => <input {...props} type="number" min="0" step="1" value={limit} onInput={(e) => setLimit(e.currentTarget.value)} autofocus />}
            </Field>
            <Field label={t("act.override.until")} fault={at("until")}>
              {(props) => <input {...props} type="datetime-local" value={until} onInput={(e) => setUntil(e.currentTarget.value)} />}
            </Field>
            <div class="bar">
              {ends(new Date()).map((e) => (
                <button key={e.name} type="button" class="small" onClick={() => setUntil(local(e.at))}>
                  {t(`act.end.${e.name}`)}
                </button>
              ))}
              <button type="button" class="small" onClick={() => setUntil("")}>
                {t("act.end.none")}
              </button>
            </div>
            <Field label={t("act.override.note")} fault={at("note")}>
              {(props) => <input {...props} value={note} maxLength={256} placeholder={t("act.override.note.what")} onInput={(e) => setNote(e.currentTarget.value)} />}
            </Field>
            {k.per.length > 1 && (
              <fieldset>
                <legend>{t("act.override.for")}</legend>
                {Object.entries(key).map(([name, value]) => (
                  <label class="check" key={name}>
                    <input type="checkbox" checked={names.includes(name)} onChange={(e) => setNames(e.currentTarget.checked ? [...names, name] : names.filter((n) => n !== name))} />
                    <span>
                      {name}=<Key text={value} />
                    </span>
                  </label>
                ))}
              </fieldset>
            )}
            <Sentence
              text={until ? "act.override.what" : "act.override.what.ever"}
              values={{
                ...values,
                quota: amount(typeof rule.limit === "number" ? rule.limit : (k.quota ?? 0), k.unit, k.window),
                limit: amount(Number(limit) || 0, k.unit, k.window),
                until: until ? moment(until) : "",
                then: k.used < (Number(limit) || 0) ? t("act.override.left", { n: count((Number(limit) || 0) - k.used) }) : t("act.override.over"),
              }}
            />
            {names.length < k.per.length && names.length > 0 && <Sentence text="act.override.all" values={{ rule: <Key text={k.rule} />, attributes: <Key text={pairs(some)} /> }} />}
          </>
        )}
        {error !== undefined && !known && <Failed error={error} />}
      </form>
    </Dialog>
  );
}

/** left says how much fits after a count was set. */
function left(n: number, quota: number | undefined): string {
  if (quota === undefined) return "";
  return n < quota ? t("act.set.fits", { n: count(quota - n) }) : t("act.set.full");
}

interface Props {
  id: string;
  "aria-invalid"?: "true";
  "aria-describedby"?: string;
}

/** Field is an input with its label, and with what the service says is wrong with it. */
function Field({ label, fault, children }: { label: string; fault: string; children: (props: Props) => preact.JSX.Element }) {
  const id = "act-" + label.replace(/\W/g, "");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, ...(fault && { "aria-invalid": "true" as const, "aria-describedby": id + "-fault" }) })}
      {fault && (
        <span class="fault" id={id + "-fault"} role="alert">
          {fault}
        </span>
      )}
    </div>
  );
}
