// A client of weir's HTTP API. The types in openapi.ts are generated from
// api/openapi.yaml; this file adds deadlines, errors, and what to do without an
// answer.

import createClient from 'openapi-fetch';

import type { components, paths } from './openapi.js';

type Schemas = components['schemas'];

/** The answer to a request. A denial is a decision, too. */
export type Decision = Schemas['Decision'];
/** The numbers of one rule in a decision. */
export type Usage = Schemas['Usage'];
/** What describes an action, by name. */
export type Attributes = Schemas['Attributes'];
/** One request of a batch. */
export type BatchRequest = Schemas['BatchRequest'];
/** One answer of a batch: a decision, or a problem. */
export type Answer = Schemas['Answers']['answers'][number];

/** Settings of a client. */
export interface Options {
  /** A token of the service. Default: none. */
  token?: string;
  /** The namespace of all calls. Default: that of the token, or `default`. */
  namespace?: string;
  /**
   * The longest wait for an answer, in milliseconds. Default: 500. Node goes on connecting for up to 10 s, so calls
   * to a host that does not react keep sockets open for that long.
   */
  timeout?: number;
  /**
   * What take, check and a batch of them answer when the service gives no answer, or one
   * with status 408, 500 or more: a decision that allows, a decision that denies, or an
   * error of the class Unreachable. All other calls throw the error. Default: `allow`.
   */
  onOutage?: 'allow' | 'deny' | 'throw';
  /**
   * How often a take, record, refund or settle is sent again if there is no answer. With retries, each of them has
   * an idempotency key, so that it counts once. If the service has no room for the answer under a key, the call is
   * sent once without one. Default: 0.
   */
  retries?: number;
  /** What sends the requests. Default: the global `fetch`. */
  fetch?: (request: Request, init?: RequestInit) => Promise<Response>;
}

/** Settings of one call. */
export interface CallOptions {
  /** What the action costs. Default: 1. */
  hits?: number;
  /** Gives the call up. The promise is then rejected with the signal's reason. */
  signal?: AbortSignal;
}

/**
 * The service refused a call, because the call is wrong. Nothing was counted. Or, with a status below 300, the answer
 * cannot be read, and the call may have counted.
 */
export class Problem extends Error {
  override name = 'Problem';
  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** What the service answered. */
    readonly problem: Partial<Schemas['Problem']>,
    /** The seconds to wait before the next call, if the service states them. */
    readonly retryAfter?: number,
  ) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
  }
}

/** The service did not answer, or has an internal error or too much to do. The call may have counted. */
export class Unreachable extends Error {
  override name = 'Unreachable';
}

/** A client of one service. It sends each call once, unless retries are on. */
export class Client {
  /**
   * All calls of the description, by path: `client.api.GET('/v1/rules')`. An answer with an error is not thrown here,
   * and the setting onOutage has no effect.
   */
  readonly api;

  readonly #onOutage: 'allow' | 'deny' | 'throw';
  readonly #retries: number;

