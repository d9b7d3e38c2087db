"""Tries the middleware against the running service at WEIR_URL."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import unittest
from unittest import mock
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

    def test_head(self):
        status, bodies = "200 OK", []
        while status == "200 OK":
            bodies.append(self.ask(user="wsgi-head", REQUEST_METHOD="HEAD"))
            status = self.started[-1][0]
        self.assertEqual(list(bodies[-1]), [])  # a server would send it as the beginning of the next answer
        for body in bodies[:-1]:
            body.close()

    def test_bad_attribute(self):
        for user in "", None, "x" * 2000:
            self.assertEqual(list(self.ask(user=user)), [b"400 Bad Request\n"])
            self.assertEqual(self.started[-1][0], "400 Bad Request")

    def test_wrong_call(self):
        with weir.Client(URL, namespace="nobody") as client, self.assertRaises(weir.Problem):
            self.ask(client=client, user="wsgi")

    def test_store_unavailable(self):
        class Degraded(weir.Client):
            def take(self, attributes):
                return weir.Decision(False, "deny", retry_after=1.0, limits=limits, degraded=True)

        shadow = weir.Usage("new", "7", 1, 60.0, shadow=True)
        counted = weir.Usage("posts", "7", 1, 60.0)
        for limits, status in ([shadow], "503 Service Unavailable"), ([shadow, counted], "429 Too Many Requests"):
            self.ask(client=Degraded(URL), user="wsgi")
            self.assertEqual(self.started[-1][0], status)


class ASGITest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = weir.Client(URL, timeout=60.0)
        self.middleware = self.limit(self.client)
        self.end = asyncio.Event()

    def limit(self, client):
        middleware = weir_middleware.ASGI(self.app, client, export, threads=1)
        middleware.start()
        for threads in middleware.takes, middleware.settles:
            self.addCleanup(threads.shutdown)
            self.addCleanup(threads.submit, client.close)
        return middleware

    async def app(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.end.wait()

    async def ask(self, middleware=None, **scope):
        """Returns the first message of the answer, and the task that gives it."""
        sent = asyncio.Queue()

        async def receive():
            return {"type": "websocket.connect"}

        task = asyncio.ensure_future((middleware or self.middleware)(scope, receive, sent.put))
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

    async def test_background_task(self):
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"hello", "more_body": True})
            await send({"type": "http.response.body"})
            await self.end.wait()

        settled, loop = asyncio.Queue(), asyncio.get_running_loop()

        class Holding(weir.Client):
            def take(self, attributes):
                return weir.Decision(True, "allow", receipt="r")

            def settle(self, receipt, attributes):
                loop.call_soon_threadsafe(settled.put_nowait, receipt)

        middleware = self.limit(Holding(URL))
        middleware.app = app
        _, task = await self.ask(middleware, type="http", user="asgi")
        self.assertEqual(await asyncio.wait_for(settled.get(), 60), "r")  # the answer has ended
        self.end.set()
        await task
        self.assertTrue(settled.empty())

    async def test_missing_attribute(self):
        message, task = await self.ask(type="http", user="")
        self.assertEqual(message["status"], 400)
        await task

    async def test_no_free_thread(self):
        answer = threading.Event()

        class Allowing(weir.Client):
            def take(self, attributes):
                return weir.Decision(True, "allow")

        middleware = self.limit(Allowing(URL, timeout=0.0, on_outage="deny"))
        middleware.takes.submit(answer.wait)
        asked = asyncio.ensure_future(self.ask(middleware, type="http", user="asgi"))
        await asyncio.sleep(0)  # until it waits for the thread
        answer.set()
        message, task = await asked
        self.assertEqual(message["status"], 503)
        await task

    async def test_settles_are_slow(self):
        answer = threading.Event()

        class Slow(weir.Client):
            def take(self, attributes):
                return weir.Decision(True, "allow", receipt="r")

            def settle(self, receipt, attributes):
                answer.wait()

        self.end.set()
        middleware = self.limit(Slow(URL, timeout=60.0))
        self.addCleanup(answer.set)
        tasks = []
        for _ in range(3):  # and none waits for a settle
            message, task = await asyncio.wait_for(self.ask(middleware, type="http", user="asgi"), 60)
            self.assertEqual(message["status"], 200)
            tasks.append(task)
        answer.set()
        await asyncio.gather(*tasks)

    def test_event_loops_in_threads(self):
        begun, end = threading.Event(), threading.Event()
        self.addCleanup(end.set)

        def pool(*_):
            if not begun.is_set():
                begun.set()
                end.wait()
            return mock.DEFAULT

        middleware = weir_middleware.ASGI(self.app, None, export)
        with mock.patch("concurrent.futures.ThreadPoolExecutor", side_effect=pool):
            first = threading.Thread(target=middleware.start)
            first.start()
            begun.wait()
            middleware.start()
            self.assertIsNotNone(middleware.takes)
            end.set()
            first.join()

    def test_fork(self):
        # The event loop of a test cannot be forked.
        program = """if True:
            import asyncio, os, signal, weir, weir_middleware

            class Allowing(weir.Client):
                def take(self, attributes):
                    return weir.Decision(True, "allow")

            async def app(scope, receive, send):
                pass

            middleware = weir_middleware.ASGI(app, Allowing("http://localhost"), lambda scope: {})
            ask = lambda: asyncio.run(middleware({"type": "http"}, None, None))
            ask()
            while not middleware.takes._idle_semaphore._value:
                pass  # until its thread waits for work
            child = os.fork()
            if child == 0:
                signal.alarm(30)  # ends it
                ask()
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            """
        self.assertEqual(subprocess.run([sys.executable, "-B", "-c", program]).returncode, 0)

    async def test_gone_during_the_take(self):
        answer, loop, settled = threading.Event(), asyncio.get_running_loop(), asyncio.Queue()

        class Slow(weir.Client):
            def take(self, attributes):
                answer.wait()
                return weir.Decision(True, "allow", receipt="r")

            def settle(self, receipt, attributes):
                loop.call_soon_threadsafe(settled.put_nowait, receipt)

        middleware = self.limit(Slow(URL, timeout=60.0))
        task = asyncio.ensure_future(middleware({"type": "http", "user": "asgi"}, None, None))
        await asyncio.sleep(0)  # until the task waits for the thread
        for _ in range(3):  # anyio cancels a task until it ends
            task.cancel()
            await asyncio.sleep(0)
        with self.assertRaises(asyncio.CancelledError):
            await task
        answer.set()
        self.assertEqual(await asyncio.wait_for(settled.get(), 60), "r")

    async def test_not_limited(self):
        self.end.set()
        for scope in {"type": "lifespan", "user": "asgi"}, {"type": "http"}:
            message, task = await self.ask(**scope)
            self.assertEqual(message["status"], 200)
            await task


if __name__ == "__main__":
    unittest.main()
