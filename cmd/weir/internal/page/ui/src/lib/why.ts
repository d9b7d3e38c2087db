import { count, duration } from "./format";
import { t } from "./i18n";
import { inUse } from "./words";

/** Reason is why a rule denied. */
export type Reason = "limit" | "ban" | "holds" | "verdict" | "outage";

export const reasons: Reason[] = ["limit", "ban", "holds", "verdict", "outage"];

/** Hits are hits of a window that leave together. */
export interface Hits {
  at: string;
  seconds?: number; // of a cell or a period
  hits: number;
  leave?: string; // not there: never
}

/** Leaving is what is in a window, and when it leaves. */
export interface Leaving {
  now: string;
  kind: string;
  from: string;
  to: string;
  hits: Hits[];
  drains?: number; // seconds in which a bucket drains by one hit
  held?: number; // in use, without a date
}

/** Judged is the answer of one rule. */
export interface Judged {
  rule: string;
  kind: string;
  matched: boolean;
  why?: string[];
  shadow?: boolean;
  allowed: boolean;
  reason?: Reason;
  degraded_reason?: string;
  numbers: boolean;
  key?: string;
  hits: number;
  used: number;
  quota?: number;
  remaining?: number;
  retry_after: number; // seconds; -1: never
  reset_after: number;
  banned_until?: string;
  override?: boolean;
  window?: string;
  unit?: string;
  leaving?: Leaving;
}

/** Differ is what would have had to differ for one rule to allow a request. */
export interface Differ {
  rule: string;
  shadow?: boolean;
  reason: Reason;
  unit?: string;
  most?: number;
  wait?: number;
  quota?: number;
  until?: string;
}

/** Decision is a decision as /page/live and /page/why state it. */
export interface Decision {
  number?: number;
  time: string;
  whole: boolean;
  allowed: boolean;
  outcome: string;
  rule?: string;
  retry_after?: number;
  retry_rule?: string;
  unmatched?: boolean;
  degraded_reason?: string;
  hits?: number;
  attributes?: Record<string, string>;
  cut?: boolean;
  rules: Judged[];
  differ?: Differ[];
  test?: string;
}

/** Live is the answer of /page/live. */
export interface Live {
  now: string;
  decisions: Decision[];
  dropped?: number;
  keys: "plain" | "hashed" | "none";
  degraded?: boolean;
}

/** Change is an entry of the audit trail about a key. */
export interface Change {
  time: string;
  action: "override-set" | "override-removed" | "forget" | "count-set" | "ban-lifted";
  token?: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
}

export interface Override {
  rule: string;
  attributes: Record<string, string>;
  limit: number;
  burst?: number;
  until?: string;
  note?: string;
  by?: string;
  set: string;
}

/** KeyState is the answer of /page/key. */
export interface KeyState {
  rule: string;
  kind: string;
  shadow?: boolean;
  per: string[];
  attributes: Record<string, string>;
  key: string;
  window: string;
  unit?: string;
  used: number;
  quota?: number;
  remaining?: number;
  reset_after: number;
  holds?: number;
  held?: Hits[]; // those that end first
  strikes?: number;
  bans?: boolean;
  banned_until?: string;
  degraded?: boolean;
  leaving: Leaving;
  override?: Override;
  overrides?: boolean;
  denials: Decision[];
  hidden?: "off" | "none";
  changes?: Change[];
  sets?: "distinct" | "held" | "holds" | "banned";
}

/** Keys is the answer of /page/keys. */
export interface Keys {
  per: string[];
  keys: { attributes: Record<string, string>; used: number; held?: number; quota?: number }[];
  complete: boolean;
}

/** decider returns the answer that set the outcome, or the first one that denies. */
export function decider(d: Decision): Judged | undefined {
  return d.rules.find((j) => j.rule === d.rule && !j.allowed) ?? d.rules.find((j) => !j.allowed);
}

/** mostOf returns the name that more than half of a list have, if there is one. */
export function mostOf(names: string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].find(([, n]) => 2 * n > names.length)?.[0];
}

/** wait writes how long to wait: never for -1. */
export const wait = (s: number): string => (s < 0 ? t("why.never") : s === 0 ? t("why.now") : duration(Math.ceil(s)));

/** amount writes a number of hits, or of what a rule sums or tells apart. What is in use is only a number. */
export const amount = (n: number, unit?: string, window?: string): string => (inUse(window) ? count(n) : unit ? `${count(n)} ${unit}` : t("why.hits", { n, count: count(n) }));

/** id names a decision in the address of the page: those that are kept whole have a number. */
export const id = (d: Decision): string => (d.number ? String(d.number) : `${d.time} ${d.rule ?? ""}`);

/** ends offers instants at which an override can end, after now. */
export function ends(now: Date): { name: "hour" | "today" | "friday" | "month"; at: Date }[] {
  const day = (n: number, hours: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + n, hours);
  const friday = (5 - now.getDay() + 7) % 7;
  return [
    { name: "hour" as const, at: new Date(now.getTime() + 3_600_000) },
    { name: "today" as const, at: day(1, 0) },
    { name: "friday" as const, at: day(friday === 0 && now.getHours() >= 18 ? 7 : friday, 18) },
    { name: "month" as const, at: day(30, 0) },
  ];
}