  /** `url` is the address of the service, such as `http://localhost:8080`. */
  constructor(url: string, options: Options = {}) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw new TypeError(`${url}: want an address such as http://localhost:8080`);
    }
    this.#onOutage = options.onOutage ?? 'allow';
    this.#retries = options.retries ?? 0;
    const headers: Record<string, string> = {};
    if (options.token !== undefined) headers['Authorization'] = `Bearer ${options.token}`;
    if (options.namespace !== undefined) headers['Weir-Namespace'] = options.namespace;
    const send = options.fetch ?? ((request: Request, init?: RequestInit) => fetch(request, init));
    this.api = createClient<paths>({
      baseUrl: url,
      headers,
      redirect: 'manual', // a call that is sent twice counts twice
      querySerializer: { object: { style: 'form', explode: true } },
      bodySerializer: json,
      fetch: (request) => answer(send, request, options.timeout ?? 500),
    });
  }

  /** Decides whether an action may happen, and counts it if so. */
  take(attributes: Attributes, options: CallOptions = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return this.#decide(this.#retry(signal, (key) => decision(this.api.POST('/v1/take', { body: { attributes, ...rest, ...key }, ...signal }))));
  }

  /** Answers as a take would, and counts nothing. */
  check(attributes: Attributes, options: CallOptions = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return this.#decide(decision(this.api.POST('/v1/check', { body: { attributes, ...rest }, ...signal })));
  }

  /** Counts an action that has happened, whatever the limits. */
  record(attributes: Attributes, options: CallOptions = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return this.#retry(signal, (key) => decision(this.api.POST('/v1/record', { body: { attributes, ...rest, ...key }, ...signal })));
  }

  /** Gives hits back: those of the action, or those that the rules state for a feedback. */
  refund(attributes: Attributes, options: CallOptions & { feedback?: string } = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return this.#retry(signal, (key) => decision(this.api.POST('/v1/refund', { body: { attributes, ...rest, ...key }, ...signal })));
  }

  /** Ends what a take holds, at its real cost. It can be repeated. */
  settle(receipt: string, attributes: Attributes, options: CallOptions = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return this.#retry(signal, (key) => decision(this.api.POST('/v1/settle', { body: { receipt, attributes, ...rest, ...key }, ...signal })));
  }

  /** Gives back what one take counted. The attributes and hits are those of the take. It can be repeated. */
  cancel(receipt: string, attributes: Attributes, options: CallOptions = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return decision(this.api.POST('/v1/cancel', { body: { receipt, attributes, ...rest }, ...signal }));
  }

  /** Starts the length of what a take holds again. It can be repeated. */
  renew(receipt: string, attributes: Attributes, options: CallOptions = {}): Promise<Decision> {
    const [signal, rest] = split(options);
    return decision(this.api.POST('/v1/renew', { body: { receipt, attributes, ...rest }, ...signal }));
  }

  /**
   * Makes up to 1000 calls in one. The answers are in the order of the requests. The setting onOutage decides about a
   * take or check that the service could not decide; with `throw`, it has a problem as its answer.
   */
  async batch(requests: BatchRequest[], options: { signal?: AbortSignal } = {}): Promise<Answer[]> {
    try {
      const call = this.api.POST('/v1/batch', { body: { requests }, ...only(options.signal) });
      const { answers } = await result(call, (all) => isList(all?.answers, isAnswer) && all?.answers.length === requests.length);
      if (this.#onOutage === 'throw') return answers;
      return answers.map((answer, i) => {
        const undecided = 'problem' in answer && isUndecided(answer.problem.status) && hasFallback(requests[i]!);
        return undecided ? this.#instead(new Unreachable()) : answer;
      });
    } catch (error) {
      if (!requests.every(hasFallback)) throw error;
      const instead = this.#instead(error);
      return requests.map(() => instead);
    }
  }

  /** Shows what a rule has counted for the key that the attributes make. */
  usage(rule: string, attributes: Record<string, string> = {}, options: { signal?: AbortSignal } = {}): Promise<Schemas['KeyUsage']> {
    return result(this.api.GET('/v1/usage', { params: { query: { rule, attributes } }, ...only(options.signal) }), isUsage);
  }

  /** Drops what a rule has counted for the key that the attributes make. */
  async forget(rule: string, attributes: Record<string, string> = {}, options: { signal?: AbortSignal } = {}): Promise<void> {
    await result(this.api.DELETE('/v1/usage', { params: { query: { rule, attributes } }, ...only(options.signal) }));
  }

  /** Sends a call under one idempotency key until there is an answer, or once without retries. */
  async #retry<T>({ signal }: { signal?: AbortSignal }, send: (key: { idempotency_key?: string }) => Promise<T>): Promise<T> {
    if (this.#retries <= 0) return send({});
    const key = { idempotency_key: crypto.randomUUID() };
    for (let attempt = 0; ; attempt++) {
      try {
        return await send(key);
      } catch (error) {
        if (error instanceof Problem && error.status === 429) { // no room for the answer
          if (attempt === 0) return send({});
          throw new Unreachable(error.message, { cause: error }); // an earlier attempt may have counted
        }
        if (!(error instanceof Unreachable) || attempt >= this.#retries) throw error;
        const pause = Math.min(20 * 2 ** attempt, 1000) * (0.5 + Math.random() / 2);
        await new Promise((done) => setTimeout(done, pause));
        signal?.throwIfAborted();
      }
    }
  }

  /** Returns the decision, or what the caller wants without one. */
  async #decide(call: Promise<Decision>): Promise<Decision> {
    try {
      return await call;
    } catch (error) {
      return this.#instead(error);
    }
  }

  /** Returns the decision that takes the place of an answer. */
  #instead(error: unknown): Decision {
    if (!(error instanceof Unreachable) || this.#onOutage === 'throw') throw error;
    const allowed = this.#onOutage === 'allow';
    return {
      allowed,
      outcome: this.#onOutage,
      ...(!allowed && { retry_after: 1 }),
      limits: [],
      degraded: true,
      degraded_reason: 'unreachable',
    };
  }
}

