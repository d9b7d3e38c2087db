import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../lib/format";
import { t } from "../lib/i18n";
import { param, setParams } from "../lib/route";

/** Column is a column of a table. */
export interface Column<R> {
  id: string;
  title: string;
  cell: (row: R) => ComponentChildren;
  value?: (row: R) => number | string; // what the column is sorted by; without it it cannot be
  number?: boolean; // right, with digits of one width, and sorted from the largest on
  wide?: boolean; // takes the room that is left
  bare?: boolean; // on a card, without its title
}

/** from is the number of rows from which on only those that are seen are drawn. */
const from = 200;

/** Table shows rows, sorted by the column in the parameter sort of the address. The first cell of a row is its head; if
 * it has a link, Enter opens it, and j and k go from one to the next. On a phone each row is a card. All rows of a table
 * with more than 200 rows must be equally high. With most, no more rows are shown until the reader asks for all. */
export function Table<R>({ label, rows, columns, id, sort, empty, most }: { label: string; rows: R[]; columns: Column<R>[]; id: (row: R) => string; sort?: string; empty?: ComponentChildren; most?: number }) {
  const chosen = param("sort") || sort || "";
  const up = chosen.startsWith("+");
  const by = columns.find((c) => c.value && c.id === chosen.replace(/^[+-]/, ""));
  const [all, setAll] = useState(false);
  const ordered = useMemo(() => {
    if (!by?.value) return rows;
    const value = by.value;
    const sign = up ? 1 : -1;
    const compare = (a: number | string, b: number | string) => (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b);
    return rows
      .map((row, i) => ({ row, i, v: value(row) }))
      .sort((a, b) => sign * compare(a.v, b.v) || a.i - b.i)
      .map((x) => x.row);
  }, [rows, by?.id, up]);

  const cut = !all && most !== undefined && ordered.length > most;
  const sorted = cut ? ordered.slice(0, most) : ordered;

  const ref = useRef<HTMLTableSectionElement>(null);
  const [seen, setSeen] = useState<[number, number]>([0, 30]);
  const active = useRef(-1); // the row that j and k go on from
  const focusing = useRef(false);
  const height = useRef(0);
  const virtual = sorted.length > from;

  useEffect(() => {
    if (!virtual) return;
    const look = () => {
      const body = ref.current;
      if (!body) return;
      const row = body.querySelector<HTMLElement>("tr[data-row]");
      if (row) height.current = row.getBoundingClientRect().height || height.current;
      const h = height.current || 48;
      const top = -body.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / h) - 20);
      const last = Math.min(sorted.length, Math.ceil((top + innerHeight) / h) + 20);
      setSeen(([a, b]) => (Math.abs(a - first) > 8 || Math.abs(b - last) > 8 || last === sorted.length ? [first, Math.max(last, first)] : [a, b]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [virtual, sorted.length]);

  const link = (row: number) => ref.current?.querySelector<HTMLElement>(`tr[data-row="${row}"] a, tr[data-row="${row}"] button`);
  const move = (by: number) => {
    const next = Math.min(Math.max(active.current + by, 0), sorted.length - 1);
    active.current = next;
    if (virtual && ref.current) {
      const h = height.current || 48;
      const at = ref.current.getBoundingClientRect().top + next * h;
      if (at < 60 || at > innerHeight - 2 * h) scrollBy({ top: at - innerHeight / 2 });
    }
    const to = link(next);
    if (to) to.focus();
    else focusing.current = true; // it is drawn when the page has moved there
  };
  const outer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const to = outer.current!;
    const on = (e: Event) => move((e as CustomEvent<number>).detail);
    to.addEventListener("move", on);
    return () => to.removeEventListener("move", on);
  });
  useEffect(() => {
    const to = focusing.current ? link(active.current) : undefined;
    if (!to) return;
    focusing.current = false;
    to.focus();
  });

  const [first, last] = virtual ? [Math.min(seen[0], sorted.length), Math.min(seen[1], sorted.length)] : [0, sorted.length];
  const h = height.current || 48;
  return (
    <div class="table" data-table ref={outer}>
      {rows.length > 1 && columns.some((c) => c.value) && (
        <label class="field sortby">
          {t("table.by")}
          <select value={by ? (up ? "+" : "-") + by.id : ""} onChange={(e) => setParams({ sort: e.currentTarget.value })}>
            {!by && <option value="">–</option>}
            {columns.map((c) =>
              c.value ? (
                <option key={c.id} value={(c.number ? "-" : "+") + c.id}>
                  {c.title}
                </option>
              ) : null,
            )}
          </select>
        </label>
      )}
      <table aria-label={label} aria-rowcount={ordered.length + 1}>
        <thead>
          <tr>
            {columns.map((c) => {
              const on = c === by;
              return (
                <th key={c.id} scope="col" class={c.number ? "n" : c.wide ? "wide" : undefined} aria-sort={on ? (up ? "ascending" : "descending") : undefined}>
                  {c.value ? (
                    <button type="button" title={t("table.sort", { column: c.title })} onClick={() => setParams({ sort: (on ? !up : !c.number) ? "+" + c.id : "-" + c.id })}>
                      {c.title}
                      <i aria-hidden="true">{on ? (up ? "↑" : "↓") : ""}</i>
                    </button>
                  ) : (
                    c.title
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody ref={ref}>
          {first > 0 && <Gap height={first * h} span={columns.length} />}
          {sorted.slice(first, last).map((row, i) => (
            <tr key={id(row)} data-row={first + i} aria-rowindex={first + i + 2} onFocusIn={() => (active.current = first + i)}>
              {columns.map((c, at) => {
                const props = { class: [c.number && "n", c.wide && "wide", c.bare && "bare"].filter(Boolean).join(" ") || undefined, "data-title": c.title };
                return at === 0 ? (
                  <th key={c.id} scope="row" {...props}>
                    {c.cell(row)}
                  </th>
                ) : (
                  <td key={c.id} {...props}>
                    {c.cell(row)}
                  </td>
                );
              })}
            </tr>
          ))}
          {last < sorted.length && <Gap height={(sorted.length - last) * h} span={columns.length} />}
          {sorted.length === 0 && (
            <tr>
              <td class="none" colSpan={columns.length}>
                {empty ?? t("table.none")}
              </td>
            </tr>
          )}
        </tbody>
      </table>
      {cut && (
        <button type="button" class="more" onClick={() => setAll(true)}>
          {t("table.all", { n: count(ordered.length) })}
        </button>
      )}
      {virtual && <p class="hidden">{t("table.rows", { shown: count(last - first), all: count(sorted.length) })}</p>}
    </div>
  );
}

/** Gap takes the room of rows that are not drawn. */
const Gap = ({ height, span }: { height: number; span: number }) => (
  <tr class="gap" aria-hidden="true">
    <td colSpan={span} style={{ height: `${height}px` }} />
  </tr>
);
