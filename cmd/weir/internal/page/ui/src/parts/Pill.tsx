import type { ComponentChildren } from "preact";

/** Pill is a word about a state. Its kind sets the colour, and the word says the same. */
export function Pill({ kind = "", title, children }: { kind?: "" | "denied" | "allowed" | "banned" | "degraded" | "shadow"; title?: string; children: ComponentChildren }) {
  return (
    <span class={"pill " + kind} title={title}>
      {children}
    </span>
  );
}
