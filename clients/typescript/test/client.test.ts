// Tries the client against a running service. WEIR_URL is the address of one that
// needs no token and has the namespaces default and shop; WEIR_LOCKED_URL is the
// address of one that needs the token in WEIR_TOKEN.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';

import { Client, Problem, Unreachable } from '../src/index.js';

function env(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is missing; the test in Go sets it`);
  return value;
}

const patience = 60_000; // a crowded machine is not an outage
const weir = new Client(env('WEIR_URL'), { timeout: patience, onOutage: 'throw' });

const servers: Server[] = [];
after(() => servers.forEach((s) => s.close()));

/** Starts a service that answers as it is told, and counts its calls. The status may be a function of the call. */
async function fake(status: number | ((call: string) => number), body: string, headers: Record<string, string> = {}) {
  const seen = { calls: 0, url: '' };
  const server = createServer(async (request, response) => {
    seen.calls++;
    const call = await text(request);
    const code = typeof status === 'number' ? status : status(call);
    if (code !== 0) response.writeHead(code, headers).end(body);
  });
  servers.push(server.unref());
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  seen.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return seen;
}

test('a take is allowed and then denied', async () => {
  const first = await weir.take({ action: 'post', user: 'ts' }, { hits: 5 });
  assert.equal(first.allowed, true);
  assert.deepEqual(first.limits[0]?.remaining, 0);
  const second = await weir.take({ action: 'post', user: 'ts' });
  assert.equal(second.allowed, false);
  assert.equal(second.outcome, 'deny');
  assert.ok(second.retry_after! > 3000 && second.retry_after! <= 3600);
  assert.equal((await weir.check({ action: 'post', user: 'ts' })).allowed, false);
});

test('record and refund', async () => {
  const recorded = await weir.record({ page: '/ts' }, { hits: 3 });
  assert.equal(recorded.limits[0]?.used, 3);
  assert.equal((await weir.refund({ page: '/ts' })).limits[0]?.used, 2);
});

test('holds are settled, renewed and cancelled', async () => {
  const held = await weir.take({ action: 'chat', team: 'ts', tokens: 900 });
  assert.ok(held.receipt);
  assert.equal((await weir.settle(held.receipt, { action: 'chat', team: 'ts', tokens: 640 })).limits[0]?.used, 640);
  const place = await weir.take({ action: 'export', user: 'ts' });
  assert.ok(place.receipt);
  assert.equal((await weir.renew(place.receipt, { action: 'export', user: 'ts' })).limits[0]?.held, true);
  assert.equal((await weir.cancel(place.receipt, { action: 'export', user: 'ts' })).limits[0]?.held, true);
  assert.equal((await weir.cancel(place.receipt, { action: 'export', user: 'ts' })).limits[0]?.held, false);
});

test('a batch has one answer for each request', async () => {
  const answers = await weir.batch([
    { attributes: { action: 'login', account: 'ts' } },
    { attributes: { action: 'login', account: 'ts' }, verb: 'check' },
    { attributes: { action: 'chat', team: 'ts', tokens: 'many' } },
  ]);
  const [first, second, third] = answers;
  assert.ok(first && 'allowed' in first && first.allowed);
  assert.ok(second && 'allowed' in second && second.outcome === 'captcha');
  assert.ok(third && 'problem' in third && third.problem.status === 400);
});

test('usage, forget, and calls by their paths', async () => {
  await weir.record({ page: '/ts-usage' });
  assert.equal((await weir.usage('page-views', { page: '/ts-usage' })).series?.[0]?.hits, 1);
  await weir.forget('page-views', { page: '/ts-usage' });
  assert.equal((await weir.usage('page-views', { page: '/ts-usage' })).used, 0);
  const { data } = await weir.api.GET('/v1/rules');
  assert.equal(data?.rules[0]?.name, 'posts-per-hour');
  const { data: why } = await weir.api.POST('/v1/explain', { body: { attributes: { page: '/x' } } });
  assert.equal(why?.rules.find((r) => r.rule === 'page-views')?.matched, true);
  const { data: top } = await weir.api.GET('/v1/top', { params: { query: { rule: 'posts-per-hour', n: 1 } } });
  assert.equal(top?.rules.length, 1);
});

test('a mistake is a Problem, whatever onOutage says', async () => {
  const lenient = new Client(env('WEIR_URL'), { timeout: patience, onOutage: 'allow' });
  // @ts-expect-error: a list is no attribute
  await assert.rejects(lenient.take({ user: ['ann'] }), (error: Problem) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.status, error.problem.field], [400, 'attributes.user']);
    assert.match(error.message, /want a string, a number or a boolean/);
    return true;
  });
  for (const long of ['x'.repeat(1025), '\u00a0'.repeat(1_500_000)]) {
    const attributes = { action: 'login', account: long };
    await assert.rejects(lenient.take(attributes), (error: Problem) => {
      assert.deepEqual([error.name, error.status, error.problem.field], ['Problem', 400, 'attributes.account']);
      return true;
    });
    const [answer] = await lenient.batch([{ attributes }]);
    assert.ok(answer && 'problem' in answer && answer.problem.field === 'requests[0].attributes.account');
  }
  await assert.rejects(new Client('http://127.0.0.1:1').take({ ['x'.repeat(1 << 20)]: 'long' }), { name: 'Problem', status: 413 });
  await assert.rejects(lenient.usage('nothing'), { name: 'Problem', status: 404 });
  await assert.rejects(lenient.take({ n: 1n as unknown as number }), TypeError);
  assert.throws(() => new Client('localhost:8080'), /want an address such as/);
});

test('namespaces, in the header and in the address', async () => {
  for (const shop of [
    new Client(env('WEIR_URL'), { namespace: 'shop', timeout: patience }),
    new Client(`${env('WEIR_URL')}/ns/shop`, { timeout: patience }),
  ]) {
    const { data } = await shop.api.GET('/v1/rules');
    assert.deepEqual(data?.rules.map((r) => r.name), ['carts']);
  }
  await assert.rejects(new Client(env('WEIR_URL'), { namespace: 'nowhere', timeout: patience }).take({}), { status: 404 });
});

test('a service with tokens', async () => {
  const url = env('WEIR_LOCKED_URL');
  const decision = await new Client(url, { token: env('WEIR_TOKEN'), timeout: patience }).take({ action: 'post', user: 'ts' });
  assert.equal(decision.allowed, true);
  await assert.rejects(new Client(url, { timeout: patience }).take({ action: 'post' }), { status: 401 });
});

test('without an answer, the caller chose', async () => {
  const silent = await fake(0, '');
  const busy = await fake(503, '{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"too much"}', { 'Retry-After': '1' });
  for (const [url, timeout] of [[silent.url, 50], [busy.url, patience], ['http://127.0.0.1:1', patience]] as const) {
    const allowing = await new Client(url, { timeout }).take({ user: 'a' });
    assert.deepEqual([allowing.allowed, allowing.degraded_reason], [true, 'unreachable']);
    const denying = new Client(url, { timeout, onOutage: 'deny' });
    assert.deepEqual([(await denying.check({})).allowed, (await denying.check({})).retry_after], [false, 1]);
    const batch = await denying.batch([{ attributes: {} }, { attributes: {}, verb: 'check' }]);
    assert.deepEqual(batch.map((a) => 'allowed' in a && a.allowed), [false, false]);
    await assert.rejects(denying.batch([{ attributes: {}, verb: 'record' }]), Unreachable);
    await assert.rejects(denying.record({}), Unreachable);
    await assert.rejects(new Client(url, { timeout, onOutage: 'throw' }).take({}), Unreachable);
  }
  await assert.rejects(new Client(silent.url, { timeout: 50, onOutage: 'throw' }).take({}), /no answer within 50 ms/);
});

test('a take is sent once', async () => {
  const silent = await fake(0, '');
  for (const service of [silent, await fake(503, ''), await fake(307, '', { Location: env('WEIR_URL') })]) {
    await new Client(service.url, { timeout: service === silent ? 2000 : patience }).take({ user: 'a' }).catch(() => undefined);
    assert.equal(service.calls, 1);
  }
});

test('with retries, a call whose answer is lost counts once', async () => {
  const keys = new Set<unknown>();
  let calls = 0;
  const lossy = new Client(env('WEIR_URL'), {
    timeout: patience,
    onOutage: 'throw',
    retries: 2,
    fetch: async (request) => {
      keys.add((await request.clone().json()).idempotency_key);
      const response = await fetch(request);
      if (++calls % 3 !== 0) throw new TypeError('the answer is lost');
      return response;
    },
  });
  const first = await lossy.record({ page: '/ts-retries' }, { hits: 2 });
  assert.deepEqual([first.limits[0]?.used, first.replayed, calls, keys.size], [2, true, 3, 1]);
  const held = await lossy.take({ action: 'chat', team: 'ts-retries', tokens: 900 });
  assert.deepEqual([held.replayed, calls, keys.size], [true, 6, 2]);
  const settled = await lossy.settle(held.receipt!, { action: 'chat', team: 'ts-retries', tokens: 640 });
  assert.deepEqual([settled.limits[0]?.used, settled.replayed, keys.size], [640, true, 3]);
  const refunded = await lossy.refund({ page: '/ts-retries' });
  assert.deepEqual([refunded.limits[0]?.used, calls, keys.size], [1, 12, 4]);
  assert.ok(!keys.has(undefined));
});

test('retries end, and are only for what has a key', async () => {
  const busy = await fake(503, '');
  const client = new Client(busy.url, { timeout: patience, retries: 2 });
  assert.equal((await client.take({})).degraded, true);
  assert.equal(busy.calls, 3);
  await client.check({});
  assert.equal(busy.calls, 4);
  const wrong = await fake(400, '{}');
  await assert.rejects(new Client(wrong.url, { timeout: patience, retries: 2 }).take({}), Problem);
  assert.equal(wrong.calls, 1);
  const giveUp = new AbortController();
  const given = client.take({}, { signal: giveUp.signal });
  giveUp.abort();
  await assert.rejects(given, { name: 'AbortError' });
});

test('without room for answers under keys, a take is decided without one', async () => {
  const denial = '{"allowed": false, "outcome": "deny", "limits": []}';
  const full = await fake((call) => (call.includes('idempotency_key') ? 429 : 200), denial);
  const client = new Client(full.url, { timeout: patience, retries: 2 });
  for (const call of [client.take({}), client.record({}), client.refund({}), client.settle('r', {})]) {
    assert.equal((await call).outcome, 'deny');
  }
  assert.equal(full.calls, 8);
  // An attempt that may have counted came first: without a key, the take could count twice.
  const lost = await fake(() => (lost.calls > 1 ? 429 : 503), '{}');
  assert.equal((await new Client(lost.url, { timeout: patience, retries: 2 }).take({})).degraded, true);
  assert.equal(lost.calls, 2);
  for (const retries of [0, 2]) { // too many wrong tokens
    const wrong = await fake(429, '{}');
    await assert.rejects(new Client(wrong.url, { timeout: patience, retries }).take({}), { name: 'Problem', status: 429 });
  }
});

test('onOutage decides about the part of a batch that could not be decided', async () => {
  const problems = [503, 503, 503, 400].map((status) => ({ problem: { status, detail: 'the store does not answer' } }));
  const { url } = await fake(200, JSON.stringify({ answers: problems }));
  const attributes = {};
  for (const [onOutage, want] of [['allow', [true, true, 503, 400]], ['deny', [false, false, 503, 400]], ['throw', [503, 503, 503, 400]]] as const) {
    const client = new Client(url, { timeout: patience, onOutage });
    const answers = await client.batch([{ attributes }, { attributes, verb: 'check' }, { attributes, verb: 'record' }, { attributes }]);
    assert.deepEqual(answers.map((a) => ('problem' in a ? a.problem.status : a.allowed)), want);
  }
});

test('an address that is not that of weir', async () => {
  for (const [status, body] of [[200, '<html>'], [200, '{}'], [200, ''], [404, 'no'], [301, ''], [400, 'null'], [400, '[]'], [400, '7']] as const) {
    await assert.rejects(new Client((await fake(status, body)).url, { timeout: patience }).take({}), Problem);
  }
  assert.equal((await new Client((await fake(503, 'null')).url, { timeout: patience }).take({})).degraded, true);
  const date = await fake(429, '{}', { 'Retry-After': 'Wed, 21 Oct 2026 07:28:00 GMT' });
  await assert.rejects(new Client(date.url, { timeout: patience }).take({}), { status: 429, retryAfter: undefined });
});

test('an answer that is broken is a Problem, and not a decision', async () => {
  const usage = { rule: 'a', key: 'k', used: 1 }; // without reset_after
  for (const [status, body] of [
    [204, ''], [202, '{}'], [200, ''], [200, 'null'], [200, '{"allowed": true, "outc'],
    [200, '{"allowed": "true", "outcome": "allow", "limits": []}'],
    [200, '{"allowed": true, "limits": []}'], [200, '{"allowed": true, "outcome": "allow"}'],
    [200, '{"allowed": true, "outcome": "allow", "limits": null}'], [200, '{"allowed": true, "outcome": "allow", "limits": [1]}'],
    [200, JSON.stringify({ allowed: true, outcome: 'allow', limits: [usage] })],
    ...['"5"', '[5]', '1e400', 'null'].map((wait) => [200, `{"allowed": false, "outcome": "deny", "limits": [], "retry_after": ${wait}}`] as const),
    [200, '{"allowed": true, "outcome": "allow", "limits": [], "receipt": 5}'],
  ] as const) {
    const client = new Client((await fake(status, body)).url, { timeout: patience });
    const calls = [client.take({}), client.check({}), client.record({}), client.refund({}), client.settle('r', {}), client.usage('a')];
    await Promise.all(calls.map((call) => assert.rejects(call, { name: 'Problem', status }, `${status} ${body}`)));
  }
  const decision = { allowed: true, outcome: 'allow', limits: [] };
  const lists = [[decision], [decision, null], [decision, { problem: null }], [decision, { allowed: true }]];
  for (const body of ['', 'null', '{}', '{"answers": "ab"}', ...lists.map((answers) => JSON.stringify({ answers }))]) {
    const client = new Client((await fake(200, body)).url, { timeout: patience });
    await assert.rejects(client.batch([{ attributes: {} }, { attributes: {} }]), { name: 'Problem', status: 200 }, body);
  }
});

test('a signal gives a call up', async () => {
  const silent = await fake(0, '');
  await assert.rejects(new Client(silent.url, { timeout: patience }).take({}, { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
});
