import { signal } from "@preact/signals";
import { keep, kept } from "./kept";
import { go } from "./route";
import { paused } from "./stream";

/** helping is whether the list of shortcuts is open. */
export const helping = signal(false);

/** shortcuts is whether single letters are commands. Readers who dictate turn them off. */
export const shortcuts = signal(kept("shortcuts") !== "off");

export function setShortcuts(on: boolean): void {
  shortcuts.value = on;
  keep("shortcuts", on ? "on" : "off");
}

const views: Record<string, string[]> = { o: [], w: ["live"], k: ["key"], r: ["rules"], t: ["try"] };

let pending = 0; // when g was typed

const types = (e: EventTarget | null) => e instanceof HTMLElement && (e.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(e.tagName));

/** listen makes the shortcuts of the whole page work: g and a letter, /, j, k, space and ?. */
export function listen(): void {
  document.addEventListener("keydown", (e) => {
    if (!shortcuts.value || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || types(e.target) || document.querySelector("dialog[open]")) return;
    const goes = e.timeStamp - pending < 1500;
    pending = 0;
    if (goes && views[e.key]) {
      go(views[e.key]!);
    } else if (e.key === "g") {
      pending = e.timeStamp;
      return;
    } else if (e.key === "?") {
      helping.value = true;
    } else if (e.key === "/") {
      document.querySelector<HTMLElement>("[data-filter]")?.focus();
    } else if (e.key === " " && !(e.target instanceof HTMLElement && e.target.closest("button, a, summary, [role=slider]"))) {
      paused.value = !paused.value;
    } else if (e.key === "j" || e.key === "k") {
      const table = (e.target instanceof HTMLElement && e.target.closest("[data-table]")) || document.querySelector("[data-table]");
      if (!table) return;
      table.dispatchEvent(new CustomEvent("move", { detail: e.key === "j" ? 1 : -1 }));
    } else return;
    e.preventDefault();
  });
}
