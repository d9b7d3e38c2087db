import { useEffect, useState } from "preact/hooks";
import { api } from "./api";
import { asParams, namespace } from "./route";
import type { Rule, Rules } from "./words";

let kept: { ns: string; at: number; rules: Promise<Rules> } | undefined;

/** readRules returns the rules in force, at most half a minute old. */
export function readRules(): Promise<Rules> {
  const ns = namespace();
  if (!kept || kept.ns !== ns || Date.now() - kept.at > 30_000) {
    const rules = api<Rules>("v1/rules");
    kept = { ns, at: Date.now(), rules };
    rules.catch(() => (kept = undefined));
  }
  return kept.rules;
}

/** useRules returns the rules in force by name, once they are known. */
export function useRules(): Map<string, Rule> | undefined {
  const [rules, set] = useState<Map<string, Rule>>();
  useEffect(() => {
    let gone = false;
    readRules().then(
      (r) => gone || set(new Map(r.rules.map((one) => [one.name, one]))),
      () => gone || set(new Map()),
    );
    return () => {
      gone = true;
    };
  }, []);
  return rules;
}

/** keyOf returns the attributes of the key that a request has under a rule, if all of them are known. shown is the text
 * of the key, which is the value if a rule counts per one attribute. */
export function keyOf(rule: Rule | undefined, attributes: Record<string, string> | undefined, shown?: string): Record<string, string> | undefined {
  const per = rule?.per ?? [];
  if (!rule || per.length === 0 || rule.kind === "verdict") return undefined;
  const key: Record<string, string> = {};
  for (const name of per) {
    const value = attributes?.[name] ?? (per.length === 1 && !rule.networks ? shown : undefined);
    if (value === undefined) return undefined;
    key[name] = value;
  }
  return key;
}

/** keyParams returns the parameters of a link to a key. */
export const keyParams = (rule: string, key: Record<string, string>): Record<string, string> => ({ rule, ...asParams(key) });
