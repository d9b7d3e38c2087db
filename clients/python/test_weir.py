"""Tries the client against a running service.

WEIR_URL is the address of one that needs no token and has the namespaces default and
shop; WEIR_LOCKED_URL is the address of one that needs the token in WEIR_TOKEN.
"""

import contextlib
import http.server
import json
import os
import socket
import threading
import time
import unittest
from datetime import datetime, timezone

import weir

PATIENCE = 60.0  # a crowded machine is not an outage
URL = os.environ["WEIR_URL"]
LOCKED, TOKEN = os.environ["WEIR_LOCKED_URL"], os.environ["WEIR_TOKEN"]


class Fake:
    """A service that answers as it is told, and counts its calls. Status 0 answers nothing.

    The status may be a function of the call, from its JSON.
    """

    def __init__(self, test, status, body=b"", **headers):
        self.calls = 0
        fake, end = self, threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                fake.calls += 1
                call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                code = status(call) if callable(status) else status
                if code == 0:
                    end.wait(PATIENCE)
                    return
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"

        def stop():
            end.set()
            server.shutdown()
            thread.join()
            server.server_close()

        test.addCleanup(stop)


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.client = weir.Client(URL, timeout=PATIENCE, on_outage="raise")
        self.addCleanup(self.client.close)

    def open(self, url, **options):
        client = weir.Client(url, **{"timeout": PATIENCE, **options})
        self.addCleanup(client.close)
        return client

    def test_take_and_check(self):
        first = self.client.take({"action": "post", "user": "python"}, hits=5)
        self.assertTrue(first.allowed)
        self.assertEqual(first.limits[0].remaining, 0)
        second = self.client.take({"action": "post", "user": "python"})
        self.assertEqual((second.allowed, second.outcome, second.rule), (False, "deny", "posts-per-hour"))
        self.assertTrue(3000 < second.retry_after <= 3600)
        self.assertFalse(self.client.check({"action": "post", "user": "python"}).allowed)

    def test_record_and_refund(self):
        recorded = self.client.record({"page": "/python"}, hits=3)
        self.assertEqual((recorded.limits[0].used, recorded.limits[0].kind, recorded.limits[0].quota), (3, "counter", None))
        self.assertEqual(self.client.refund({"page": "/python"}).limits[0].used, 2)

    def test_holds(self):
        held = self.client.take({"action": "chat", "team": "python", "tokens": 900})
        settled = self.client.settle(held.receipt, {"action": "chat", "team": "python", "tokens": 640})
        self.assertEqual((settled.limits[0].used, settled.limits[0].held), (640, True))
        place = self.client.take({"action": "export", "user": "python"})
        self.assertTrue(self.client.renew(place.receipt, {"action": "export", "user": "python"}).limits[0].held)
        self.assertTrue(self.client.cancel(place.receipt, {"action": "export", "user": "python"}).limits[0].held)
        self.assertFalse(self.client.cancel(place.receipt, {"action": "export", "user": "python"}).limits[0].held)

    def test_batch(self):
        first, second, third = self.client.batch([
            weir.Request({"action": "login", "account": "python"}),
            weir.Request({"action": "login", "account": "python"}, verb="check"),
            weir.Request({"action": "chat", "team": "python", "tokens": "many"}),
        ])
        self.assertTrue(first.allowed)
        self.assertEqual(second.outcome, "captcha")
        self.assertEqual((type(third), third.status, third.field), (weir.Problem, 400, "requests[2].attributes.tokens"))

    def test_look(self):
        self.client.record({"page": "/python-usage"})
        usage = self.client.usage("page-views", {"page": "/python-usage"})
        self.assertEqual((usage.used, usage.series[0].hits, usage.series[0].seconds), (1, 1, 3600))
        self.assertEqual(usage.series[0].start.tzinfo, timezone.utc)
        self.client.forget("page-views", {"page": "/python-usage"})
        self.assertEqual(self.client.usage("page-views", {"page": "/python-usage"}).used, 0)
        for page in 42.0, 0.5, 1e16, 1e-7, -0.0, 10**30, True:
            self.client.record({"page": page})
            self.assertEqual(self.client.usage("page-views", {"page": page}).used, 1)
        self.assertEqual(self.client.rules()["rules"][0]["name"], "posts-per-hour")
        self.assertEqual(self.client.explain({"page": "/x"})["decision"]["outcome"], "allow")
        self.client.take({"action": "post", "user": "python-denied"}, hits=6)
        self.assertEqual(self.client.denials("posts-per-hour", n=1)[0]["key"], "python-denied")
        found = self.client.denials("posts-per-hour", attributes={"user": "python-denied"}, since="1h")
        self.assertEqual({d["key"] for d in found}, {"python-denied"})
        self.assertEqual(self.client.denials("posts-per-hour", attributes={"user": "nobody"}), [])
        self.assertEqual(len(self.client.top("posts-per-hour", n=1)["rules"]), 1)

    def test_mistakes(self):
        lenient = self.open(URL, on_outage="allow")
        with self.assertRaises(weir.Problem) as caught:
            lenient.take({"user": ["ann"]})
        self.assertEqual((caught.exception.status, caught.exception.field), (400, "attributes.user"))
        self.assertIn("want a string, a number or a boolean", str(caught.exception))
        for long in "x" * 1025, "\u00a0" * 1_500_000, "x" * 8_000_000:  # not an outage, whoever has sent it
            with self.assertRaises(weir.Problem) as caught:
                lenient.take({"action": "login", "account": long})
            self.assertEqual((caught.exception.status, caught.exception.field), (400, "attributes.account"))
            (answer,) = lenient.batch([weir.Request({"action": "login", "account": long})])
            self.assertEqual((answer.status, answer.field), (400, "requests[0].attributes.account"))
        with self.assertRaises(weir.Problem) as caught:
            lenient.take({"x" * 8_000_000: "long"})
        self.assertEqual(caught.exception.status, 413)
        with self.assertRaises(weir.Problem) as caught:
            lenient.usage("nothing")
        self.assertEqual(caught.exception.status, 404)
        for wrong in ({"x": float("nan")}, {"x": object()}):
            with self.assertRaises((ValueError, TypeError)):
                lenient.take(wrong)
        for url in ("localhost:8080", "http://", "ftp://localhost", "http://localhost?x=1"):
            with self.assertRaisesRegex(ValueError, "want an address such as"):
                weir.Client(url)
        with self.assertRaisesRegex(ValueError, "want allow, deny or raise"):
            weir.Client(URL, on_outage="throw")
        self.assertTrue(lenient.check({"action": "post", "user": "after"}).allowed)

    def test_namespaces(self):
        for client in (self.open(URL, namespace="shop"), self.open(URL + "/ns/shop/")):
            self.assertEqual([r["name"] for r in client.rules()["rules"]], ["carts"])
        with self.assertRaises(weir.Problem) as caught:
            self.open(URL, namespace="nowhere").take({})
        self.assertEqual(caught.exception.status, 404)

    def test_tokens(self):
        self.assertTrue(self.open(LOCKED, token=TOKEN).take({"action": "post", "user": "python"}).allowed)
        with self.assertRaises(weir.Problem) as caught:
            self.open(LOCKED).take({"action": "post"})
        self.assertEqual(caught.exception.status, 401)

    def test_without_an_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            closed = f"http://127.0.0.1:{free.getsockname()[1]}"
        busy = Fake(self, 503, b'{"status": 503, "detail": "too much"}', Retry_After="1")
        for url, timeout in ((Fake(self, 0).url, 0.05), (busy.url, PATIENCE), (closed, PATIENCE)):
            allowing = self.open(url, timeout=timeout).take({})
            self.assertEqual((allowing.allowed, allowing.degraded, allowing.degraded_reason), (True, True, "unreachable"))
            denying = self.open(url, timeout=timeout, on_outage="deny")
            denied = denying.check({})
            self.assertEqual((denied.allowed, denied.outcome, denied.retry_after), (False, "deny", 1.0))
            self.assertEqual([d.allowed for d in denying.batch([weir.Request({}), weir.Request({}, verb="check")])], [False, False])
            for call in (lambda: denying.record({}), lambda: denying.batch([weir.Request({}, verb="record")])):
                with self.assertRaises(weir.Unreachable):
                    call()
            with self.assertRaises(weir.Unreachable):
                self.open(url, timeout=timeout, on_outage="raise").take({})

    def test_slow_answer(self):
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\n" + b'{"allowed": true, "outcome": "allow"}'.ljust(80)
        with socket.create_server(("127.0.0.1", 0)) as server:

            def trickle():
                with contextlib.suppress(OSError), server.accept()[0] as sock:
                    for i in range(len(answer)):
                        sock.sendall(answer[i : i + 1])
                        time.sleep(0.01)

            thread = threading.Thread(target=trickle)
            thread.start()
            decision = self.open(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.2).take({})
            thread.join()
        self.assertTrue(decision.degraded)

    def test_answers_without_an_end(self):
        body = b'{"allowed": true, "outcome": "allow", "limits": []}'
        whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        head = b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" + body
        broken = [whole[:n] for n in range(len(whole))]  # the connection ends
        broken += [head % b"Content-Length: %d" % 10**n for n in (3, 10, 13, 19, 30)]
        broken += [head % b"Transfer-Encoding: chunked\r\n\r\n%s" % size for size in (b"-5", b"7fffffffff", b"f" * 20, b"zz", b"")]
        broken += [head % b"X: y", b"HTTP/1.1 103 Early Hints\r\n\r\n" + whole]
        with socket.create_server(("127.0.0.1", 0)) as server:

            def answer():
                for part in broken + [whole]:
                    with contextlib.suppress(OSError), server.accept()[0] as sock:
                        sock.recv(65536)
                        sock.sendall(part)

            thread = threading.Thread(target=answer)
            thread.start()
            client = self.open(f"http://127.0.0.1:{server.getsockname()[1]}")
            for part in broken:
                with self.subTest(answer=part):
                    self.assertTrue(client.take({}).degraded)
            self.assertFalse(client.take({}).degraded)
            thread.join()

    def test_sent_once(self):
        for fake, timeout in ((Fake(self, 0), 2), (Fake(self, 503), PATIENCE), (Fake(self, 307, Location=URL), PATIENCE)):
            try:
                self.open(fake.url, timeout=timeout).take({})
            except weir.Problem as problem:
                self.assertEqual(problem.status, 307)
            self.assertEqual(fake.calls, 1)

    def test_retries(self):
        fake = Fake(self, 503)
        self.assertTrue(self.open(fake.url, timeout=PATIENCE, retries=2).take({}).degraded)
        self.assertEqual(fake.calls, 3)
        self.open(fake.url, timeout=PATIENCE, retries=2).check({})
        self.assertEqual(fake.calls, 4)
        self.assertFalse(self.open(URL, retries=1).take({"action": "retried"}).replayed)

    def test_no_room_for_answers_under_keys(self):
        denial = b'{"allowed": false, "outcome": "deny", "limits": []}'
        full = Fake(self, lambda call: 429 if "idempotency_key" in call else 200, denial)
        client = self.open(full.url, retries=2)
        for call in (client.take, client.record, client.refund, lambda a: client.settle("r", a)):
            full.calls = 0
            self.assertEqual((call({}).outcome, full.calls), ("deny", 2))
        # An attempt that may have counted came first: without a key, the take could count twice.
        lost = Fake(self, lambda call: 429 if lost.calls > 1 else 503)
        self.assertTrue(self.open(lost.url, retries=2).take({}).degraded)
        self.assertEqual(lost.calls, 2)
        lost.calls = 0
        with self.assertRaises(weir.Unreachable):
            self.open(lost.url, retries=2, on_outage="raise").take({})
        for retries in 0, 2:  # too many wrong tokens
            with self.assertRaises(weir.Problem) as caught:
                self.open(Fake(self, 429).url, retries=retries).take({})
            self.assertEqual(caught.exception.status, 429)

    def test_part_of_a_batch(self):
        problem = '{"problem": {"status": %d, "detail": "the store does not answer"}}'
        body = '{"answers": [%s]}' % ", ".join(problem % status for status in (503, 503, 503, 400))
        url = Fake(self, 200, body.encode()).url
        requests = [weir.Request({}), weir.Request({}, verb="check"), weir.Request({}, verb="record"), weir.Request({})]
        for on_outage, want in ("allow", [True, True, 503, 400]), ("deny", [False, False, 503, 400]), ("raise", [503, 503, 503, 400]):
            answers = self.open(url, on_outage=on_outage).batch(requests)
            self.assertEqual([a.status if isinstance(a, weir.Problem) else a.allowed for a in answers], want)

    def test_not_weir(self):
        for status, body in ((200, b"<html>"), (200, b"{}"), (200, b"[]"), (200, b""), (404, b"no"), (200, b"[" * 100_000), (400, b"[" * 100_000)):
            with self.assertRaises(weir.Problem):
                self.open(Fake(self, status, body).url).take({})

    def test_broken_answers(self):
        # The call may have counted, and is no outage: it is a Problem whose status says that it was accepted.
        numbers = b'{"rule": "a", "key": "k", "used": 1, "reset_after": 1'
        waits = b'"5"', b"[5]", b"Infinity", b"NaN", b"1e400", b"1" * 400, b"null"
        for status, body in (
            (204, b""), (202, b"{}"), (200, b'{"allowed": true, "outc'), (200, b'{"allowed": "true", "outcome": "allow", "limits": []}'),
            (200, b'{"allowed": true, "limits": []}'), (200, b'{"allowed": true, "outcome": "allow"}'),
            (200, b'{"allowed": true, "outcome": "allow", "limits": null}'), (200, b'{"allowed": true, "outcome": "allow", "limits": [1]}'),
            (200, b'{"allowed": true, "outcome": "allow", "limits": [{"rule": "a"}]}'),
            (200, b'{"allowed": true, "outcome": "allow", "limits": [' + numbers + b', "banned_until": "x"}]}'),
            *((200, b'{"allowed": false, "outcome": "deny", "limits": [], "retry_after": ' + wait + b"}") for wait in waits),
            (200, b'{"allowed": true, "outcome": "allow", "limits": [], "receipt": 5}'),
        ):
            client = self.open(Fake(self, status, body).url)
            for call in (client.take, client.check, client.record, client.refund, lambda a: client.settle("r", a)):
                with self.subTest(status=status, body=body), self.assertRaises(weir.Problem) as caught:
                    call({})
                self.assertEqual(caught.exception.status, status)

    def test_broken_batches(self):
        decision = b'{"allowed": true, "outcome": "allow", "limits": []}'
        for answers in (
            b'"answers": [' + decision + b"]", b'"answers": [' + decision + b', {"problem": null}]', b'"answers": [' + decision + b", 1]",
            b'"answers": [' + decision + b', {"allowed": true}]', b'"answers": null', b"",
        ):
            with self.subTest(answers=answers), self.assertRaises(weir.Problem) as caught:
                self.open(Fake(self, 200, b"{" + answers + b"}").url).batch([weir.Request({}), weir.Request({})])
            self.assertEqual(caught.exception.status, 200)

    def test_waits(self):
        for wait, want in (("7", 7.0), ("\u00b2", None), ("9" * 400, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)):
            with self.assertRaises(weir.Problem) as caught:
                self.open(Fake(self, 429, b"{}", Retry_After=wait).url).take({})
            self.assertEqual(caught.exception.retry_after, want)

    def test_connection(self):
        # One connection serves many calls, and a connection that was closed is replaced.
        self.client.check({})
        first = self.client._local.connection.sock
        self.client.check({})
        self.assertIs(self.client._local.connection.sock, first)
        first.shutdown(socket.SHUT_RDWR)
        self.assertTrue(self.client.check({}).allowed)
        self.assertIsNot(self.client._local.connection.sock, first)
        with self.client as same:
            self.assertIs(same, self.client)
        self.assertTrue(self.client.check({}).allowed)

        def record():
            with self.client as client:
                client.record({"page": "/threads"})

        threads = [threading.Thread(target=record) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.usage("page-views", {"page": "/threads"}).used, 8)

    def test_moments(self):
        for text, micros in (("2026-03-02T12:00:00Z", 0), ("2026-03-02T12:00:00.5Z", 500000), ("2026-03-02T12:00:00.123456Z", 123456)):
            self.assertEqual(weir._moment(text), datetime(2026, 3, 2, 12, 0, 0, micros, timezone.utc))


if __name__ == "__main__":
    unittest.main()
