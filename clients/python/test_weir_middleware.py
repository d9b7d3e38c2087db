"""Tries the middleware against the running service at WEIR_URL."""

import asyncio
import concurrent.futures
import os
import socket
import threading
import unittest
from wsgiref.util import setup_testing_defaults

import weir
import weir_middleware

URL = os.environ["WEIR_URL"]


def export(scope):
    return {"action": "export", "user": scope["user"]} if "user" in scope else None


def dead():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


class WSGITest(unittest.TestCase):
    def setUp(self):
        self.client = weir.Client(URL, timeout=60.0)
        self.addCleanup(self.client.close)
        self.started = []

    def app(self, environ, start_response):
        start_response("200 OK", [])
        return [b"hello"]

    def ask(self, client=None, app=None, **environ):
        setup_testing_defaults(environ)
        middleware = weir_middleware.WSGI(app or self.app, client or self.client, export)
        return middleware(environ, lambda status, header: self.started.append((status, dict(header))))

    def test_place(self):
        bodies = []
        while not self.started or self.started[-1][0] == "200 OK":
            bodies.append(self.ask(user="wsgi"))
        status, header = self.started[-1]
        self.assertEqual(status, "429 Too Many Requests")
        self.assertGreaterEqual(int(header["Retry-After"]), 1)
        self.assertEqual(b"".join(bodies[0]), b"hello")
        bodies[0].close()
        self.ask(user="wsgi")
        self.assertEqual(self.started[-1][0], "200 OK")  # the answer has ended
        for body in bodies[1:-1]:
            body.close()

    def test_fault_of_the_application(self):
        def fails(environ, start_response):
            raise KeyError("app")

        for _ in range(20):
            with self.assertRaises(KeyError):
                self.ask(app=fails, user="wsgi-fault")

    def test_not_limited(self):
        self.assertEqual(self.ask(), [b"hello"])

    def test_unreachable(self):
        for on_outage, status in ("allow", "200 OK"), ("deny", "503 Service Unavailable"), ("raise", "503 Service Unavailable"):
            with weir.Client(dead(), on_outage=on_outage) as client:
                self.ask(client=client, user="wsgi")
            self.assertEqual(self.started[-1][0], status)


class ASGITest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = weir.Client(URL, timeout=60.0)
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
        self.addAsyncCleanup(asyncio.to_thread, self.client.close)
        self.end = asyncio.Event()

    async def app(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.end.wait()

    async def ask(self, **scope):
        """Returns the first message of the answer, and the task that gives it."""
        sent = asyncio.Queue()

        async def receive():
            return {"type": "websocket.connect"}

        task = asyncio.ensure_future(weir_middleware.ASGI(self.app, self.client, export)(scope, receive, sent.put))
        return await sent.get(), task

    async def test_place(self):
        tasks, status = [], 200
        while status == 200:
            message, task = await self.ask(type="http", user="asgi")
            status = message["status"]
            tasks.append(task)
        self.assertEqual(status, 429)
        self.assertIn(b"retry-after", dict(message["headers"]))
        message, task = await self.ask(type="websocket", user="asgi")
        self.assertEqual(message, {"type": "websocket.close", "code": 1013})
        await task
        tasks[0].cancel()  # the client has gone away
        await asyncio.wait(tasks[:1])
        self.end.set()
        await asyncio.gather(*tasks[1:])
        message, task = await self.ask(type="http", user="asgi")
        self.assertEqual(message["status"], 200)
        await task

    async def test_gone_during_the_take(self):
        answer, settled = threading.Event(), []

        class Slow:
            def take(self, attributes):
                answer.wait()
                return weir.Decision(True, "allow", receipt="r")

            def settle(self, receipt, attributes):
                settled.append(receipt)

        middleware = weir_middleware.ASGI(self.app, Slow(), export)
        task = asyncio.ensure_future(middleware({"type": "http", "user": "asgi"}, None, None))
        await asyncio.sleep(0)  # until the task waits for the thread
        task.cancel()
        asyncio.get_running_loop().call_soon(answer.set)
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(settled, ["r"])

    async def test_not_limited(self):
        self.end.set()
        for scope in {"type": "lifespan", "user": "asgi"}, {"type": "http"}:
            message, task = await self.ask(**scope)
            self.assertEqual(message["status"], 200)
            await task


if __name__ == "__main__":
    unittest.main()
