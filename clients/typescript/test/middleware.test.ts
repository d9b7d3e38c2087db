// Tries the middleware in Express and in Fastify, against the running service at WEIR_URL.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';

import express, { type NextFunction, type Request, type Response } from 'express';
import fastify, { type FastifyRequest } from 'fastify';

import { Client, type Attributes } from '../src/index.js';
import { limitExpress, limitFastify } from '../src/middleware.js';

const url = process.env['WEIR_URL'];
assert.ok(url, 'WEIR_URL is missing; the test in Go sets it');
const weir = new Client(url, { timeout: 60_000, onOutage: 'throw' });

/** Returns the attributes that a caller states as a query, or undefined. The caller leaves out the value of an attribute with -. */
function stated(query: string): Record<string, string> | undefined {
  const all = Object.fromEntries([...new URLSearchParams(query)].map(([name, value]) => [name, value === '-' ? undefined : value]));
  return Object.keys(all).length === 0 ? undefined : (all as Record<string, string>);
}

/** An application: it answers hello at /, and at /wait when its caller lets it. */
type Start = (t: TestContext, client?: Client) => Promise<{ address: string; waiting: Promise<unknown>; answer: () => void }>;

async function listen(server: Server): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns two promises, and what fulfils them. */
function signals() {
  let answer = () => {};
  let arrive = () => {};
  const answered = new Promise<void>((end) => (answer = end));
  const waiting = new Promise<void>((end) => (arrive = end));
  return { answer, arrive, answered, waiting };
}

const starts: Record<string, Start> = {
  async Express(t, client = weir) {
    const s = signals();
    const app = express();
    app.use(limitExpress(client, (request: Request) => stated(request.url.split('?')[1] ?? '')));
    app.get('/', (_request, response) => void response.send('hello'));
    app.get('/wait', async (_request, response) => {
      s.arrive();
      await s.answered;
      response.send('hello');
    });
    app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => void response.status(500).send(String(error.cause)));
    const server = createServer(app);
    t.after(() => server.close());
    return { address: await listen(server), ...s };
  },
  async Fastify(t, client = weir) {
    const s = signals();
    const app = fastify({ forceCloseConnections: true }); // fetch keeps some open
    app.addHook('onRequest', limitFastify(client, (request: FastifyRequest) => stated(request.url.split('?')[1] ?? '')));
    app.get('/', async () => 'hello');
    app.get('/wait', async () => {
      s.arrive();
      await s.answered;
      return 'hello';
    });
    app.setErrorHandler(async (error: Error, _request, reply) => reply.code(500).send(String(error.cause)));
    t.after(() => app.close());
    await app.listen({ host: '127.0.0.1', port: 0 });
    return { address: await listen(app.server), ...s };
  },
};

