import { signal } from "@preact/signals";
import { en, zh } from "../texts"; // in reports, those of reports
import type { en as report } from "../texts/report";

export type Language = "en" | "zh";

/** Text is the name of a text of the page, or of a report. */
export type Text = keyof typeof en | keyof typeof report;

const texts: Record<Language, Partial<Record<Text, string>>> = { en, zh };

function first(): Language {
  try {
    const kept = localStorage.getItem("weir.language");
    if (kept === "en" || kept === "zh") return kept;
  } catch {
    // The browser keeps nothing: its language decides.
  }
  return typeof navigator !== "undefined" && /^zh\b/i.test(navigator.language) ? "zh" : "en";
}

/** language is the language of the page. */
export const language = signal<Language>(first());

export function setLanguage(l: Language): void {
  language.value = l;
  try {
    localStorage.setItem("weir.language", l);
  } catch {
    // It holds until the page is closed.
  }
}

/** t returns a text with values in place of {name}. "{n|key|keys}" is one of two words, by the number n. */
export function t(name: Text, values: Record<string, string | number> = {}): string {
  return texts[language.value][name]!.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, key: string, one?: string, many?: string) => {
    const v = values[key];
    if (one !== undefined) return Number(v) === 1 ? one : many!;
    return v === undefined ? "" : String(v);
  });
}

/** split returns a text in pieces: strings, and the names of values, so that parts of a sentence can be elements. */
export function split(name: Text): (string | { value: string })[] {
  return texts[language.value][name]!
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((s) => (/^\{\w+\}$/.test(s) ? { value: s.slice(1, -1) } : s));
}
