import { useMemo } from "preact/hooks";
import { hunks } from "../lib/diff";
import { t } from "../lib/i18n";
import { visible } from "./Key";

/** Diff shows how a text differs from another one. */
export function Diff({ before, after }: { before: string; after: string }) {
  const all = useMemo(() => hunks(before, after), [before, after]);
  if (all.length === 0) return <p class="quiet">{t("rules.same")}</p>;
  return (
    <div class="code diff" role="region" aria-label={t("rules.difference")} tabIndex={0}>
      {all.map((h) => (
        <>
          <div class="hunk">{h.head}</div>
          {h.changes.map((c) => (
            <div class={c.kind === "+" ? "plus" : c.kind === "-" ? "minus" : undefined}>
              <span class="number" aria-hidden="true">
                {c.kind}
              </span>
              <code>
                {c.kind !== " " && <span class="hidden">{t(c.kind === "+" ? "rules.added" : "rules.removed")}</span>}
                {visible(c.text.replace(/\n$/, ""))}
              </code>
            </div>
          ))}
        </>
      ))}
    </div>
  );
}
