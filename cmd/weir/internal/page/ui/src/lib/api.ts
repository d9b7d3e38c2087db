import { namespace } from "./route";

/** Problem is the answer of a call that failed (RFC 9457). */
export interface Problem {
  status: number;
  detail: string;
  field?: string;
  place?: string;
  errors?: string[];
  retryAfter?: number; // seconds
}

/** Failure is thrown for each answer that is a problem, and with status 0 if the service does not answer. */
export class Failure extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
  get status(): number {
    return this.problem.status;
  }
}

export interface Call {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  query?: Record<string, string | string[] | undefined>;
  body?: unknown; // JSON, unless it is a string, a Blob or a form
  headers?: Record<string, string>;
  signal?: AbortSignal;
  ns?: string; // another namespace than the reader's
}

/** onSignedOut is called when a call is answered 401. */
export const signedOut: { call: () => void } = { call: () => {} };

/** url returns the address of a call in a namespace. It is relative, so that the page works behind a proxy
 * that puts a path in front. */
export function url(path: string, query: Call["query"] = {}, ns: string = namespace()): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((v) => q.append(name, v));
    else if (value) q.set(name, value);
  }
  const text = q.toString();
  return (ns ? "ns/" + encodeURIComponent(ns) + "/" : "") + path.replace(/^\//, "") + (text ? "?" + text : "");
}

/** request makes a call, and returns its answer. */
export async function request(path: string, c: Call = {}): Promise<Response> {
  const headers: Record<string, string> = { "X-Weir-Page": "1", ...c.headers };
  let body: BodyInit | undefined;
  if (typeof c.body === "string" || c.body instanceof Blob || c.body instanceof FormData) body = c.body;
  else if (c.body !== undefined) {
    body = JSON.stringify(c.body);
    headers["Content-Type"] = "application/json";
  }
  let answer: Response;
  try {
    answer = await fetch(url(path, c.query, c.ns), { method: c.method ?? "GET", headers, body, signal: c.signal, credentials: "same-origin", cache: "no-store" });
  } catch (e) {
    if (c.signal?.aborted) throw e;
    throw new Failure({ status: 0, detail: "" });
  }
  if (answer.ok) return answer;
  const problem: Problem = { status: answer.status, detail: answer.statusText };
  try {
    Object.assign(problem, await answer.json());
  } catch {
    // The answer of a proxy, perhaps: the status has to do.
  }
  const wait = Number(answer.headers.get("Retry-After"));
  if (wait > 0) problem.retryAfter = wait;
  if (answer.status === 401) signedOut.call();
  throw new Failure(problem);
}

/** api makes a call, and returns the JSON of its answer. */
export async function api<T>(path: string, c: Call = {}): Promise<T> {
  const answer = await request(path, c);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}
