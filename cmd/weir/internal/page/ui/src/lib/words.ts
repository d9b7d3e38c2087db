import { count, duration, seconds } from "./format";
import { t, type Text } from "./i18n";

/** Quota is the limit of a rule as /v1/rules states it: a number, one for each value of an attribute, or the
 * attribute whose value it is. */
export type Quota = number | { by: string; cases: Record<string, number>; else?: number } | { of: string; most: number; else?: number };

/** Rule is a rule as /v1/rules states it. */
export interface Rule {
  name: string;
  kind: "limit" | "trigger" | "counter" | "verdict";
  when?: string[];
  per?: string[];
  networks?: Record<string, string>;
  sum?: string;
  distinct?: string;
  limit?: Quota;
  near?: string;
  trigger?: number;
  window?: string;
  hold?: string;
  unsettled?: "keep" | "release";
  max_holds?: number;
  ban?: { for: string; factor?: number; most?: string; forget?: string };
  then?: string;
  rest?: "skip" | "count";
  feedback?: Record<string, number | "all">;
  mode?: "shadow" | "off" | "enforce";
}

/** Rules is the answer of /v1/rules. */
export interface Rules {
  file: string;
  hash: string;
  loaded: string;
  rules: Rule[];
}

/** inWords says what a rule limits: "5 in any 15 min for each account and ip". */
export function inWords(r: Rule): string {
  if (r.kind === "verdict") return t("rule.verdict", { then: r.then ?? "" });
  const window = windowInWords(r.window ?? "");
  const what = r.sum ? t("rule.sum", { attribute: r.sum }) : r.distinct ? t("rule.distinct", { attribute: r.distinct }) : "";
  const n = r.kind === "limit" ? quotaInWords(r.limit ?? 0) : r.kind === "trigger" ? count(r.trigger ?? 0) : "";
  const first = t(r.kind === "limit" ? "rule.limit" : r.kind === "trigger" ? "rule.trigger" : "rule.counter", { n, what: what && " " + what, window }).replace(/\s+/g, " ").replace(/ ?([（）]) ?/g, "$1").trim();
  return [first, perInWords(r)].filter(Boolean).join(t("rule.join"));
}

/** details says what else a rule does: holds, bans, reports, outcome, shadow. */
export function details(r: Rule): string[] {
  const all: string[] = [];
  if (r.mode === "shadow") all.push(t("rule.shadow"));
  if (r.mode === "off") all.push(t("rule.off"));
  const held = /^held (\S+)/.exec(r.window ?? "")?.[1];
  if (held) all.push(t("rule.held", { for: duration(seconds(held)) }));
  if (r.hold) all.push(t("rule.hold", { for: duration(seconds(r.hold)) }));
  if (r.ban) all.push(t("rule.ban", { for: duration(seconds(r.ban.for)) }));
  if (r.near) all.push(t("rule.near", { share: r.near }));
  if (r.then && r.kind === "limit") all.push(t("rule.then", { then: r.then }));
  return all;
}

/** perInWords says what a rule counts for: "for each user". */
export function perInWords(r: Rule): string {
  if (!r.per?.length) return t("rule.all");
  const names = r.per.map((a) => (r.networks?.[a] && r.networks[a] !== "v6/64" ? t("rule.network", { attribute: a, size: r.networks[a]! }) : a));
  return t("rule.per", { names: names.join(t("list.and")) });
}

export function quotaInWords(q: Quota): string {
  if (typeof q === "number") return count(q);
  if ("of" in q) return t("rule.of", { attribute: q.of, most: count(q.most) });
  const cases = Object.values(q.cases).concat(q.else ?? []);
  const low = Math.min(...cases);
  const high = Math.max(...cases);
  return t("rule.by", { low: count(low), high: count(high), attribute: q.by });
}

const ones: Record<number, Text> = { 1: "one.s", 60: "one.m", 3600: "one.h", 86400: "one.d" };

/** span says a length: "15 min", but "hour". */
function span(text: string): string {
  const s = seconds(text);
  return ones[s] ? t(ones[s]) : duration(s);
}

/** inUse reports whether a window holds what is in use, and not what came in a time. */
export const inUse = (window = ""): boolean => window.startsWith("held");

/** windowInWords says how long hits count: "in any 15 min", "in a calendar day". */
export function windowInWords(text: string): string {
  const [kind = "", length = ""] = text.split(" ");
  const long = length.split("/")[0] ?? "";
  switch (kind) {
    case "sliding":
    case "cells":
      return t("window.sliding", { for: span(long) });
    case "fixed":
      return t("window.fixed", { for: span(long) });
    case "aligned":
      return t("window.aligned", { for: span(long) });
    case "bucket": {
      const burst = /burst (\d+)/.exec(text)?.[1];
      return t(burst ? "window.burst" : "window.bucket", { for: span(long), burst: burst ? count(Number(burst)) : "" });
    }
    case "held":
      return t("window.held");
    case "ever":
      return t("window.ever");
  }
  const period = (["minute", "hour", "day", "week", "month", "year"] as const).find((p) => p === kind);
  return period ? t(`window.${period}`) : text;
}

/** sweptInWords says a window of a suggestion, "1h" or "a day". */
export const sweptInWords = (text: string): string => windowInWords(text.replace(/^a /, "").replace(/^(?=\d)/, "sliding "));

/** lengthOf returns the length of a window in seconds, or 0 if it has none, as what is in use. */
export function lengthOf(text: string): number {
  const period = { minute: 60, hour: 3600, day: 86400, week: 604800, month: 2592000, year: 31536000 }[text.replace(/^a /, "")];
  return period ?? seconds(text.replace(/^held.*/, "").split("/")[0]!);
}
