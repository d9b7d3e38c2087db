import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Finding } from "../lib/draft";
import { count } from "../lib/format";
import { t } from "../lib/i18n";
import { tokens, type Span } from "../lib/yaml";
import { visible } from "./Key";

/** Findings are errors and warnings. */
export interface Findings {
  errors: Finding[];
  warnings: Finding[];
}

/** byLine returns findings by their line, from 1, the errors first. */
function byLine(f: Findings): Map<number, { finding: Finding; bad: boolean }[]> {
  const all = new Map<number, { finding: Finding; bad: boolean }[]>();
  for (const bad of [true, false])
    for (const finding of bad ? f.errors : f.warnings) {
      const line = finding.line || 1;
      all.set(line, [...(all.get(line) ?? []), { finding, bad }]);
    }
  return all;
}

/** Line is a line in colours. What findings are about is underlined. */
function Line({ text, at = [] }: { text: string; at?: { finding: Finding; bad: boolean }[] }) {
  let n = 0;
  return (
    <>
      {tokens(text).map((token) => {
        const from = n;
        n += token.text.length;
        const here = at.find(({ finding }) => finding.column !== undefined && finding.column - 1 >= from && finding.column - 1 < n);
        return <span class={[token.kind && "y-" + token.kind, here && (here.bad ? "wrong" : "odd")].filter(Boolean).join(" ") || undefined}>{visible(token.text).replace(/\ufffd/g, (c, i: number) => (token.text[i] === "\t" ? "\t" : c))}</span>;
      })}
    </>
  );
}

/** Said is what weir check says about a place. */
const Said = ({ finding, bad }: { finding: Finding; bad: boolean }) => (
  <>
    <strong>{t(bad ? "rules.error" : "rules.warning")}</strong> {visible(finding.problem)}
    {finding.name && <span class="quiet"> ({finding.name})</span>}
  </>
);

/** Code shows lines of a rules file, in colours, with what weir check says under the line that it is about. first is the
 * number of the first line. */
export function Code({ text, findings, first = 1, label, marked }: { text: string; findings: Findings; first?: number; label: string; marked?: Span }) {
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n"), [text]);
  const found = useMemo(() => byLine(findings), [findings]);
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const line = ref.current?.querySelector<HTMLElement>(".marked");
    if (line) ref.current!.scrollTop = line.offsetTop - ref.current!.clientHeight / 3; // the page itself stays
  }, [marked?.from]);
  return (
    <div class="code" role="region" aria-label={label} tabIndex={0} ref={ref}>
      {lines.map((line, i) => {
        const said = found.get(first + i) ?? [];
        const on = marked && first + i > marked.from && first + i <= marked.to;
        return (
          <div key={i} class={on ? "marked" : undefined}>
            <span class="number" aria-hidden="true">
              {first + i}
            </span>
            <code>
              <Line text={line} at={said} />
            </code>
            {said.map((s) => (
              <p class={s.bad ? "said bad" : "said"} style={{ marginLeft: `${Math.min((s.finding.column ?? 1) - 1, 60)}ch` }}>
                <Said {...s} />
              </p>
            ))}
          </div>
        );
      })}
    </div>
  );
}

/** Editor changes a rules file. It draws the lines that are seen, in colours, behind a text field, and what weir check
 * says at the end of its line, and in a list below. */
export function Editor({ text, findings, label, readOnly, at, onInput, onSave }: { text: string; findings: Findings; label: string; readOnly?: boolean; at?: number; onInput?: (text: string) => void; onSave?: () => void }) {
  const lines = useMemo(() => text.split("\n"), [text]);
  const found = useMemo(() => byLine(findings), [findings]);
  const field = useRef<HTMLTextAreaElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, height: 600, line: 21 });
  const look = () => {
    const f = field.current;
    if (!f) return;
    setView({ top: f.scrollTop, left: f.scrollLeft, height: f.clientHeight, line: heightOf(f) });
  };
  useEffect(() => {
    look();
    const watch = new ResizeObserver(look);
    watch.observe(field.current!);
    return () => watch.disconnect();
  }, []);
  const go = (line: number, column = 1) => {
    const f = field.current!;
    const start = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0) + column - 1;
    f.focus();
    f.setSelectionRange(start, start);
    f.scrollTop = Math.max(0, (line - 1) * heightOf(f) - f.clientHeight / 3);
    look();
  };
  useEffect(() => {
    if (at) go(at);
  }, [at]);

  const onKeyDown = (e: KeyboardEvent) => {
    if ((e.ctrlKey || e.metaKey) && e.key === "s" && onSave) {
      e.preventDefault();
      onSave();
    }
    if (e.key === "Enter" && !e.ctrlKey && !e.metaKey && !e.altKey && !e.shiftKey && !e.isComposing && !readOnly) {
      const f = field.current!;
      const before = text.slice(text.lastIndexOf("\n", f.selectionStart - 1) + 1, f.selectionStart);
      const indent = /^\s*(?:- )?/.exec(before)![0].replace("-", " ");
      if (indent && document.execCommand("insertText", false, "\n" + indent)) e.preventDefault(); // which can be undone
    }
  };

  const first = Math.max(0, Math.floor(view.top / view.line) - 2);
  const last = Math.min(lines.length, Math.ceil((view.top + view.height) / view.line) + 2);
  const shown = lines.slice(first, last);
  const y = first * view.line - view.top;
  const all = [...found.values()].flat().sort((a, b) => (a.finding.line ?? 0) - (b.finding.line ?? 0));
  return (
    <>
      <div class="editor" style={{ height: `calc(${Math.min(Math.max(lines.length, 8) + 2, 40)} * var(--lh) + 1rem)` }}>
        <div class="paint" aria-hidden="true">
          <div class="gutter" style={{ transform: `translateY(${y}px)` }}>
            {shown.map((_, i) => {
              const said = found.get(first + i + 1);
              return <div class={said ? (said[0]!.bad ? "bad" : "odd") : undefined}>{first + i + 1}</div>;
            })}
          </div>
          <div class="seen">
            <div style={{ transform: `translate(${-view.left}px, ${y}px)` }}>
              {shown.map((line, i) => {
                const said = found.get(first + i + 1) ?? [];
                return (
                  <div>
                    <Line text={line} at={said} />
                    {said[0] && (
                      <span class={said[0].bad ? "said bad" : "said"}>
                        <Said {...said[0]} />
                      </span>
                    )}
                  </div>
                );
              })}
            </div>
          </div>
        </div>
        <textarea
          ref={field}
          value={text}
          readOnly={readOnly}
          aria-label={label}
          aria-describedby="problems"
          aria-invalid={findings.errors.length > 0 || undefined}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          wrap="off"
          onScroll={look}
          onKeyDown={onKeyDown}
          onInput={(e) => onInput?.(e.currentTarget.value)}
        />
      </div>
      <div id="problems" role="status">
        {all.length > 0 && (
          <ul class="problems">
            {all.slice(0, mostListed).map(({ finding, bad }) => (
              <li>
                <button type="button" class="plain" onClick={() => go(finding.line ?? 1, finding.column)}>
                  {finding.line ?? 1}:{finding.column ?? 1}
                </button>
                <span class={bad ? "bad" : undefined}>
                  <Said finding={finding} bad={bad} />
                </span>
              </li>
            ))}
            {all.length > mostListed && <li class="quiet">{t("rules.more", { n: count(all.length - mostListed) })}</li>}
          </ul>
        )}
      </div>
    </>
  );
}

const mostListed = 50;

/** heightOf returns the height of a line. */
const heightOf = (f: HTMLElement) => parseFloat(getComputedStyle(f).lineHeight) || 21;
