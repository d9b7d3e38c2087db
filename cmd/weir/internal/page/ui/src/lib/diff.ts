import { base } from "./format";

/** Change is a line that both texts have, or one of them. */
export interface Change {
  kind: " " | "-" | "+";
  text: string; // with the line feed at its end
  before?: number; // the number of the line in the old text, from 1
  after?: number;
}

/** most bounds the work of diff: texts that differ in more lines are shown as wholly different in between. */
const most = 1500;

/** diff returns the lines of two texts, in order, by the algorithm of Myers. */
export function diff(before: string, after: string): Change[] {
  const a = lines(before);
  const b = lines(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const all: Change[] = [];
  const keep = (i: number, j: number) => all.push({ kind: " ", text: a[i]!, before: i + 1, after: j + 1 });
  for (let i = 0; i < start; i++) keep(i, i);
  for (const [kind, i, j] of script(a.slice(start, a.length - end), b.slice(start, b.length - end))) {
    if (kind === " ") keep(start + i, start + j);
    else if (kind === "-") all.push({ kind, text: a[start + i]!, before: start + i + 1 });
    else all.push({ kind, text: b[start + j]!, after: start + j + 1 });
  }
  for (let i = end; i > 0; i--) keep(a.length - i, b.length - i);
  return all;
}

const lines = (text: string) => (text === "" ? [] : text.split(/(?<=\n)/));

type Step = [kind: Change["kind"], a: number, b: number];

function script(a: string[], b: string[]): Step[] {
  const n = a.length;
  const m = b.length;
  const trace: Int32Array[] = [];
  const v = new Int32Array(2 * (Math.min(n + m, most) + 1) + 1);
  const zero = (v.length - 1) / 2;
  let found = -1;
  for (let d = 0; d <= Math.min(n + m, most) && found < 0; d++) {
    trace.push(v.slice());
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[zero + k - 1]! < v[zero + k + 1]!) ? v[zero + k + 1]! : v[zero + k - 1]! + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      v[zero + k] = x;
      if (x >= n && x - k >= m) {
        found = d;
        break;
      }
    }
  }
  if (found < 0) return [...a.map((_, i): Step => ["-", i, 0]), ...b.map((_, j): Step => ["+", n, j])];
  const steps: Step[] = [];
  let [x, y] = [n, m];
  for (let d = found; d > 0; d--) {
    const w = trace[d]!;
    const k = x - y;
    const from = k === -d || (k !== d && w[zero + k - 1]! < w[zero + k + 1]!) ? k + 1 : k - 1;
    const px = w[zero + from]!;
    while (x > px && y > px - from) steps.push([" ", --x, --y]);
    steps.push(x === px ? ["+", x, --y] : ["-", --x, y]);
  }
  while (x > 0) steps.push([" ", --x, --y]);
  return steps.reverse();
}

/** Hunk is changed lines with some around them. */
export interface Hunk {
  head: string;
  changes: Change[];
}

/** hunks returns the changes of two texts, each with at most context lines around it. */
export function hunks(before: string, after: string, context = 3): Hunk[] {
  const all = diff(before, after);
  const found: Hunk[] = [];
  let [na, nb] = [1, 1]; // the next line of each text
  let last = 0; // the end of the hunk before
  for (let i = 0; i < all.length; ) {
    if (all[i]!.kind === " ") {
      i++, na++, nb++;
      continue;
    }
    const from = Math.max(i - context, last);
    let to = i;
    for (let quiet = 0; to < all.length && quiet <= 2 * context; to++) quiet = all[to]!.kind === " " ? quiet + 1 : 0;
    while (to > i && all[to - 1]!.kind === " ") to--;
    const end = Math.min(to + context, all.length);
    const changes = all.slice(from, end);
    const ca = changes.filter((c) => c.kind !== "+").length;
    const cb = changes.filter((c) => c.kind !== "-").length;
    const [sa, sb] = [na - (i - from), nb - (i - from)];
    found.push({ head: `@@ -${ca ? sa : sa - 1},${ca} +${cb ? sb : sb - 1},${cb} @@`, changes });
    for (; i < end; i++) {
      if (all[i]!.kind !== "+") na++;
      if (all[i]!.kind !== "-") nb++;
    }
    last = end;
  }
  return found;
}

/** patch returns the difference of two texts as a file that patch and git apply take. */
export function patch(name: string, before: string, after: string): string {
  const all = hunks(before, after);
  if (all.length === 0) return "";
  const file = base(name);
  const out = [`--- a/${file}`, `+++ b/${file}`];
  for (const h of all) {
    out.push(h.head);
    for (const c of h.changes) out.push(c.kind + c.text.replace(/\n$/, ""), ...(c.text.endsWith("\n") ? [] : ["\\ No newline at end of file"]));
  }
  return out.join("\n") + "\n";
}
