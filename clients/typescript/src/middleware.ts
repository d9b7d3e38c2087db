// Middleware for Express and Fastify that asks a weir service. It needs neither of
// them: their requests and answers are described by what it uses of them.

import type { IncomingMessage, ServerResponse } from 'node:http';

import { Problem, Unreachable, type Attributes, type Client, type Decision } from './index.js';

/**
 * Returns what describes a request, or undefined for one that is not limited. A request with an attribute that is
 * undefined or empty, such as the address of a caller who has gone, gets 400, because rules take it as missing and
 * may not match: leave out what requests may lack. So does one with a value that weir refuses, such as a long one.
 */
export type AttributesOf<Request> = (request: Request) => Attributes | undefined | Promise<Attributes | undefined>;

/** What the middleware uses of Fastify's reply. */
export interface Reply {
  raw: ServerResponse;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: string): unknown;
}

/**
 * Limits the requests of an Express application: `app.use(limitExpress(client, attributes))`.
 *
 * A denied request gets the status 429, or 503 if the service did not count it, with Retry-After. Answers have
 * RateLimit and RateLimit-Policy. What a request holds, such as a place in flight, is settled when its answer has
 * ended; it is not renewed, so that hold in the rules must be longer than a request takes. Whether requests pass
 * without the service is the setting onOutage of the client; with `throw` they get 503. A wrong call is an error of the
 * application.
 */
export function limitExpress<Request extends IncomingMessage = IncomingMessage>(client: Client, attributes: AttributesOf<Request>) {
  return async (request: Request, response: ServerResponse, next: (error?: unknown) => void): Promise<void> => {
    let denial: number | undefined;
    try {
      denial = await limit(client, () => attributes(request), response, (name, value) => response.setHeader(name, value));
    } catch (error) {
      next(error);
      return;
    }
    if (denial === undefined) {
      next();
      return;
    }
    response.statusCode = denial;
    response.setHeader('Content-Type', 'text/plain; charset=utf-8');
    response.end(texts[denial]);
  };
}

/** Limits the requests of a Fastify application, as limitExpress does: `app.addHook('onRequest', limitFastify(client, attributes))`. */
export function limitFastify<Request = unknown>(client: Client, attributes: AttributesOf<Request>) {
  return async (request: Request, reply: Reply): Promise<unknown> => {
    const denial = await limit(client, () => attributes(request), reply.raw, (name, value) => reply.header(name, value));
    if (denial === undefined) return undefined;
    reply.code(denial);
    reply.header('Content-Type', 'text/plain; charset=utf-8');
    reply.send(texts[denial] ?? '');
    return reply;
  };
}

const texts: Record<number, string> = { 400: 'Bad Request\n', 429: 'Too Many Requests\n', 503: 'Service Unavailable\n' };

/** Takes a request, sets the headers of its answer, and returns the status of a denial. */
async function limit(
  client: Client,
  attributesOf: () => ReturnType<AttributesOf<unknown>>,
  response: ServerResponse,
  set: (name: string, value: string) => unknown,
): Promise<number | undefined> {
  const attributes = await attributesOf();
  if (attributes === undefined) return undefined;
  if (Object.values<unknown>(attributes).some((value) => value === undefined || value === null || value === '')) return 400;
  let decision: Decision;
  try {
    decision = await client.take(attributes);
  } catch (cause) {
    if (cause instanceof Unreachable) return 503;
    if (cause instanceof Problem && cause.status === 400 && String(cause.problem.field).startsWith('attributes.')) return 400;
    // Not the Problem: Express would give its status to the caller.
    throw new Error('weir did not decide the call of the middleware', { cause });
  }
  const { receipt, allowed, degraded, retry_after: wait = 0 } = decision;
  if (receipt !== undefined) {
    // Without an answer, the hold ends by itself.
    void end(response).then(() => client.settle(receipt, attributes)).catch(() => undefined);
  }
  const stated = stateLimits(decision, set);
  if (allowed) return undefined;
  if (wait > 0) set('Retry-After', String(Math.ceil(wait)));
  return degraded && !stated ? 503 : 429;
}

/** Waits for the end of an answer, or of its connection while the answer waits behind those to earlier requests. */
function end(response: ServerResponse): Promise<void> {
  const { socket } = response.req;
  if (response.closed || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    response.once('close', resolve);
    if (response.socket === null) {
      socket.once('close', resolve);
      response.once('close', () => socket.off('close', resolve));
    }
  });
}

/**
 * Sets RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10, the tightest limit first, and reports
 * whether there is one.
 */
function stateLimits(decision: Decision, set: (name: string, value: string) => unknown): boolean {
  if (decision.verdicts !== undefined) return false; // a verdict decided, and not the limits
  const never = Number.MAX_SAFE_INTEGER;
  const rows = decision.limits
    .filter((u) => u.kind === undefined && u.shadow === undefined)
    .map((u) => ({ name: quoted(u.rule), quota: u.quota ?? 0, remaining: u.remaining ?? 0, wait: u.retry_after ?? 0 }))
    .map((u) => ({ ...u, rank: u.wait < 0 ? never : u.wait }))
    .sort((a, b) => b.rank - a.rank || a.remaining - b.remaining);
  if (rows.length === 0) return false;
  set('RateLimit-Policy', rows.map((u) => `${u.name};q=${integer(u.quota)}`).join(', '));
  set('RateLimit', rows.map((u) => `${u.name};r=${integer(u.remaining)}${u.wait > 0 ? `;t=${integer(Math.ceil(u.wait))}` : ''}`).join(', '));
  return true;
}

/** Returns a String of RFC 9651, which has only printable ASCII characters. */
function quoted(name: string): string {
  return `"${name.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** Returns an Integer of RFC 9651, which has up to 15 digits. */
function integer(n: number): number {
  return Math.min(n, 999_999_999_999_999);
}
