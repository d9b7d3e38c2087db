import type { Rule } from "./words";
import type { Series } from "../parts/Sparkline";

/** Counts of a rule are matched, denied, shadow and near; of all rules takes, denied, unmatched and degraded. */
export type Counts = [number, number, number, number];

interface Row {
  matched: number;
  denied: number;
  shadow: number;
  near: number;
  series?: [number[], number[], number[], number[]];
}

export interface KeyCount {
  rule: string;
  key: string;
  count: number;
  override?: boolean;
}

export interface Store {
  location: string;
  shared: boolean;
  loading?: boolean;
  failing?: boolean;
  lag?: number;
  bytes: number;
  max_bytes?: number;
  full?: number;
  nodes?: { addr: string; unavailable?: boolean; missed: number }[];
  instances?: number;
  outages?: { at: string; addr: string; reason?: string; seconds?: number }[];
}

export interface State {
  recent: { seconds: number; takes: number; denied: number; shadow: number; unmatched: number; degraded: number; rule?: string; key?: string };
  busiest: KeyCount[];
  denied: KeyCount[];
  no_keys?: boolean;
  rules: { rule: string; keys: number; holds: number; banned: number }[];
  store?: Store;
  namespaces?: { name: string; rules: number; broken?: boolean; takes: number; denied: number }[];
  more_namespaces?: number;
}

/** Answer is the answer of /page/overview. */
export interface Answer {
  hash: string;
  file: string;
  loaded: string;
  now: number;
  since: number;
  seconds: number;
  step: number;
  total: Row;
  rules: (Row & { rule: string })[];
  state: State;
}

/** Tick is what was counted in about a second. */
export interface Tick {
  at: number;
  lost?: boolean;
  total: Counts;
  rules: Record<string, Counts>;
}

/** Line is a rule with its numbers. */
export interface Line {
  rule: Rule;
  sum: Counts;
  cells?: Counts[]; // one for each step, the newest last; missing if there are none, or too many rules
  rate: number; // in a second, lately
  keys: number; // -1: not known
  holds: number;
  banned: number;
}

/** Model is what the overview shows. It is changed by ticks, and not by the view. */
export interface Model {
  answer: Answer;
  steps: number[]; // when each step began
  total: Counts[];
  lines: Map<string, Line>;
  state: State;
}

const zero = (): Counts => [0, 0, 0, 0];

/** unpack turns the lists of a row into cells, of which there are n. Lists lack the zeros at their start. */
export function unpack(series: [number[], number[], number[], number[]] | undefined, n: number): Counts[] | undefined {
  if (!series) return undefined;
  const cells = Array.from({ length: n }, zero);
  series.forEach((list, k) => list.forEach((v, i) => (cells[n - list.length + i]![k] = v)));
  return cells;
}

/** model joins the rules and the numbers. */
export function model(rules: Rule[], answer: Answer): Model {
  const n = answer.seconds / answer.step;
  const last = Math.floor(answer.now / answer.step) * answer.step;
  const lines = new Map<string, Line>();
  for (const rule of rules) lines.set(rule.name, { rule, sum: zero(), rate: 0, keys: -1, holds: -1, banned: -1 });
  for (const row of answer.rules) {
    const line = lines.get(row.rule);
    if (!line) continue;
    line.sum = [row.matched, row.denied, row.shadow, row.near];
    line.cells = unpack(row.series, n);
  }
  const m: Model = {
    answer,
    lines,
    steps: Array.from({ length: n }, (_, i) => last - (n - 1 - i) * answer.step),
    total: unpack(answer.total.series, n) ?? Array.from({ length: n }, zero),
    state: answer.state,
  };
  tally(m, answer.state);
  return m;
}

function tally(m: Model, s: State): void {
  for (const r of s.rules) {
    const line = m.lines.get(r.rule);
    if (line) [line.keys, line.holds, line.banned] = [r.keys, r.holds, r.banned];
  }
}

const add = (to: Counts, d: Counts): void => to.forEach((_, i) => (to[i]! += d[i]!));
const take = (from: Counts, d: Counts): void => from.forEach((_, i) => (from[i] = Math.max(0, from[i]! - d[i]!)));

/** apply adds a tick to m. */
export function apply(m: Model, tick: Tick, seconds = 1): Model {
  const { step } = m.answer;
  const n = m.steps.length;
  const ahead = Math.min(n, Math.max(0, Math.floor((tick.at - 1) / step) - Math.floor(m.steps[n - 1]! / step)));
  const shift = (cells: Counts[], sum?: Counts) => {
    for (const gone of cells.splice(0, ahead)) if (sum) take(sum, gone);
    for (let i = 0; i < ahead; i++) cells.push(zero());
  };
  for (let i = 0; i < ahead; i++) m.steps.push(m.steps[m.steps.length - 1]! + step);
  m.steps.splice(0, ahead);
  if (ahead > 0) shift(m.total);
  add(m.total[n - 1]!, tick.total);
  for (const [name, line] of m.lines) {
    const d = tick.rules[name];
    if (ahead > 0 && line.cells) shift(line.cells, line.sum);
    line.rate = line.rate * 0.7 + ((d?.[0] ?? 0) / seconds) * 0.3;
    if (line.rate < 0.005) line.rate = 0;
    if (!d) continue;
    add(line.sum, d);
    if (!line.cells) line.cells = m.lines.size <= 2000 ? Array.from({ length: n }, zero) : undefined;
    if (line.cells) add(line.cells[n - 1]!, d);
  }
  const r = m.state.recent; // until the next state
  const recent = { ...r, takes: r.takes + tick.total[0], denied: r.denied + tick.total[1], unmatched: r.unmatched + tick.total[2], degraded: r.degraded + tick.total[3] };
  return { ...m, state: { ...m.state, recent } };
}

/** withState replaces the state of m. */
export function withState(m: Model, s: State): Model {
  tally(m, s);
  return { ...m, state: s };
}

/** within is the hits of a rule that were within its limit. */
export const within = (c: Counts): number => Math.max(0, c[0] - c[1] - c[2]);

/** seriesOf returns what a sparkline draws. */
export function seriesOf(cells: Counts[]): Series {
  return { allowed: cells.map(within), near: cells.map((c) => c[3]), denied: cells.map((c) => c[1]), shadow: cells.map((c) => c[2]) };
}

/** attributesOf returns the attributes that the text of a key states: its value if a rule counts per one attribute, and
 * otherwise "a=1 b=2". It returns undefined if the text can be read in two ways, or is that of a network. */
export function attributesOf(key: string, per: string[]): Record<string, string> | undefined {
  const values: Record<string, string> = {};
  let rest = per.length === 1 ? `${per[0]}=${key}` : key;
  for (const [i, name] of per.entries()) {
    if (!rest.startsWith(name + "=")) return undefined;
    rest = rest.slice(name.length + 1);
    const next = i + 1 < per.length ? ` ${per[i + 1]}=` : undefined;
    const parts = next === undefined ? [rest] : rest.split(next);
    if (parts.length !== (next === undefined ? 1 : 2)) return undefined;
    values[name] = parts[0]!;
    rest = next === undefined ? "" : next.slice(1) + parts[1]!;
  }
  const network = Object.values(values).some((v) => /^[\da-f]*[.:][\da-f.:]*\/\d+$/i.test(v));
  return per.length === 0 || network ? undefined : values;
}
