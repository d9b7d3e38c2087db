import type { ComponentChildren } from "preact";

/** Pill is a word about a state. Its kind sets the colour, and the word says the same. */
export function Pill({ kind = "", children }: { kind?: "" | "denied" | "allowed" | "banned" | "degraded" | "shadow"; children: ComponentChildren }) {
  return (
    <span class={"pill " + kind}>
      {children}
    </span>
  );
}