/** local writes an instant as a field for dates and times has it. */
export function local(at: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Point is how much a window has in use from an instant on, in milliseconds. */
export interface Point {
  at: number;
  used: number;
}

/** course returns how much of what is in use now was, and will be, in the window: it rises when hits came, and falls when
 * they leave. sure is false where hits came somewhere in a cell or a period. */
export function course(l: Leaving, used: number): Point[] {
  const now = Date.parse(l.now);
  const from = Date.parse(l.from);
  const to = Date.parse(l.to);
  if (l.drains) return [{ at: from, used }, { at: to, used: 0 }];
  const changes: { at: number; by: number }[] = [];
  for (const h of l.hits) {
    const at = Date.parse(h.at) + (h.seconds ?? 0) * 500; // the middle of a cell
    changes.push({ at: Math.min(Math.max(h.seconds && l.hits.length === 1 ? Date.parse(h.at) : at, from), now), by: h.hits });
    if (h.leave) changes.push({ at: Date.parse(h.leave), by: -h.hits });
  }
  changes.sort((a, b) => a.at - b.at);
  const points: Point[] = [{ at: from, used: l.held ?? 0 }];
  let level = l.held ?? 0;
  for (const c of changes) {
    points.push({ at: c.at, used: level }, { at: c.at, used: (level += c.by) });
  }
  points.push({ at: Math.max(to, points[points.length - 1]!.at), used: level });
  return points;
}

/** past returns what a window had in use when j was decided, from what it has now and what j says: of the hits that have
 * left since, some are known to have left by an instant. It returns undefined if what is there now does not tell. */
export function past(l: Leaving, j: Judged, time: string): (Leaving & { gone: number }) | undefined {
  const at = Date.parse(time);
  const iso = (ms: number) => new Date(ms).toISOString();
  const reset = at + j.reset_after * 1000;
  const w = { ...l, now: time, hits: [] as Hits[], held: 0, gone: 0 };
  let span = Date.parse(l.to) - Date.parse(l.from);
  if (l.kind === "bucket") return { ...w, from: time, to: iso(reset), drains: j.reset_after / Math.max(j.used, 1) };
  if (l.kind !== "sliding" && l.kind !== "cells") {
    if (l.hits.length === 0) span /= 2; // it is drawn on both sides of now
    if (l.kind === "held" || j.reset_after < 0 || span <= 0) return undefined;
    return { ...w, from: iso(reset - span), to: iso(reset), hits: [{ at: iso(reset - span), seconds: 1, hits: j.used, leave: iso(reset) }] };
  }
  const long = Date.parse(l.now) - Date.parse(l.from);
  w.from = iso(at - long);
  w.to = iso(at + long);
  w.hits = l.hits.filter((h) => Date.parse(h.at) <= at).map((h) => ({ ...h }));
  w.gone = w.hits.reduce((n, h) => n - h.hits, j.used);
  const last = w.hits[w.hits.length - 1];
  if (w.gone < 0 && last?.seconds && last.hits > -w.gone) {
    last.hits += w.gone; // some came into this cell later
    w.gone = 0;
  }
  if (w.gone < 0) return undefined;
  w.held = Math.min(w.gone, l.held ?? 0);
  w.gone -= w.held;
  const left = (hits: number, leave: number) => hits > 0 && w.hits.unshift({ at: iso(leave - long), hits, leave: iso(leave) });
  const next = j.retry_after > 0 ? Math.min(w.gone, Math.max(0, j.used + j.hits - (j.quota ?? 0))) : 0; // leave when the request would have fit
  left(w.gone - next, Math.min(reset, Date.parse(l.now)));
  left(next, at + j.retry_after * 1000);
  return w;
}

/** fitsAt returns when n more fit under a quota, in milliseconds, or undefined if that is not known. */
export function fitsAt(l: Leaving, used: number, quota: number, n = 1): number | undefined {
  let level = used;
  if (level + n <= quota) return Date.parse(l.now);
  for (const h of [...l.hits].filter((h) => h.leave).sort((a, b) => a.leave!.localeCompare(b.leave!))) {
    level -= h.hits;
    if (level + n <= quota) return Date.parse(h.leave!);
  }
  return undefined;
}

const minute = 60_000;
const hour = 60 * minute;
const steps = [1000, 2000, 5000, 10_000, 15_000, 30_000, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour, 48 * hour, 168 * hour, 720 * hour, 8760 * hour];

/** ticks returns round instants of the reader's clock from one to another, at most so many. */
export function ticks(from: number, to: number, most: number): number[] {
  const step = steps.find((s) => (to - from) / s <= Math.max(most, 1)) ?? steps[steps.length - 1]!;
  const zone = -new Date(from).getTimezoneOffset() * minute;
  const all: number[] = [];
  for (let at = Math.ceil((from + zone) / step) * step - zone; at <= to && all.length <= most; at += step) all.push(at);
  return all;
}
