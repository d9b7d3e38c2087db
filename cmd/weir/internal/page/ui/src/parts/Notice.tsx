import type { ComponentChildren } from "preact";
import { Failure } from "../lib/api";
import { t } from "../lib/i18n";

/** Notice says something that needs attention: "warn" that numbers are not what they seem, "bad" that something
 * failed, "note" anything else. */
export function Notice({ kind = "note", title, action, children }: { kind?: "note" | "warn" | "bad" | "good"; title?: string; action?: { text: string; run: () => void }; children?: ComponentChildren }) {
  return (
    <div class={"notice " + kind} role={kind === "bad" ? "alert" : "status"}>
      <div>
        {title && <strong>{title}</strong>} {children}
      </div>
      {action && (
        <button type="button" onClick={action.run}>
          {action.text}
        </button>
      )}
    </div>
  );
}

/** textOf says why a call failed. */
export const textOf = (e: unknown): string => (e instanceof Failure ? e.problem.detail || t("error.away") : String(e));

/** Failed shows why a call failed. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const errors = error instanceof Failure ? error.problem.errors : undefined;
  return (
    <Notice kind="bad" title={t("error.title")} action={retry && { text: t("error.retry"), run: retry }}>
      {textOf(error)}
      {errors && (
        <ul>
          {errors.map((line) => (
            <li>{line}</li>
          ))}
        </ul>
      )}
    </Notice>
  );
}

/** Loading is shown while a view has no numbers yet. */
export const Loading = () => (
  <p class="quiet loading" role="status">
    {t("loading")}
  </p>
);