/** Returns the settings of a call, and those of its body. */
function split<T extends CallOptions>(options: T): [{ signal?: AbortSignal }, Omit<T, 'signal'>] {
  const { signal, ...rest } = options;
  return [only(signal), rest];
}

function only(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}

/**
 * Returns a body as JSON. A service under load could answer what is too large with a status of 500 or more, and
 * onOutage would let it pass.
 */
function json(body: unknown): string {
  const text = JSON.stringify(body, (name, value: unknown) => (name === 'attributes' ? cut(value) : value));
  if (new TextEncoder().encode(text).length > 1 << 20) throw new Problem(413, { status: 413, detail: 'the body is larger than 1 MiB' });
  return text;
}

/** Cuts long values. The service refuses values of more than 1024 bytes, and so also what is left of these. */
function cut(attributes: unknown): unknown {
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes)) return attributes;
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, 4096) : value]));
}

/** Sends a request once, and waits up to timeout milliseconds for the whole answer. */
async function answer(send: NonNullable<Options['fetch']>, request: Request, timeout: number): Promise<Response> {
  const deadline = AbortSignal.timeout(timeout);
  try {
    const response = await send(request, { signal: AbortSignal.any([request.signal, deadline]) });
    const body = await response.text();
    const { status, headers } = response;
    return new Response(status === 204 ? null : body, { status, headers });
  } catch (cause) {
    if (request.signal.aborted) throw request.signal.reason;
    throw new Unreachable(deadline.aborted ? `no answer within ${timeout} ms` : `no answer: ${text(cause)}`, { cause });
  }
}

type Call<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

/** Returns what the service answered, or throws a Problem or Unreachable. */
async function result<T>(call: Call<T>, valid: (data: T | undefined) => boolean = () => true): Promise<T> {
  let got;
  try {
    got = await call;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new Problem(200, { detail: 'the answer is not JSON; is the address that of weir?' });
  }
  const { data, error, response } = got;
  if (response.ok && valid(data)) return data as T;
  if (response.ok) throw new Problem(response.status, { detail: 'the answer cannot be read; is the address that of weir?' });
  const problem = typeof error === 'object' && error !== null ? (error as Partial<Schemas['Problem']>) : {};
  const wait = response.headers.get('Retry-After');
  const refused = new Problem(response.status, problem, wait !== null && /^\d{1,9}$/.test(wait) ? Number(wait) : undefined);
  if (!isUndecided(response.status)) throw refused;
  throw new Unreachable(refused.message, { cause: refused });
}

function decision(call: Call<Decision>): Promise<Decision> {
  return result(call, isDecision);
}

/** Reports whether a status says that the service could not decide, and not that the call is wrong. */
function isUndecided(status: number): boolean {
  return status >= 500 || status === 408;
}

/** Reports whether onOutage decides about a request of a batch if the service does not. */
function hasFallback(request: BatchRequest): boolean {
  return request.verb === undefined || request.verb === 'take' || request.verb === 'check';
}

function isDecision(d: Partial<Decision> | null | undefined): boolean {
  return (
    typeof d?.allowed === 'boolean' && typeof d.outcome === 'string' && isList(d.limits, isUsage) &&
    (d.receipt === undefined || typeof d.receipt === 'string') && (d.retry_after === undefined || Number.isFinite(d.retry_after))
  );
}

function isUsage(u: Partial<Usage> | null | undefined): boolean {
  return typeof u?.rule === 'string' && typeof u.key === 'string' && typeof u.used === 'number' && typeof u.reset_after === 'number';
}

function isAnswer(a: Answer | null | undefined): boolean {
  return isDecision(a as Decision) || typeof (a as Schemas['Refusal'] | null)?.problem?.status === 'number';
}

function isList<T>(list: T[] | undefined, valid: (element: T) => boolean): boolean {
  return Array.isArray(list) && list.every(valid);
}

function text(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error ? `${cause.message}: ${cause.cause.message}` : cause.message;
}
