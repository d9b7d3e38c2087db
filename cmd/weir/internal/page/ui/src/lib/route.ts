import { signal } from "@preact/signals";

/** Route is the part of the address after #: a path, and parameters such as filters, so that a link to what
 * somebody sees can be sent. The parameter ns is the namespace, and stays from one view to the next. */
export interface Route {
  path: string[]; // "#/rules/logins" is ["rules", "logins"]
  query: URLSearchParams;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2) as [string?, string?];
  const decode = (s: string) => {
    try {
      return decodeURIComponent(s);
    } catch {
      return s;
    }
  };
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

const read = () => parse(typeof location === "undefined" ? "" : location.hash);

/** route is where the reader is. */
export const route = signal<Route>(read());

if (typeof window !== "undefined") window.addEventListener("hashchange", () => (route.value = read()));

export type Params = Record<string, string | undefined>;

/** href returns a link to a view, in the namespace of the reader. Parameters that are undefined or empty are
 * left out. */
export function href(path: string[], params: Params = {}): string {
  const query = new URLSearchParams();
  const ns = "ns" in params ? params.ns : route.value.query.get("ns");
  if (ns) query.set("ns", ns);
  for (const [name, value] of Object.entries(params)) if (value && name !== "ns") query.set(name, value);
  const text = query.toString();
  return "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

/** go shows a view, as a link does. */
export function go(path: string[], params: Params = {}): void {
  location.hash = href(path, params);
}

/** setParams changes parameters of the view, without a step in the history of the browser. */
export function setParams(change: Params): void {
  const at = route.value;
  const params: Params = Object.fromEntries(at.query);
  history.replaceState(null, "", href(at.path, { ...params, ...change }));
  route.value = read();
}

/** param returns a parameter of the view, or an empty string. */
export const param = (name: string): string => route.value.query.get(name) ?? "";

/** namespace is the namespace of the reader; empty: the default one, or that of the token. */
export const namespace = (): string => param("ns");

/** given returns the attributes that the address has. */
export const given = (): [string, string][] => [...route.value.query].filter(([name]) => name.startsWith("a.")).map(([name, value]) => [name.slice(2), value]);

/** asParams returns attributes as parameters of the address. */
export const asParams = (attributes: Record<string, string>): Record<string, string> => Object.fromEntries(Object.entries(attributes).map(([name, value]) => ["a." + name, value]));
