import type { ComponentChildren } from "preact";
import { split, type Text } from "../lib/i18n";

/** Sentence is a text of the page whose values are elements: numbers in bold, keys apart. The first sentence of a view
 * is its answer, and large. */
export function Sentence({ text, values, large }: { text: Text; values: Record<string, ComponentChildren>; large?: boolean }) {
  const inner = split(text, values).map((part, i) => (typeof part === "string" ? part : <span key={i} class="value">{values[part.value]}</span>));
  return <p class={large ? "answer" : undefined}>{inner}</p>;
}
