import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, href, namespace, route } from "../lib/route";
import { t, type Text } from "../lib/i18n";
import { live, paused } from "../lib/stream";
import { load, session, signOut, unreachable } from "../lib/session";
import { helping } from "../lib/shortcuts";
import { Brand, Preferences } from "./Frame";
import { Notice } from "./Notice";

const views: { path: string; name: Text }[] = [
  { path: "", name: "nav.overview" },
  { path: "live", name: "nav.live" },
  { path: "key", name: "nav.key" },
  { path: "rules", name: "nav.rules" },
  { path: "try", name: "nav.try" },
];

/** streams is how many parts of the view have numbers that move. */
export const streams = signal(0);

/** Page is the frame of all views: the head with the views, and what concerns all of them. */
export function Page({ children }: { children: ComponentChildren }) {
  const at = route.value.path[0] ?? "";
  const s = session.value;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        {t("nav.skip")}
      </a>
      <header class="head">
        <a class="mark" href={href([])} aria-label="weir">
          <Brand />
        </a>
        <nav aria-label={t("nav.label")}>
          {views.map((v) => (
            <a key={v.path} href={href(v.path ? [v.path] : [])} aria-current={v.path === at ? "page" : undefined}>
              {t(v.name)}
            </a>
          ))}
        </nav>
        <div class="tools">
          {s && s.namespaces.length > 1 && <Namespaces names={s.namespaces} />}
          {streams.value > 0 && <Live />}
          <Settings />
        </div>
      </header>
      {unreachable.value && s && (
        <div class="band">
          <Notice kind="warn" title={t("session.away")} action={{ text: t("session.retry"), run: () => void load() }}>
            {unreachable.value.detail || t("session.away.what")}
          </Notice>
        </div>
      )}
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <footer class="foot">
        {s && (
          <>
            weir {s.version}
            {!s.tokens && s.signed_in && <> · {t("session.reads")}</>}
          </>
        )}
        <button type="button" class="plain" onClick={() => (helping.value = true)}>
          {t("shortcuts.title")} <kbd>?</kbd>
        </button>
      </footer>
    </>
  );
}

function Namespaces({ names }: { names: string[] }) {
  const chosen = namespace() || (names.includes("default") ? "default" : names[0]!);
  return (
    <label class="field small">
      <span class="hidden">{t("nav.namespace")}</span>
      <select value={chosen} onChange={(e) => go(route.value.path, { ns: e.currentTarget.value })}>
        {!names.includes(chosen) && <option>{chosen}</option>}
        {names.map((n) => (
          <option key={n}>{n}</option>
        ))}
      </select>
    </label>
  );
}

/** Live says whether numbers move, and stops them. */
function Live() {
  const stopped = paused.value;
  const state: Text = stopped ? "live.paused" : live.value === "on" ? "live.on" : live.value === "lost" ? "live.lost" : "live.off";
  return (
    <button type="button" class={"live " + state.slice(5)} aria-pressed={stopped} onClick={() => (paused.value = !stopped)} title={`${t(stopped ? "live.go" : "live.pause")} (${t("live.hint")})`}>
      <i aria-hidden="true" />
      <span aria-live="polite">{t(state)}</span>
    </button>
  );
}

/** Settings is a menu: it closes on Escape, and when the reader goes on elsewhere. */
function Settings() {
  const s = session.value;
  const ref = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const elsewhere = (e: Event) => {
      if (ref.current && !ref.current.contains(e.target as Node)) ref.current.open = false;
    };
    document.addEventListener("pointerdown", elsewhere);
    document.addEventListener("focusin", elsewhere);
    return () => {
      document.removeEventListener("pointerdown", elsewhere);
      document.removeEventListener("focusin", elsewhere);
    };
  }, []);
  const key = (e: KeyboardEvent) => {
    if (e.key !== "Escape" || !ref.current?.open) return;
    ref.current.open = false;
    ref.current.querySelector("summary")?.focus();
  };
  return (
    <details class="menu" ref={ref} onKeyDown={key}>
      <summary aria-label={t("nav.settings")} title={t("nav.settings")}>
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M3 6h8M15 6h2M3 14h2M9 14h8" />
          <circle cx="13" cy="6" r="2" />
          <circle cx="7" cy="14" r="2" />
        </svg>
      </summary>
      <div class="sheet">
        <Preferences />
        {s?.tokens && s.signed_in && (
          <>
            <p class="quiet">{t("session.as", { name: s.name ?? "", scopes: s.scopes.join(", ") })}</p>
            <button type="button" onClick={() => void signOut()}>
              {t("session.out")}
            </button>
          </>
        )}
      </div>
    </details>
  );
}
