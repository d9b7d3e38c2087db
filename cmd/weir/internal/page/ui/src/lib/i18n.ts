import { signal } from "@preact/signals";
import { en, zh } from "../texts"; // in reports, those of reports
import type { en as report } from "../texts/report";
import { keep, kept } from "./kept";

export type Language = "en" | "zh";

/** Text is the name of a text of the page, or of a report. */
export type Text = keyof typeof en | keyof typeof report;

const texts: Record<Language, Partial<Record<Text, string>>> = { en, zh };

function first(): Language {
  const chosen = kept("language");
  if (chosen === "en" || chosen === "zh") return chosen;
  return typeof navigator !== "undefined" && /^zh\b/i.test(navigator.language) ? "zh" : "en";
}

/** language is the language of the page. */
export const language = signal<Language>(first());

export function setLanguage(l: Language): void {
  language.value = l;
  keep("language", l);
}

/** locale is how numbers and times are written. */
export const locale = (): string => (language.value === "zh" ? "zh-CN" : "en-GB");

if (typeof document !== "undefined") language.subscribe((l) => (document.documentElement.lang = l === "zh" ? "zh-CN" : "en"));

/** split returns a text in pieces: strings, and the names of values, so that parts of a sentence can be elements.
 * "{n|key|keys}" is one of two words, by the number n. */
export function split(name: Text, values: Record<string, unknown> = {}): (string | { value: string })[] {
  return texts[language.value][name]!
    .split(/(\{[^}]*\})/)
    .filter(Boolean)
    .map((s) => {
      if (s[0] !== "{") return s;
      const [value = "", one, many = ""] = s.slice(1, -1).split("|");
      return one === undefined ? { value } : Number(values[value]) === 1 ? one : many;
    });
}

/** t returns a text with values in place of {name}. */
export const t = (name: Text, values: Record<string, string | number> = {}): string =>
  split(name, values)
    .map((s) => (typeof s === "string" ? s : (values[s.value] ?? "")))
    .join("");
