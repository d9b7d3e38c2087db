import { useState } from "preact/hooks";
import { t } from "../lib/i18n";

/** copy puts text into the clipboard. Pages without TLS on other machines have no clipboard of their own. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "offscreen";
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** Copy is a button that copies text. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  return (
    <button type="button" class="small" onClick={() => void copy(text).then(() => (setDone(true), setTimeout(() => setDone(false), 2000)))}>
      <span aria-live="polite">{done ? t("copied") : (label ?? t("copy"))}</span>
    </button>
  );
}
