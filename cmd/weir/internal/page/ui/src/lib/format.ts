import { locale, t, type Text } from "./i18n";

/** zone is the time zone of times; undefined: the reader's. */
let zone: string | undefined;

/** setZone sets the time zone of times. */
export const setZone = (z: string): void => void (zone = z);

/** inZone returns an instant, in seconds since 1970, for parts that write times in the reader's zone. */
export const inZone = (seconds: number): Date => {
  const d = new Date(seconds * 1000);
  return zone === "UTC" ? new Date(seconds * 1000 + d.getTimezoneOffset() * 60_000) : d;
};

const formats = new Map<string, Intl.NumberFormat>();

function numbers(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = locale() + JSON.stringify(options);
  let f = formats.get(key);
  if (!f) formats.set(key, (f = new Intl.NumberFormat(locale(), options)));
  return f;
}

/** count writes a whole number: 12,400. */
export const count = (n: number): string => numbers({ maximumFractionDigits: 0 }).format(n);

/** compact writes a large number in few characters: 12.4k. */
export const compact = (n: number): string => (Math.abs(n) < 10_000 ? count(n) : numbers({ notation: "compact", maximumFractionDigits: 1 }).format(n));

/** percent writes a share from 0 to 1. A share that is not 0 is not written as 0. */
export function percent(share: number, digits = share < 0.1 || share > 0.9 ? 2 : 1): string {
  const f = (s: number, digits: number) => numbers({ style: "percent", maximumFractionDigits: digits }).format(s);
  if (share > 0 && share < 0.0001) return "< " + f(0.0001, 2);
  if (share < 1 && share > 0.9999) return "> " + f(0.9999, 2);
  return f(share, digits);
}

/** rate writes how often something happens in a second. */
export const rate = (n: number): string => numbers({ maximumFractionDigits: n < 10 ? 1 : 0 }).format(n);

const units: [Text, number][] = [["unit.d", 86400], ["unit.h", 3600], ["unit.m", 60], ["unit.s", 1]];

/** seconds reads a duration as rules files have it: "1h30m", "500ms", "7d". */
export function seconds(text: string): number {
  let total = 0;
  for (const [, n, unit] of text.matchAll(/([\d.]+)(ms|us|µs|ns|w|d|h|m|s)/g)) {
    const of = { w: 604800, d: 86400, h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 }[unit!] ?? 0;
    total += Number(n) * of;
  }
  return total;
}

/** duration writes a number of seconds with at most two units, in words: "2 h 5 min". */
export function duration(s: number): string {
  if (!Number.isFinite(s)) return "∞";
  if (s > 0 && s < 1) return t("unit.ms", { n: count(s * 1000) });
  if (s < 10 && !Number.isInteger(s)) return t("unit.s", { n: rate(s) });
  let rest = Math.round(s);
  const parts: string[] = [];
  for (const [u, n] of units) {
    const k = Math.floor(rest / n);
    if (k > 0 && parts.length < 2) parts.push(t(u, { n: count(k), k }));
    else if (parts.length > 0) break;
    rest -= k * n;
  }
  return parts.join(" ") || t("unit.s", { n: 0 });
}

/** bytes writes a size: 1.5 MiB. */
export function bytes(n: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < names.length - 1) {
    n /= 1024;
    i++;
  }
  return numbers({ maximumFractionDigits: n < 10 && i > 0 ? 1 : 0 }).format(n) + " " + names[i];
}

/** clock writes the time of day, of an instant of RFC 3339 or in seconds since 1970, in the reader's zone. */
export const clock = (at: string | number, withSeconds = true): string =>
  new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit", second: withSeconds ? "2-digit" : undefined, hourCycle: "h23", timeZone: zone }).format(date(at));

/** dayOf writes a day and its month. */
export const dayOf = (at: string | number): string => new Intl.DateTimeFormat(locale(), { day: "numeric", month: "short", timeZone: zone }).format(date(at));

/** day writes a day and an hour, or, if rough, the day and its year. */
export const day = (at: string | number, rough = false): string =>
  new Intl.DateTimeFormat(locale(), rough ? { day: "numeric", month: "short", year: "numeric" } : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(date(at));

/** moment writes a date and a time. */
export const moment = (at: string | number): string =>
  new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23", timeZone: zone } as Intl.DateTimeFormatOptions).format(date(at));

export const date = (at: string | number): Date => (typeof at === "number" ? new Date(at * 1000) : new Date(at));

/** ago writes how long ago an instant is: "3 minutes ago". */
export function ago(at: string | number, now = Date.now()): string {
  const s = (now - date(at).getTime()) / 1000;
  const f = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  const [unit, n] = ([["day", 86400], ["hour", 3600], ["minute", 60]] as const).find(([, n]) => Math.abs(s) >= n) ?? (["second", 1] as const);
  return f.format(-Math.trunc(s / n), unit).replace(/\d(?=\p{Script=Han})/u, "$& ");
}

/** base returns the name of a file without its directory. */
export const base = (path: string): string => path.replace(/^.*[\\/]/, "");

/** pairs writes attributes as name=value. */
export const pairs = (of: Record<string, string>): string =>
  Object.entries(of)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
