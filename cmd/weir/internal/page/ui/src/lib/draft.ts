import { signal } from "@preact/signals";
import { api } from "./api";

/** Finding is an error or a warning about a rules file, as weir check --json has it. */
export interface Finding {
  name?: string;
  rule?: string;
  problem: string;
  line?: number;
  column?: number;
}

/** Source is a rules file, as /page/source has it. */
export interface Source {
  name: string;
  format?: string;
  text: string;
  hash: string;
  in_force: boolean;
  read_only?: string;
  backups: number;
  errors: Finding[];
  warnings: Finding[];
}

/** Checked is what /page/check has found in a text. */
export interface Checked {
  errors: Finding[];
  warnings: Finding[];
  rules: number;
  unlinted?: boolean;
}

/** Draft is a changed text, with the one that it starts from. It lives as long as the page. */
export interface Draft {
  ns: string;
  source: Source;
  text: string;
}

/** draft is what the reader has changed; undefined: nothing. */
export const draft = signal<Draft | undefined>(undefined);

/** saved is the file that the reader has saved last, until another view is shown. */
export const saved = signal<Source | undefined>(undefined);

/** draftOf returns the draft of a namespace, if its text is not that of the file. */
export function draftOf(ns: string): Draft | undefined {
  const d = draft.value;
  return d && d.ns === ns && d.text !== d.source.text ? d : undefined;
}

export const loadSource = (): Promise<Source> => api<Source>("page/source");

export const check = (text: string, signal?: AbortSignal): Promise<Checked> => api<Checked>("page/check", { method: "POST", body: text, signal });

/** save makes text the rules file, if its text is still the one with the hash. */
export const save = (text: string, hash: string): Promise<Source> => api<Source>("page/source", { method: "PUT", body: text, headers: { "If-Match": `"${hash}"` } });

if (typeof window !== "undefined")
  window.addEventListener("beforeunload", (e) => {
    const d = draft.value;
    if (d && d.text !== d.source.text) e.preventDefault();
  });
