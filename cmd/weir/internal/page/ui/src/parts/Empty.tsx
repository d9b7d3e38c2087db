import type { ComponentChildren } from "preact";
import { Copy } from "./Copy";

/** Empty is shown where there is nothing to see yet: it says why, and what to do. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
      {command && (
        <div class="command">
          <pre tabIndex={0}>{command}</pre>
          <Copy text={command} />
        </div>
      )}
    </div>
  );
}