for (const [name, start] of Object.entries(starts)) {
  test(`${name}: allowed, denied and not limited`, async (t) => {
    const { address } = await start(t);
    const user = `middleware-${name}`;
    for (let left = 4; left >= 0; left--) {
      const response = await fetch(`${address}/?action=post&user=${user}`);
      assert.equal(response.status, 200);
      assert.equal(await response.text(), 'hello');
      assert.equal(response.headers.get('RateLimit'), `"posts-per-hour";r=${left}`);
      assert.equal(response.headers.get('RateLimit-Policy'), '"posts-per-hour";q=5');
    }
    const denied = await fetch(`${address}/?action=post&user=${user}`);
    assert.equal(denied.status, 429);
    assert.equal(await denied.text(), 'Too Many Requests\n');
    const wait = Number(denied.headers.get('Retry-After'));
    assert.ok(wait > 3000 && wait <= 3600, `got Retry-After ${wait}`);
    assert.equal(denied.headers.get('RateLimit'), `"posts-per-hour";r=0;t=${wait}`);
    const free = await fetch(`${address}/`);
    assert.equal(free.status, 200);
    assert.equal(free.headers.get('RateLimit'), null);
  });

  test(`${name}: a place is free again when the answer has ended or the caller is gone`, async (t) => {
    const user = `middleware-${name}`;
    /** Waits until the place of the user is free. The test's time-out ends it. */
    const free = async () => {
      while (!(await weir.check({ action: 'export', user })).allowed);
    };
    const first = await start(t);
    const answer = fetch(`${first.address}/wait?action=export&user=${user}`);
    await first.waiting;
    assert.equal((await fetch(`${first.address}/?action=export&user=${user}`)).status, 429);
    first.answer();
    assert.equal(await (await answer).text(), 'hello');
    await free();
    const second = await start(t);
    const leave = new AbortController();
    const gone = fetch(`${second.address}/wait?action=export&user=${user}`, { signal: leave.signal });
    await second.waiting;
    leave.abort();
    await assert.rejects(gone);
    await free();
    second.answer();
  });

  test(`${name}: what a take holds is settled if the caller leaves while the answer waits behind another`, async (t) => {
    const settled = new Promise<string>((settle) => {
      const client = {
        take: async () => {
          caller.destroy();
          return { allowed: true, outcome: 'allow', limits: [], receipt: 'the receipt' };
        },
        settle: async (receipt: string) => settle(receipt),
      } as unknown as Client;
      let caller: Socket;
      void start(t, client).then(({ address }) => {
        caller = connect(Number(new URL(address).port), '127.0.0.1');
        caller.write(['/wait', '/wait?action=export'].map((path) => `GET ${path} HTTP/1.1\r\nHost: weir\r\n\r\n`).join(''));
      });
    });
    assert.equal(await settled, 'the receipt'); // the test's time-out ends it
  });

  test(`${name}: a request without the value of an attribute, or with a bad one, does not pass`, async (t) => {
    const { address } = await start(t);
    for (const user of ['', '-', 'x'.repeat(2000)]) {
      const response = await fetch(`${address}/?action=post&user=${user}`);
      assert.equal(response.status, 400);
      assert.equal(await response.text(), 'Bad Request\n');
    }
  });

  test(`${name}: a wrong call is an error of the application`, async (t) => {
    const { address } = await start(t, new Client(url, { timeout: 60_000, namespace: 'nobody' }));
    const response = await fetch(`${address}/?action=post&user=x`);
    assert.equal(response.status, 500);
    assert.match(await response.text(), /nobody/);
  });

  for (const [onOutage, status] of [['allow', 200], ['deny', 503], ['throw', 503]] as const) {
    test(`${name}: without the service, ${onOutage}`, async (t) => {
      const server = createServer();
      const dead = await listen(server);
      server.close();
      const { address } = await start(t, new Client(dead, { onOutage }));
      const response = await fetch(`${address}/?action=post&user=x`);
      assert.equal(response.status, status);
      assert.equal(response.headers.get('Retry-After'), onOutage === 'deny' ? '1' : null);
    });
  }
}

test('a denial that is counted in memory, because the store is unavailable, is 429', async () => {
  const usage = { rule: 'posts', key: '7', used: 1, quota: 1, remaining: 0, reset_after: 60, retry_after: 60 };
  for (const [limits, status] of [[[usage], 429], [[{ ...usage, shadow: true }], 503]] as const) {
    const client = { take: async () => ({ allowed: false, outcome: 'deny', limits, degraded: true }) } as unknown as Client;
    let got = 0;
    const reply = { raw: {} as ServerResponse, code: (code: number) => (got = code), header: () => {}, send: () => {} };
    await limitFastify(client, () => ({ user: '7' }))(undefined, reply);
    assert.equal(got, status);
  }
});

test('what a take holds is settled if the caller has left before the middleware or while it asks for the attributes', async (t) => {
  const reply = { code: () => {}, header: () => {}, send: () => {} };
  for (const before of [true, false]) {
    for (const limited of [
      (client: Client, attributes: () => Promise<Attributes>) => (request: IncomingMessage, response: ServerResponse) =>
        limitExpress(client, attributes)(request, response, () => {}),
      (client: Client, attributes: () => Promise<Attributes>) => (request: IncomingMessage, response: ServerResponse) =>
        limitFastify(client, attributes)(request, { ...reply, raw: response }),
    ]) {
      const leave = new AbortController();
      const settled = new Promise((settle) => {
        const client = {
          take: async () => ({ allowed: true, outcome: 'allow', limits: [], receipt: 'the receipt' }),
          settle: async (receipt: string) => settle(receipt),
        } as unknown as Client;
        const server = createServer(async (request, response) => {
          const left = once(response, 'close');
          leave.abort();
          if (before) await left;
          await limited(client, () => left.then(() => ({})))(request, response);
        });
        t.after(() => server.close());
        void listen(server).then((address) => assert.rejects(fetch(address, { signal: leave.signal })));
      });
      assert.equal(await settled, 'the receipt'); // the test's time-out ends it
    }
  }
});
