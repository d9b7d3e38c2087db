"""Middleware for WSGI (Flask, Django) and ASGI (Starlette, FastAPI) that asks a weir service.

    import weir, weir_middleware

    def attributes(environ):  # None: the request is not limited
        return {"action": "api", "ip": environ["REMOTE_ADDR"]}

    app.wsgi_app = weir_middleware.WSGI(app.wsgi_app, weir.Client("http://localhost:8080"), attributes)

A denied request gets the status 429, or 503 if the service did not count it, with Retry-After. A
request with an attribute that is empty or None gets 400, because rules take it as missing and may not
match: leave out what requests may lack. So does one with a value that weir refuses, such as a long one.
What a request holds, such as a place in flight, is settled when its answer has ended; it is not renewed,
so that hold in the rules must be longer than a request takes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import os
import time
from typing import Any, Callable, List, Mapping, Optional, Tuple

import weir

__all__ = ["ASGI", "WSGI"]

_STATUSES = {400: "400 Bad Request", 429: "429 Too Many Requests", 503: "503 Service Unavailable"}


def _ask(
    client: weir.Client, attributes: weir.Attributes, since: float
) -> Tuple[Optional[weir.Decision], int, List[Tuple[str, str]]]:
    """Returns the decision, and for a denial the status and the header of the answer. since is when the request arrived."""
    header = [("Content-Type", "text/plain; charset=utf-8")]
    if any(value is None or value == "" for value in attributes.values()):
        return None, 400, header
    try:
        if time.monotonic() - since > client._timeout:
            decision = client._instead(weir.Unreachable("no thread was free in time"))
        else:
            decision = client.take(attributes)
    except weir.Unreachable:
        return None, 503, header
    except weir.Problem as problem:
        if problem.status == 400 and str(problem.field).startswith("attributes."):
            return None, 400, header
        raise
    if decision.allowed:
        return decision, 0, []
    if decision.retry_after is not None and decision.retry_after > 0:
        header.append(("Retry-After", str(math.ceil(decision.retry_after))))
    # While the store is unavailable, limits may count in memory.
    counted = not decision.verdicts and any(u.kind == "limit" and not u.shadow for u in decision.limits)
    return decision, 503 if decision.degraded and not counted else 429, header


def _end(client: weir.Client, decision: Optional[weir.Decision], attributes: weir.Attributes) -> None:
    """Settles what the take of a request holds. Without an answer, the hold ends by itself."""
    if decision is not None and decision.receipt:
        try:
            client.settle(decision.receipt, attributes)
        except weir.Unreachable:
            pass


class WSGI:
    """Limits the requests of a WSGI application. It is as safe for threads as the client."""

    def __init__(self, app: Any, client: weir.Client, attributes: Callable[[Mapping[str, Any]], Optional[weir.Attributes]]) -> None:
        self.app, self.client, self.attributes = app, client, attributes

    def __call__(self, environ: Any, start_response: Any) -> Any:
        attributes = self.attributes(environ)
        if attributes is None:
            return self.app(environ, start_response)
        decision, status, header = _ask(self.client, attributes, time.monotonic())
        if status:
            start_response(_STATUSES[status], header)
            # Servers send what they get, and what follows the header of a HEAD is read as the next answer.
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [_STATUSES[status].encode() + b"\n"]
        try:
            body = self.app(environ, start_response)
        except BaseException:
            _end(self.client, decision, attributes)
            raise
        return _Body(body, lambda: _end(self.client, decision, attributes))


class _Body:
    """The body of an answer. The server calls close at its end."""

    def __init__(self, body: Any, end: Callable[[], None]) -> None:
        self.body, self.end = body, end

    def __iter__(self) -> Any:
        return iter(self.body)

    def close(self) -> None:
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.end()


class ASGI:
    """Limits the requests and the WebSockets of an ASGI application.

    A denied WebSocket is closed before it is accepted, which servers answer with 403.

    threads is how many takes, and how many settles, run at a time. If a request has waited for one of them longer
    than the client's timeout, on_outage decides.
    """

    def __init__(
        self, app: Any, client: weir.Client, attributes: Callable[[Mapping[str, Any]], Optional[weir.Attributes]], threads: int = 64
    ) -> None:
        self.app, self.client, self.attributes, self.threads = app, client, attributes, threads
        self.process, self.takes, self.settles = 0, None, None

    def start(self) -> None:
        """Makes the threads, also in a process that was forked, which has none of them.

        They are not those of the event loop: these are few, and all would wait while the service does not
        answer. Takes have their own, so that they never wait for the settles of requests that have ended.
        """
        if self.process != os.getpid():
            self.takes = concurrent.futures.ThreadPoolExecutor(self.threads, "weir-take")
            self.settles = concurrent.futures.ThreadPoolExecutor(self.threads, "weir-settle")
            self.process = os.getpid()  # last, because other threads may have event loops, too

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        attributes = self.attributes(scope) if scope["type"] in ("http", "websocket") else None
        if attributes is None:
            await self.app(scope, receive, send)
            return
        self.start()
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self.takes, _ask, self.client, attributes, time.monotonic())

        async def end() -> None:
            decision, _, _ = await asked
            if decision is not None and decision.receipt:
                await loop.run_in_executor(self.settles, _end, self.client, decision, attributes)

        ended: List[Any] = []

        async def answer(message: Any) -> None:
            await send(message)
            last = message["type"] == "http.response.body" and not message.get("more_body") or message["type"] == "websocket.close"
            if last and not ended:  # while background tasks of the application go on
                ended.append(asyncio.ensure_future(end()))

        try:
            _, status, header = await asyncio.shield(asked)
            if status and scope["type"] == "websocket":
                await receive()  # websocket.connect
                await send({"type": "websocket.close", "code": 1013})
            elif status:
                await send({
                    "type": "http.response.start", "status": status,
                    "headers": [(name.lower().encode(), value.encode()) for name, value in header],
                })
                await send({"type": "http.response.body", "body": _STATUSES[status].encode() + b"\n"})
            else:
                await self.app(scope, receive, answer)
        finally:
            # A client that goes away cancels this task, perhaps again while it waits here. The thread takes, and
            # the settle must be sent, all the same.
            await asyncio.shield(ended[0] if ended else end())
