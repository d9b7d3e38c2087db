/** Kind is what a piece of a line of YAML is, for its colour. */
export type Kind = "comment" | "name" | "string" | "number" | "word" | "mark" | "";

export interface Token {
  kind: Kind;
  text: string;
}

const pieces = [
  ["comment", /^#.*/],
  ["string", /^"(?:[^"\\]|\\.)*"?|^'(?:[^']|'')*'?/],
  ["name", /^[\w.$@-]+(?=\s*:(?:\s|$|[[{"']))/],
  ["mark", /^[-[\]{}:,>|&*!?]+(?=\s|$|[\w"'[\]{}@$.-])|^[[\]{},:]/],
  ["number", /^-?\d[\d_]*(?:\.\d+)?(?:ms|us|µs|ns|[smhdw])?(?=[\s,\]}]|$)|^(?:\d+(?:ms|us|µs|ns|[smhdw]))+(?=[\s,\]}]|$)/],
  ["word", /^(?:true|false|null|yes|no|on|off)(?=[\s,\]}]|$)/],
  ["", /^[^\s,[\]{}:#"']+|^\s+|^./],
] as const;

/** tokens splits a line of a rules file into pieces that together are the line. It knows no more of YAML than colours
 * need: a text over several lines is coloured as if each were alone. */
export function tokens(line: string): Token[] {
  const all: Token[] = [];
  let rest = line;
  let before = " ";
  while (rest) {
    for (const [kind, form] of pieces) {
      if ((kind === "comment" && !/\s/.test(before)) || (kind === "string" && /[\w]/.test(before))) continue;
      const found = form.exec(rest)?.[0];
      if (!found) continue;
      const last = all[all.length - 1];
      if (last?.kind === kind) last.text += found;
      else all.push({ kind, text: found });
      before = found[found.length - 1]!;
      rest = rest.slice(found.length);
      break;
    }
  }
  return all;
}

/** Span is the lines of a rule in a rules file, from 0, without the one after the last. */
export interface Span {
  from: number;
  to: number;
}

const unquote = (s: string) => {
  if (s[0] === '"') {
    try {
      return JSON.parse(s) as string;
    } catch {
      return s;
    }
  }
  return s[0] === "'" ? s.slice(1, -1).replace(/''/g, "'") : s;
};

const named = /^(\s*)(?:-\s+)?\{?\s*name\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,}#]+(?: [^\s,}#]+)*)/;

/** spans finds the rules of a file by their names: what is between a list item with a name and the next item. */
export function spans(lines: string[]): Map<string, Span> {
  const found = new Map<string, Span>();
  let open: { name?: string; from: number; indent: number } | undefined;
  const close = (to: number) => {
    if (open?.name !== undefined && !found.has(open.name)) {
      while (to > open.from + 1 && /^\s*(#.*)?$/.test(lines[to - 1]!)) to--;
      found.set(open.name, { from: open.from, to });
    }
    open = undefined;
  };
  let inRules = false;
  lines.forEach((line, i) => {
    if (/^\S/.test(line) && !/^[-#]/.test(line)) {
      close(i);
      inRules = /^rules\s*:/.test(line);
      return;
    }
    if (!inRules) return;
    const item = /^(\s*)-(\s+|$)/.exec(line);
    if (item && (!open || item[1]!.length <= open.indent)) {
      close(i);
      open = { from: i, indent: item[1]!.length };
    }
    if (open && open.name === undefined) {
      const name = named.exec(line);
      if (name) open.name = unquote(name[2]!);
    }
  });
  close(lines.length);
  return found;
}

/** Place is where a text has a number: its line, from 0, and the columns around it. */
interface Place {
  line: number;
  from: number;
  to: number;
}

/** limitAt returns where the limit of a rule is, or undefined if it is no number that stands in one place. */
function limitAt(lines: string[], rule: string): Place | undefined {
  const span = spans(lines).get(rule);
  if (!span) return undefined;
  for (let i = span.from; i < span.to; i++) {
    const line = lines[i]!;
    const at = /(^\s*(?:-\s+)?|[{,]\s*)limit\s*:\s*(\d[\d_]*)(?=\s*(?:[,}#]|$))/.exec(line);
    if (!at || inComment(line, at.index + at[0].length)) continue;
    const to = at.index + at[0].length;
    return { line: i, from: to - at[2]!.length, to };
  }
  return undefined;
}

/** limitOf returns the limit of a rule, if it is a number that stands in one place. */
export function limitOf(text: string, rule: string): number | undefined {
  const lines = text.split("\n");
  const at = limitAt(lines, rule);
  return at && Number(lines[at.line]!.slice(at.from, at.to).replace(/_/g, ""));
}

/** withLimit returns the text with another number as the limit of a rule, and undefined if there is no [limitOf]. Everything
 * else stays as it is, comments too. */
export function withLimit(text: string, rule: string, limit: number): string | undefined {
  const lines = text.split("\n");
  const at = limitAt(lines, rule);
  if (!at) return undefined;
  const line = lines[at.line]!;
  const written = line.slice(at.from, at.to).includes("_") ? String(limit).replace(/\B(?=(\d{3})+$)/g, "_") : String(limit);
  lines[at.line] = line.slice(0, at.from) + written + line.slice(at.to);
  return lines.join("\n");
}

/** inComment reports whether what is at a place of a line is in a comment. */
function inComment(line: string, at: number): boolean {
  let n = 0;
  for (const token of tokens(line)) {
    n += token.text.length;
    if (n >= at) return token.kind === "comment";
  }
  return false;
}
