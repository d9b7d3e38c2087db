import { useEffect, useId, useState } from "preact/hooks";
import { api, Failure } from "../lib/api";
import { t } from "../lib/i18n";
import { asParams, given, param, setParams } from "../lib/route";
import type { Rule } from "../lib/words";
import type { Decision as Made } from "../lib/why";
import { Decision } from "../parts/Decision";
import { Failed } from "../parts/Notice";

type Pair = [string, string];

/** names returns attributes that rules use, those of their keys first. */
function names(rules: Map<string, Rule> | undefined): string[] {
  const all = new Set<string>();
  for (const r of rules?.values() ?? []) r.per?.forEach((name) => all.add(name));
  for (const r of rules?.values() ?? []) {
    r.when?.forEach((c) => all.add(c.split(" ", 1)[0]!));
    if (r.sum) all.add(r.sum);
    if (r.distinct) all.add(r.distinct);
  }
  return [...all].slice(0, 100);
}

/** Ask lets the reader name a request, and shows how weir would decide it now. */
export function Ask({ rules }: { rules?: Map<string, Rule> }) {
  const known = names(rules);
  const [pairs, setPairs] = useState<Pair[]>(() => (given().length > 0 ? given() : [["", ""]]));
  const [hits, setHits] = useState(param("hits") || "1");
  const [made, setMade] = useState<Made>();
  const [error, setError] = useState<unknown>();
  const list = useId();
  const field = error instanceof Failure ? (error.problem.field ?? "") : "";

  const ask = () => {
    const attributes = Object.fromEntries(pairs.filter(([name, value]) => name !== "" && value !== ""));
    const old = Object.fromEntries(given().map(([name]) => ["a." + name, undefined]));
    setParams({ ...old, ...asParams(attributes), hits: hits === "1" ? undefined : hits });
    api<Made>("page/why", { method: "POST", body: { attributes, hits: Number(hits) || 0 } }).then(
      (d) => (setMade(d), setError(undefined)),
      (e) => (setMade(undefined), setError(e)),
    );
  };
  useEffect(() => {
    if (given().length > 0) ask();
  }, []);

  const change = (i: number, pair: Pair) => setPairs(pairs.map((p, k) => (k === i ? pair : p)));
  return (
    <>
      <form class="ask" noValidate onSubmit={(e) => (e.preventDefault(), ask())}>
        <p class="quiet">{t("why.ask.what")}</p>
        {pairs.map(([name, value], i) => (
          <div class="given" key={i}>
            <label class="field">
              {t("why.ask.name")}
              <input list={list} value={name} aria-invalid={field === "attributes." + name && name !== "" ? "true" : undefined} onInput={(e) => change(i, [e.currentTarget.value, value])} autocomplete="off" spellcheck={false} autocapitalize="none" />
            </label>
            <label class="field grow">
              {t("why.ask.value")}
              <input value={value} aria-invalid={field === "attributes." + name && name !== "" ? "true" : undefined} onInput={(e) => change(i, [name, e.currentTarget.value])} autocomplete="off" spellcheck={false} autocapitalize="none" />
            </label>
            {pairs.length > 1 && (
              <button type="button" class="plain" aria-label={t("why.ask.remove", { name })} onClick={() => setPairs(pairs.filter((_, k) => k !== i))}>
                ×
              </button>
            )}
          </div>
        ))}
        <datalist id={list}>
          {known.map((n) => (
            <option key={n} value={n} />
          ))}
        </datalist>
        <div class="bar">
          <button type="button" class="plain" onClick={() => setPairs([...pairs, [known.find((n) => !pairs.some(([p]) => p === n)) ?? "", ""]])}>
            {t("why.ask.add")}
          </button>
          <label class="field beside push">
            {t("why.ask.hits")}
            <input type="number" min="1" step="1" value={hits} aria-invalid={field === "hits" ? "true" : undefined} onInput={(e) => setHits(e.currentTarget.value)} />
          </label>
          <button type="submit" class="main">
            {t("why.ask.go")}
          </button>
        </div>
      </form>
      {error !== undefined && <Failed error={error} />}
      <div aria-live="polite">{made && <Decision made={made} rules={rules} asked />}</div>
    </>
  );
}
