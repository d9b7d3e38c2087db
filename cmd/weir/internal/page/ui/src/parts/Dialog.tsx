import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { t } from "../lib/i18n";

/** Dialog is a window above the view, as long as it is rendered. side shows it at the edge, over the whole height; on a
 * phone each fills the screen. */
export function Dialog({ title, onClose, side, children, actions }: { title: ComponentChildren; onClose: () => void; side?: boolean; children: ComponentChildren; actions?: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const d = ref.current!;
    const before = document.activeElement;
    d.showModal();
    return () => {
      d.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={side ? "side" : undefined}
      aria-labelledby={id}
      onCancel={(e) => (e.preventDefault(), onClose())}
      onClick={(e) => e.target === ref.current && onClose()}
    >
      <div class="box">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="plain close" aria-label={t("dialog.close")} onClick={onClose}>
            ×
          </button>
        </header>
        <div class="body">{children}</div>
        {actions && <footer>{actions}</footer>}
      </div>
    </dialog>
  );
}
