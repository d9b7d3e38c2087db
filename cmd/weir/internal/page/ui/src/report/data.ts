import type { Rule } from "../lib/words";

/** Data is what a report shows: how it was made, and the report as weir prints it with --json. */
export type Data = About & ({ kind: "replay"; report: Replay } | { kind: "compare"; report: Comparison } | { kind: "suggest"; report: Suggestion });

interface About {
  command: string;
  version: string;
  logs: string[] | null;
  files: { name: string; hash: string; rules: Rule[] }[];
}

/** Read is what all reports say about the log. */
export interface Read {
  lines: number;
  bad: number;
  from?: string;
  to?: string;
  missing?: string[];
  bad_lines: { log: string; line: number; problem: string; text: string }[] | null;
}

export interface Timeline {
  start: string;
  seconds: number;
  allowed: number[];
  denied: number[];
}

export interface DeniedKey {
  key: string;
  denied: number;
  first: string;
  last: string;
}

export interface Distribution {
  quota: number;
  percent?: boolean;
  bounds: number[];
  keys: number[];
  above: number;
}

export interface Tally {
  name: string;
  kind: string;
  mode: string;
  matched: number;
  allowed: number;
  denied: number;
  decided: number;
  alone?: number;
  masked_by?: { rule: string; denied: number }[];
  keys: number;
  keys_denied: number;
  top_denied: DeniedKey[] | null;
  first_denied?: string;
  last_denied?: string;
  timeline?: Timeline;
  peaks?: Distribution;
}

export interface Replay extends Read {
  requests: number;
  allowed: number;
  denied: number;
  unmatched: number;
  rules: Tally[] | null;
  timeline: Timeline | null;
  hours: Timeline | null;
}

export interface Change {
  rule: string;
  requests: number;
  keys: number;
  top: DeniedKey[] | null;
  examples: { log: string; line: number; text: string }[] | null;
}

export interface Comparison extends Read {
  requests: number;
  denied_old: number;
  denied_new: number;
  newly_denied: number;
  newly_allowed: number;
  other_outcome: number;
  denials: Change[] | null;
  admissions: Change[] | null;
  newly_denied_over: Timeline | null;
  newly_allowed_over: Timeline | null;
  peaks?: { rule: string; old?: Distribution; new?: Distribution }[];
}

export interface Candidate {
  quota: number;
  denied: number;
  keys_denied: number;
  denied_share: number;
  keys_share: number;
}

export interface Swept {
  window: string;
  peaks: { p50: number; p90: number; p99: number; p99_9: number; max: number; bounds: number[]; keys: number[]; top: { key: string; peak: number; at: string; requests: number }[] };
  candidates: Candidate[];
  suggested: number;
}

export interface Suggestion extends Read {
  rule: string;
  matched: number;
  keys: number;
  windows: Swept[];
}
