import type { ComponentChildren } from "preact";
import { language, setLanguage, t, type Language } from "../lib/i18n";
import { setTheme, theme, type Theme } from "../lib/theme";

/** Brand is the mark of weir, and its name. */
export const Brand = () => (
  <>
    <svg viewBox="0 0 28 20" aria-hidden="true">
      <path d="M1 6h13v7h13" />
      <path class="water" d="M1 11h9v7h17" />
    </svg>
    weir
  </>
);

/** Preferences chooses the language and the colours. small shows no names above the two. */
export function Preferences({ small }: { small?: boolean }) {
  const label = (name: ComponentChildren, select: ComponentChildren) => (
    <label class={small ? "field small" : "field"}>
      <span class={small ? "hidden" : undefined}>{name}</span>
      {select}
    </label>
  );
  return (
    <>
      {label(
        t("nav.language"),
        <select value={language.value} onChange={(e) => setLanguage(e.currentTarget.value as Language)}>
          <option value="en">English</option>
          <option value="zh">中文</option>
        </select>,
      )}
      {label(
        t("nav.theme"),
        <select value={theme.value} onChange={(e) => setTheme(e.currentTarget.value as Theme)}>
          {(["auto", "light", "dark"] as const).map((v) => (
            <option key={v} value={v}>
              {t(`theme.${v}`)}
            </option>
          ))}
        </select>,
      )}
    </>
  );
}
