"""A client of weir's HTTP API, with the standard library alone.

    import weir

    client = weir.Client("http://localhost:8080")
    decision = client.take({"action": "post", "user": "7"})
    if not decision.allowed:
        print("wait", decision.retry_after, "seconds")

A denial is a decision and not an exception. A call that is wrong raises Problem. What
take and check do when the service does not answer is the choice of the caller
(on_outage). No call is sent twice, unless retries are on.
"""

from __future__ import annotations

import contextlib
import decimal
import http.client
import io
import json
import math
import os
import random
import re
import select
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

__all__ = [
    "Attributes", "Cell", "Client", "Decision", "KeyUsage", "Problem", "Request", "Unreachable", "Usage",
]

#: What describes an action, by name.
Attributes = Mapping[str, Union[str, int, float, bool]]


class Problem(Exception):
    """The service refused a call, because the call is wrong. Nothing was counted.

    Or, with a status below 300, the answer cannot be read, and the call may have counted.
    """

    #: The HTTP status.
    status: int
    #: The part of the request that is wrong, such as attributes.user, or None.
    field: Optional[str]
    #: The position of the field in the body, as line:column, or None.
    place: Optional[str]
    #: The seconds to wait before the next call, if the service states them.
    retry_after: Optional[float]

    def __init__(
        self, status: int, detail: str, field: Optional[str] = None, place: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.field, self.place, self.retry_after = status, field, place, retry_after


class Unreachable(Exception):
    """The service did not answer, or has an internal error or too much to do. The call may have counted."""


@dataclass(frozen=True)
class Usage:
    """The numbers of one rule for one key."""

    rule: str
    #: The key within the rule.
    key: str
    #: The hits in the window.
    used: int
    #: Seconds until the key counts as one that was never used; -1 means never.
    reset_after: float
    #: "limit", "trigger" or "counter".
    kind: str = "limit"
    #: Whether the rule is in shadow mode.
    shadow: bool = False
    #: The hits that a limit admits, or the number of a trigger; None for a counter.
    quota: Optional[int] = None
    #: The hits that are left; None for a counter.
    remaining: Optional[int] = None
    #: Seconds until this limit admits the hits, or -1 if it never does; None if it admits them now.
    retry_after: Optional[float] = None
    #: The end of the key's ban, while it is banned.
    banned_until: Optional[datetime] = None
    #: Whether the take holds its hits here, or held them until this settle, cancel or renew, of which a degraded
    #: answer may not know; None in any other call, and in a take that holds nothing here.
    held: Optional[bool] = None
    #: False if a record counted nothing here.
    counted: bool = True


@dataclass(frozen=True)
class Cell:
    """The hits in a part of a window."""

    start: datetime
    #: The length of the cell.
    seconds: float
    hits: int


@dataclass(frozen=True)
class KeyUsage(Usage):
    """What a rule has counted for one key."""

    #: How many takes hold hits of the key.
    holds: int = 0
    #: The strikes that are not forgotten.
    strikes: int = 0
    #: For a counter, its cells, oldest first.
    series: List[Cell] = field(default_factory=list)
    #: Whether the store did not answer, so that the numbers are those of one instance.
    degraded: bool = False


@dataclass(frozen=True)
class Decision:
    """The answer to one request."""

    #: Whether the action may happen. If it may, a take has counted it.
    allowed: bool
    #: What to tell the caller: "allow", "deny", or an outcome of the rules.
    outcome: str
    #: The rule that set the outcome, or None.
    rule: Optional[str] = None
    #: When not allowed: seconds until the same request fits, or -1 when waiting does not help.
    retry_after: Optional[float] = None
    #: When not allowed: the rule with that wait, or None.
    retry_rule: Optional[str] = None
    #: The name of this take, for settle, cancel and renew, if it holds something.
    receipt: Optional[str] = None
    #: The numbers of each limit, trigger and counter, in the order of the rules.
    limits: List[Usage] = field(default_factory=list)
    #: The verdicts that matched.
    verdicts: List[str] = field(default_factory=list)
    #: The triggers, and the limits with ``near``, that report.
    triggered: List[str] = field(default_factory=list)
    #: Whether no rule matched.
    unmatched: bool = False
    #: Whether this is the answer to an earlier attempt, so that this one counted nothing.
    replayed: bool = False
    #: Whether the store, or the service, did not answer, so that on_outage decided.
    degraded: bool = False
    #: Why; "unreachable" if the service did not answer.
    degraded_reason: Optional[str] = None


@dataclass(frozen=True)
class Request:
    """One request of a batch."""

    attributes: Attributes
    #: take, check, record, refund, settle, cancel or renew.
    verb: str = "take"
    #: What the action costs; None for the default.
    hits: Optional[int] = None
    #: For a refund: the name of an event in the rules.
    feedback: Optional[str] = None
    #: For a settle, cancel or renew: the receipt of the take.
    receipt: Optional[str] = None


class Client:
    """A client of one service. It is safe for several threads, each of which keeps one connection open.

    url is the address of the service, such as http://localhost:8080. token is a token of the
    service, and namespace the namespace of all calls. timeout is the longest wait for an answer, in
    seconds, besides the time that it takes to look up the name of the service. on_outage says what
    take, check and a batch of them return when the service gives no answer, or one with status 408,
    500 or more: "allow" and "deny" return such a decision, and "raise" raises Unreachable. All other
    calls raise Unreachable. tls is for addresses that start with https. With retries, each take, record, refund and settle has an
    idempotency key, and is sent again so many times if there is no answer; it counts once. If the service has no
    room for the answer under a key, the call is sent once without one.
    """

    def __init__(
        self, url: str, *, token: Optional[str] = None, namespace: Optional[str] = None, timeout: float = 0.5,
        on_outage: str = "allow", tls: Optional[ssl.SSLContext] = None, retries: int = 0,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r}: want an address such as http://localhost:8080")
        if on_outage not in ("allow", "deny", "raise"):
            raise ValueError(f"on_outage is {on_outage!r}, want allow, deny or raise")
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout, self._on_outage, self._retries = timeout, on_outage, retries
        self._tls = tls or ssl.create_default_context() if parts.scheme == "https" else None
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = "Bearer " + token
        if namespace is not None:
            self._headers["Weir-Namespace"] = namespace
        self._local = threading.local()

    def take(self, attributes: Attributes, *, hits: Optional[int] = None) -> Decision:
        """Decides whether an action may happen, and counts it if so."""
        return self._decide("take", attributes, hits=hits)

    def check(self, attributes: Attributes, *, hits: Optional[int] = None) -> Decision:
        """Answers as a take would, and counts nothing."""
        return self._decide("check", attributes, hits=hits)

    def record(self, attributes: Attributes, *, hits: Optional[int] = None) -> Decision:
        """Counts an action that has happened, whatever the limits."""
        return self._ask("record", attributes, hits=hits)

    def refund(self, attributes: Attributes, *, hits: Optional[int] = None, feedback: Optional[str] = None) -> Decision:
        """Gives hits back: those of the action, or those that the rules state for a feedback."""
        return self._ask("refund", attributes, hits=hits, feedback=feedback)

    def settle(self, receipt: str, attributes: Attributes, *, hits: Optional[int] = None) -> Decision:
        """Ends what a take holds, at its real cost. It can be repeated."""
        return self._ask("settle", attributes, hits=hits, receipt=receipt)

    def cancel(self, receipt: str, attributes: Attributes, *, hits: Optional[int] = None) -> Decision:
        """Gives back what one take counted. The attributes and hits are those of the take. It can be repeated."""
        return self._ask("cancel", attributes, hits=hits, receipt=receipt)

    def renew(self, receipt: str, attributes: Attributes) -> Decision:
        """Starts the length of what a take holds again. It can be repeated."""
        return self._ask("renew", attributes, receipt=receipt)

    def batch(self, requests: Iterable[Request]) -> List[Union[Decision, Problem]]:
        """Makes up to 1000 calls in one. The answers are in the order of the requests.

        A request that could not be decided has a Problem in place of a decision, unless it is a take or a
        check that could not be decided now, and on_outage is "allow" or "deny".
        """
        requests = list(requests)
        body = [_body(r.attributes, verb=r.verb, hits=r.hits, feedback=r.feedback, receipt=r.receipt) for r in requests]
        try:
            answer = self._call("POST", "/v1/batch", {"requests": body})
        except Unreachable as outage:
            if any(r.verb not in ("take", "check") for r in requests):
                raise
            return [self._instead(outage) for _ in requests]
        with _reading():
            answers = [_problem(a["problem"]) if "problem" in a else _decision(a) for a in answer["answers"]]
            if len(answers) != len(requests):
                raise ValueError(f"{len(answers)} answers to {len(requests)} requests")
            if self._on_outage != "raise":
                for i, (request, problem) in enumerate(zip(requests, answers)):
                    if isinstance(problem, Problem) and _undecided(problem.status) and request.verb in ("take", "check"):
                        answers[i] = self._instead(Unreachable(str(problem)))
        return answers

    def explain(self, attributes: Attributes, *, hits: Optional[int] = None) -> Dict[str, Any]:
        """Returns which rules match, and why, as in the schema Explanation. It counts nothing."""
        return self._call("POST", "/v1/explain", _body(attributes, hits=hits))

    def usage(self, rule: str, attributes: Optional[Attributes] = None) -> KeyUsage:
        """Returns what a rule has counted for the key that the attributes make."""
        answer = self._call("GET", "/v1/usage?" + _query({"rule": rule}, attributes))
        with _reading():
            usage = _read(KeyUsage, {**answer, "series": [_read(Cell, cell) for cell in answer.get("series", [])]})
        return usage

    def forget(self, rule: str, attributes: Optional[Attributes] = None) -> None:
        """Drops what a rule has counted for the key that the attributes make."""
        self._call("DELETE", "/v1/usage?" + _query({"rule": rule}, attributes))

    def rules(self) -> Dict[str, Any]:
        """Returns the rules in force, as in the schema Rules."""
        return self._call("GET", "/v1/rules")

    def top(self, rule: Optional[str] = None, n: int = 10) -> Dict[str, Any]:
        """Returns the keys that use rules most and those that are denied most, as in the schema Top."""
        return self._call("GET", "/v1/top?" + _listing(rule, n))

    def denials(
        self,
        rule: Optional[str] = None,
        n: int = 50,
        attributes: Optional[Attributes] = None,
        since: Optional[str] = None,
    ) -> List[Dict[str, Any]]:
        """Returns the denials of the last 24 hours, the newest one first, as in the schema Denial.

        attributes selects a key. since is the earliest, such as "90m" or "2026-11-20T12:00:00Z".
        """
        pairs = {"n": str(n)}
        if rule is not None:
            pairs["rule"] = rule
        if since is not None:
            pairs["since"] = since
        answer = self._call("GET", "/v1/denials?" + _query(pairs, attributes))
        with _reading():
            denials = answer["denials"]
        return denials

    def close(self) -> None:
        """Closes the connection of this thread. The client can still be used."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(self, verb: str, attributes: Attributes, hits: Optional[int]) -> Decision:
        try:
            return self._ask(verb, attributes, hits=hits)
        except Unreachable as outage:
            return self._instead(outage)

    def _instead(self, outage: Unreachable) -> Decision:
        """Returns the decision that takes the place of an answer."""
        if self._on_outage == "raise":
            raise outage
        allowed = self._on_outage == "allow"
        return Decision(
            allowed, self._on_outage, retry_after=None if allowed else 1.0, degraded=True, degraded_reason="unreachable",
        )

    def _ask(self, verb: str, attributes: Attributes, **members: Any) -> Decision:
        path, body = "/v1/" + verb, _body(attributes, **members)
        if self._retries > 0 and verb in ("take", "record", "refund", "settle"):
            keyed = {**body, "idempotency_key": uuid.uuid4().hex}
            for attempt in range(self._retries + 1):
                try:
                    return _decision(self._call("POST", path, keyed))
                except Unreachable:
                    if attempt == self._retries:
                        raise
                    time.sleep(min(0.02 * 2**attempt, 1) * random.uniform(0.5, 1))
                except Problem as problem:
                    if problem.status != 429:  # no room for the answer
                        raise
                    if attempt > 0:  # an earlier attempt may have counted
                        raise Unreachable(str(problem)) from problem
                    break
        return _decision(self._call("POST", path, body))

    def _call(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Any:
        """Sends one call, once, and returns the answer."""
        payload = None if body is None else json.dumps(body, allow_nan=False).encode()
        if payload is not None and len(payload) > 1 << 20:
            raise Problem(413, "the body is larger than 1 MiB")  # the service would close the connection: an outage
        deadline = time.monotonic() + self._timeout
        try:
            connection = self._connection(deadline)
            connection.sock.settimeout(_left(deadline))
            connection.response_class = (
                lambda sock, *args, **options: http.client.HTTPResponse(_Answer(sock, deadline), *args, **options)
            )
            connection.request(method, self._prefix + path, payload, self._headers)
            response, answer = _receive(connection)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unreachable(f"no answer: {error or type(error).__name__}") from error
        except BaseException:
            self.close()  # a later call would read the answer to this one
            raise
        if response.will_close:
            self.close()
        if response.status == 204 and method == "DELETE":
            return None
        try:
            value = json.loads(answer, parse_constant=_no_constant)
            if not isinstance(value, dict):
                raise ValueError
        except (ValueError, RecursionError):
            value = {"detail": f"status {response.status}: the answer is not JSON; is the address that of weir?"}
            if response.status == 200:
                raise Problem(200, value["detail"]) from None
        if response.status == 200:
            return value
        wait = response.getheader("Retry-After", "")
        problem = _problem(value, response.status, float(wait) if re.fullmatch("[0-9]{1,9}", wait) else None)
        if _undecided(response.status):
            raise Unreachable(str(problem)) from problem
        raise problem

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        """Returns the connection of this thread.

        A connection that the service has closed, or that belongs to the process that forked this
        one, is replaced: a call that is sent on it would be lost.
        """
        connection = getattr(self._local, "connection", None)
        if connection is not None and self._local.process == os.getpid():
            if connection.sock is not None and not _readable(connection.sock):
                return connection
            connection.close()
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port)
        connection.sock = self._dial(connection.port, deadline)
        self._local.connection, self._local.process = connection, os.getpid()
        return connection

    def _dial(self, port: int, deadline: float) -> socket.socket:
        """Connects to the first address of the service that answers. Each has a share of the time that is left."""
        error: Optional[OSError] = None
        addresses = socket.getaddrinfo(self._host, port, type=socket.SOCK_STREAM)
        for i, (family, kind, protocol, _, address) in enumerate(addresses):
            sock = None
            try:
                sock = socket.socket(family, kind, protocol)
                sock.settimeout(_left(deadline) / (len(addresses) - i))
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is None:
                    return sock
                sock.settimeout(_left(deadline))
                return self._tls.wrap_socket(sock, server_hostname=self._host)
            except OSError as caught:
                error = caught
                if sock is not None:
                    sock.close()
        raise error or OSError("the name has no address")


def _left(deadline: float) -> float:
    """Returns the seconds until a deadline."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _receive(connection: http.client.HTTPConnection) -> Tuple[http.client.HTTPResponse, bytes]:
    """Receives a whole answer."""
    try:
        response = connection.getresponse()
        # http.client takes a connection that ends within the header for the end of the header.
        if response.status < 200 or response.length is None and not response.chunked:
            raise http.client.HTTPException("the answer does not say where it ends")
        return response, response.read()
    except (MemoryError, OverflowError, ValueError) as error:
        raise http.client.HTTPException("the answer has a wrong length") from error


class _Answer(io.RawIOBase):
    """What a socket receives until a deadline; its timeout alone would begin again with each part."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._raw, self._deadline = sock, sock.makefile("rb", buffering=0), deadline

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> Optional[int]:
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(into)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _readable(sock: socket.socket) -> bool:
    """Reports whether there is something to read, which between two calls is the end of the connection."""
    if hasattr(select, "poll"):  # select itself takes no file descriptor above 1023
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _body(attributes: Attributes, **members: Any) -> Dict[str, Any]:
    # A body that is too large could look like an outage. The service refuses values of more than
    # 1024 bytes, and so also what is left of these.
    cut = {name: value[:4096] if isinstance(value, str) else value for name, value in dict(attributes).items()}
    body: Dict[str, Any] = {"attributes": cut}
    body.update((name, value) for name, value in members.items() if value is not None)
    return body


def _query(pairs: Dict[str, str], attributes: Optional[Attributes]) -> str:
    for name, value in (attributes or {}).items():
        if name == "rule" or name in pairs:
            raise ValueError(f"the attribute {name} cannot be in a query")
        pairs[name] = _text(value)
    return urllib.parse.urlencode(pairs)


def _text(value: Union[str, float]) -> str:
    """The text for which the service takes a value in JSON."""
    if isinstance(value, float):
        return format(decimal.Decimal(repr(value or 0)).normalize(), "f")
    return value if isinstance(value, str) else json.dumps(value)


def _listing(rule: Optional[str], n: int) -> str:
    return urllib.parse.urlencode({"n": n} if rule is None else {"n": n, "rule": rule})


def _no_constant(name: str) -> None:
    """Refuses NaN and Infinity, which are no JSON."""
    raise ValueError(name)


def _undecided(status: int) -> bool:
    """Reports whether a status says that the service could not decide, and not that the call is wrong."""
    return status >= 500 or status == 408


def _problem(value: Dict[str, Any], status: Optional[int] = None, wait: Optional[float] = None) -> Problem:
    status = status or value.get("status", 0)
    detail = value.get("detail") or value.get("title") or f"status {status}"
    return Problem(status, detail, value.get("field"), value.get("place"), wait)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Turns the errors of code that reads an answer into a Problem."""
    try:
        yield
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise Problem(200, "the answer cannot be read; is the address that of weir?") from error


@_reading()
def _decision(value: Dict[str, Any]) -> Decision:
    if not (
        isinstance(value["allowed"], bool) and isinstance(value["outcome"], str) and isinstance(value["limits"], list)
        and isinstance(value.get("receipt", ""), str) and math.isfinite(value.get("retry_after", 0))
    ):
        raise TypeError("no decision")
    return _read(Decision, {**value, "limits": [_read(Usage, u) for u in value["limits"]]})


def _read(kind: Any, value: Dict[str, Any]) -> Any:
    """Returns an object of a data class from JSON. Unknown members are left out."""
    members = {f.name: value[f.name] for f in fields(kind) if f.name in value}
    for name in ("banned_until", "start"):
        if name in members:
            members[name] = _moment(members[name])
    return kind(**members)


def _moment(text: str) -> datetime:
    """Reads a moment in UTC. Python before 3.11 reads neither a Z nor any number of decimals."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{fraction:0<6.6}+00:00")
