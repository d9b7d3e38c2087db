import { signal } from "@preact/signals";
import { keep, kept } from "./kept";

export type Theme = "auto" | "light" | "dark";

function first(): Theme {
  const chosen = kept("theme");
  return chosen === "light" || chosen === "dark" ? chosen : "auto";
}

/** theme is light, dark, or what the system says. */
export const theme = signal<Theme>(first());

/** dark counts changes of the colours, so that canvases are drawn again. */
export const repaint = signal(0);

export function setTheme(t: Theme): void {
  theme.value = t;
  keep("theme", t);
}

const colors = new Map<string, string>();

if (typeof document !== "undefined") {
  const paint = (t: Theme) => {
    if (t === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = t;
    colors.clear();
  };
  theme.subscribe((t) => {
    paint(t);
    repaint.value = repaint.peek() + 1;
  });
  // Paper is light. Charts redraw themselves after this.
  addEventListener("beforeprint", () => paint("light"));
  addEventListener("afterprint", () => paint(theme.value));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (repaint.value = repaint.peek() + 1));
}

if (typeof document !== "undefined") repaint.subscribe(() => colors.clear());

/** color returns a colour of style.css as a canvas wants it. */
export function color(name: string): string {
  const known = colors.get(name);
  if (known) return known;
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const c = getComputedStyle(probe).color;
  probe.remove();
  colors.set(name, c);
  return c;
}
