"""One HTTP request and its response.

`ServerExchange` is the object that a transport holds: it takes the body and gives the response.
`ServerExchangeCore` is the object that the parts of an endpoint work with: the head of the request,
and the response that they put together piece by piece.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias, final

import attrs

from ..._connection.timers import Timed
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.setting_checks import check_clock, check_whole
from ..._wire.values import Record, RequestId
from .._headers import NO_FIELDS, Fields, Headers, Text, pairs_of, text_of
from .._sse import encode_comment
from .bodies import SMALL_BODY
from .core import ServerEndpointCore

_NAME: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-z]+")
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
RETRY_AFTER: Final[Headers] = ((b"retry-after", b"5"),)
_OURS: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding"})
"""Headers about the body of a response: they are written with the body."""
_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_NO_BODY: Final[Headers] = ((b"content-length", b"0"),)
_STREAM: Final[Headers] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


@final
@attrs.frozen
class SendHead(Record):
    """Send this status and these headers; their names are in lower case."""

    status: int
    headers: Headers


@final
@attrs.frozen
class SendBody(Record):
    """Send these bytes of the body."""

    data: bytes


@final
@attrs.frozen
class SendEnd(Record):
    """The response is over."""


Sent: TypeAlias = SendHead | SendBody | SendEnd


@attrs.frozen
class Accepted(Record):
    """Which of the two forms of a response a client takes.

    Attributes:
        json: One JSON object.
        stream: A stream of events.
    """

    json: bool
    stream: bool


class Ledger(Protocol):
    """Counts the output that waits to be taken off exchanges."""

    def waits(self, size: int) -> None:
        """So many bytes were written to an exchange."""
        ...

    def taken(self, size: int) -> None:
        """So many bytes were taken off an exchange."""
        ...


class ResponseRoute(Protocol):
    """Where the messages of a conversation leave: by the response of an exchange.

    Attributes:
        over: Whether nothing more goes out on it.
    """

    over: bool

    def drop(self) -> None:
        """Forget the output that waits in the exchange: no one will read it there."""
        ...

    def disconnected(self) -> None:
        """The client of the exchange is gone."""
        ...

    def answer_lost(self) -> None:
        """The answer was complete, and was never taken."""
        ...


class MissedEvents(Protocol):
    """A stream whose event log has more than the exchange has sent.

    Attributes:
        over: Whether nothing more goes out on it.
        listens: Whether it began with a GET.
    """

    over: bool
    listens: bool

    @property
    def asks(self) -> bool:
        """Whether the application is asked for the events."""
        ...

    def missed(self) -> bytes:
        """The next portion of the events that the exchange has missed; it may be empty."""
        ...


class LookupEnd(enum.Enum):
    """Why an exchange ended while it waited for the application, or while it was carried."""

    DISCONNECTED = "the client is gone"
    REFUSED = "the request was refused meanwhile, or its stream resumed in another exchange"
    UNREAD = "the client stopped reading, and the limit on unsent output was reached"
    FAILED = "the application said that it cannot be served now"
    CLOSED = "the endpoint was closed"


class ExchangeRelay(Protocol):
    """The response to an exchange that was carried to another process."""

    def head(self, status: int, headers: Headers) -> bool:
        """Take the head of the response."""
        ...

    def body(self, data: bytes) -> bool:
        """Take bytes of the body."""
        ...

    def end(self) -> bool:
        """The response is complete."""
        ...

    def fail(
        self, cause: LookupEnd, text: str, status: int = 503, retry_after: int | None = None
    ) -> bool:
        """End the exchange without the rest of the response."""
        ...


class ExchangeLookup(Protocol):
    """What an exchange waits for: something that the application looks up.

    Attributes:
        is_waiting: Whether the exchange still waits.
        body: The body of the request, where it is complete; else empty.
        id: The id of the request, where it is known; else None.
        relay: The response, where the request was carried away; else None.
    """

    is_waiting: bool
    body: bytes | bytearray
    id: Any
    relay: ExchangeRelay | None

    def keep_body(self, body: bytes | bytearray, at: float | None) -> None:
        """The body of the request is complete, and the exchange waits."""
        ...

    def ended(self, cause: LookupEnd) -> None:
        """The exchange does not wait any more. Spare calls do nothing."""
        ...


class BodyReceiver(Protocol):
    """The part of an endpoint that takes whole bodies."""

    def receive(self, exchange: ServerExchangeCore, body: bytes | bytearray) -> None:
        """Serve a request whose body is complete."""
        ...


def has_bad_field(headers: Headers) -> bool:
    """Whether a name or a value is none that a header may have."""
    return any(not _NAME.fullmatch(name) or _CONTROLS.search(value) for name, value in headers)


def error_headers(status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> Headers:
    """Headers of an error response, as a caller has given them.

    Raises:
        ValueError: The status is none of an error, a header is about the body, or it holds
            characters that no header may hold.
    """
    more = tuple(
        (name.lower().encode("ascii"), value.encode("latin-1")) for name, value in pairs_of(headers)
    )
    if not 400 <= status <= 599 or has_bad_field(more) or _OURS & {name for name, _ in more}:
        raise ValueError(f"no response can have status {status} and the headers {more!r}")
    return more


def plain_response(status: int, text: str, common: Headers) -> tuple[int, Headers, bytes]:
    """A response with one sentence of text, for a person to read."""
    body = text.encode() + b"\n"
    return status, (_TEXT, (b"content-length", b"%d" % len(body)), *common), body


class ServerExchangeCore:
    """The head of one HTTP request, and its response, which the parts of an endpoint compose.

    Attributes:
        core: What all parts of the endpoint share.
        handle: The exchange as the transport holds it; None once the response was taken whole.
        method: The method of the request.
        target: Path and query, as in the request line.
        fields: The headers of the head; none once the body was received.
        principal: Who sent the request.
        principal_key: A string that stands for the principal.
        context: What else the transport has said about the request.
        accepted: The forms of a response that the client takes.
        json_first: Whether the response is one JSON object if no other message comes before it.
        body: The bytes of the body so far; None: further ones are ignored.
        is_complete: Whether the whole body was received.
        is_carried: Whether another process has received the request, and carried it here.
        lookup: What the exchange waits for, or has waited for last; None: for nothing yet.
        route: Where the messages of its conversation leave, while the response is open.
        ledger: The object that counts the output that waits here; None: there is none.
        status: The status of the response; 0 before there is one.
        headers: The headers of the response.
        common: Headers of every response to this request.
        is_stream: Whether the response is an event stream.
        pieces: The output that was not taken yet.
        behind: The stream whose event log has more than was taken here.
        is_resting: Whether a portion of missed events was taken, which is sent before the next.
        written_at: When the response was last written to; None without a clock.
        over: Whether nothing is added to the response.
        taken: 1: the head of the response was taken, 2: the end was, too.
        whole: The response that `response` has given.
    """

    __slots__ = (
        "_deadline",
        "accepted",
        "behind",
        "body",
        "common",
        "context",
        "core",
        "fields",
        "handle",
        "headers",
        "is_carried",
        "is_complete",
        "is_resting",
        "is_stream",
        "json_first",
        "ledger",
        "lookup",
        "method",
        "over",
        "pieces",
        "principal",
        "principal_key",
        "route",
        "status",
        "taken",
        "target",
        "whole",
        "written_at",
    )

    # Set by the judge of heads, before anything else.
    accepted: Accepted
    json_first: bool
    common: Headers
    # Set when they are needed first: one exchange is made for every request.
    headers: Headers
    is_resting: bool
    written_at: float | None
    _deadline: float | None  # for the next comment on a stream

    def __init__(
        self,
        core: ServerEndpointCore,
        method: Text,
        target: Text,
        fields: Fields,
        principal: Any = None,
        principal_key: str | None = None,
        context: Any = None,
    ) -> None:
        self.core: ServerEndpointCore = core
        self.handle: ServerExchange | None = None
        self.method: str = method if isinstance(method, str) else text_of(method)
        self.target: Text = target
        self.fields: Fields = fields
        self.principal: Any = principal
        self.principal_key: str | None = principal_key
        self.context: Any = context
        self.body: bytes | bytearray | None = b""
        self.is_complete: bool = False
        self.is_carried: bool = False
        self.lookup: ExchangeLookup | None = None
        self.route: ResponseRoute | None = None
        self.ledger: Ledger | None = None
        self.status: int = 0
        self.is_stream: bool = False
        self.pieces: list[bytes] = []
        self.behind: MissedEvents | None = None
        self.over: bool = False
        self.taken: int = 0
        self.whole: tuple[int, Headers, bytes] | None = None

    @property
    def path(self) -> str:
        """The target of the request, without its query."""
        return text_of(self.target).partition("?")[0]

    @property
    def query(self) -> str:
        """The query of the target."""
        return text_of(self.target).partition("?")[2]

    @property
    def waits(self) -> bool:
        """Whether the exchange waits for something that the application looks up."""
        return self.lookup is not None and self.lookup.is_waiting

    @property
    def takes_stream(self) -> bool:
        """Whether messages can be written: the response is a stream, or can become one."""
        return (self.is_stream or self.accepted.stream) and not self.over

    # ------------------------------------------------------------------------------- composing

    def _has_output(self) -> None:
        """Name the exchange to the transport, unless the response was taken whole."""
        if self.handle is not None:
            self.core.ready[self.handle] = None

    def answer(self, status: int, body: bytes, more: Headers = ()) -> None:
        """Make the whole response: a body of JSON, or none."""
        self.status = status
        if body:
            size = len(body)
            self.headers = (_JSON, (b"content-length", b"%d" % size))
            if more or self.common:
                self.headers += more + self.common
            self.pieces.append(body)
            if self.ledger is not None:
                self.ledger.waits(size)
        else:
            self.headers = (() if status == 204 else _NO_BODY) + more + self.common
        self.over = True
        if self.handle is not None:
            self.core.ready[self.handle] = None

    def start_stream(self) -> None:
        """Begin a response that is a stream of events.

        Keeps HTTP-025.
        """
        core = self.core
        self.is_stream = True
        self.status = 200
        self.headers = _STREAM + self.common
        self.written_at = core.now
        self._has_output()
        self._deadline = None
        if core.keep_alive is not None and core.now is not None:
            core.timers.arm(self, self, core.now + core.keep_alive)

    def write(self, data: bytes) -> None:
        """Add a piece to the stream."""
        ledger = self.ledger
        assert ledger is not None  # as long as the stream goes on
        self.pieces.append(data)
        ledger.waits(len(data))
        self.written_at = self.core.now
        self._has_output()

    def start_ended(self, pieces: list[bytes], ledger: Ledger) -> None:
        """Make the whole response: a stream that ends with these pieces."""
        self.ledger = ledger
        ledger.waits(sum(map(len, pieces)))
        self.is_stream = True
        self.status = 200
        self.headers = _STREAM + self.common
        self._deadline = None
        self.pieces += pieces
        self.over = True
        self._has_output()

    def start_relayed(self, status: int, headers: Headers) -> None:
        """Begin a response that another process has composed."""
        self.is_stream = any(field == _STREAM[0] for field in headers)
        self.status = status
        self.headers = headers + self.common
        self.written_at = self.core.now
        self._deadline = None  # the other process keeps the stream alive
        self._has_output()

    def keep(self, data: bytes) -> None:
        """Add a piece to a response that another process has composed; without a head it waits."""
        if self.status:
            self.write(data)
        else:
            assert self.ledger is not None  # as long as the response goes on
            self.pieces.append(data)
            self.ledger.waits(len(data))

    def end(self, status: int = 200, id: RequestId | None = None) -> None:
        """End the response: no message follows.

        Where no message came before either, the response is an empty stream, or 204 for a client
        that takes none; or an error, if the status is one.
        """
        if self.status == 0:
            if status >= 400:
                text = "the server has ended the conversation before the request was answered"
                self.answer(status, self.core.error_body(text, ErrorCode.INTERNAL_ERROR, id))
            elif self.accepted.stream:
                self.start_stream()
            else:
                self.answer(204, b"")
        self.close()
        self._has_output()

    def close(self) -> None:
        """Add nothing more to the response."""
        self.over = True
        self.route = None
        if self.lookup is not None:
            self.lookup.ended(LookupEnd.REFUSED)
        if self.is_stream:
            self.core.timers.drop(self)

    def drop(self) -> None:
        """Forget the output that waits: no one will read it."""
        pieces, self.pieces = self.pieces, []
        if self.ledger is not None:
            self.ledger.taken(sum(map(len, pieces)))

    def _timer_fired(self, subject: Timed) -> None:
        """Send a comment after a long silence, so that the connection is kept open.

        Keeps SSE-038.
        """
        core = self.core
        seconds, now = core.keep_alive, core.now
        assert seconds is not None
        assert now is not None
        written = now if self.written_at is None else self.written_at
        if written + seconds > now:
            core.timers.arm(self, self, written + seconds)
            return
        if not self.pieces:  # else the client does not read: more would not help
            self.write(encode_comment())
        core.timers.arm(self, self, now + seconds)

    # -------------------------------------------------------------------------------- refusing

    def refuse(
        self,
        status: int,
        breach: Breach,
        id: RequestId | None = None,
        *,
        more: Headers = (),
        excerpt: bytes | None = None,
        is_reported: bool = True,
    ) -> None:
        """Answer with an error of the library.

        The breach is reported, unless the client may do this (`is_reported=False`).
        """
        self.drop_body()
        if is_reported:
            self.core.report(breach, excerpt)
        body = self.core.error_body(breach.text, breach.code, id, breach.data)
        self.answer(status, body, more)

    def refuse_for_memory(
        self, id: RequestId | None = None, why: str | None = None, limit: int | None = None
    ) -> None:
        """Answer with 503, since all requests together, or what `why` names, hold too much."""
        core = self.core
        why = why or f"requests hold {core.held.bytes} bytes"
        limit = core.held.limit if limit is None else limit
        core.limit_reached("OWN-053", f"{why}, and the limit is {limit}")
        self.drop_body()
        text = "the server has too much to hold: try again later"
        body = core.error_body(text, ErrorCode.INTERNAL_ERROR, id)
        self.answer(503, body, RETRY_AFTER)

    def drop_body(self) -> None:
        """Take nothing more of the body, and wait for nothing: the request is not served."""
        if self.lookup is not None:
            self.lookup.ended(LookupEnd.REFUSED)
        body, self.body = self.body, None
        if body is not None and len(body) > SMALL_BODY:
            self.core.held.body_is_over(self)

    # ---------------------------------------------------------------------------------- taking

    def next_output(self) -> Sent | None:
        """Take the next piece of the response; None: there is nothing now."""
        if self.taken == 0:
            if self.status == 0:
                return None
            self.taken = 1
            return SendHead(self.status, self.headers)
        if self.pieces:
            return SendBody(self._take())
        if self.over and self.taken == 1:
            self.retire()
            return SendEnd()
        if self.behind is not None:
            return self._catch_up(self.behind)
        return None

    def _catch_up(self, stream: MissedEvents) -> Sent | None:
        """Take missed events in portions; each is sent before the next one is taken."""
        if self.is_resting:
            self.is_resting = False
            self._has_output()
            self.core.settle()
            return None
        while not (data := stream.missed()):
            behind = self.behind
            if behind is None or self.pieces:
                return self.next_output()  # perhaps the end of the response
            if behind.asks:
                self.core.settle()
                return None  # until the application has given the events
            stream = behind  # one stream after another whose events are lost
        self.is_resting = self.behind is not None
        self.written_at = self.core.now
        return SendBody(data)

    def response(self) -> tuple[int, Headers, bytes] | None:
        """Take the whole response, once it is complete; else None."""
        if self.whole is not None:
            return self.whole
        while (
            self.behind is not None
            and self.behind.over
            and not self.behind.listens
            and not self.taken
        ):
            data = self.behind.missed()
            if self.waits:
                self.core.settle()
                return None
            self.pieces.append(data)
        if not self.over or self.status == 0 or self.taken:
            return None
        self.retire()
        body = self._take() if self.pieces else b""
        self.whole = whole = self.status, self.headers, body
        return whole

    def _take(self) -> bytes:
        pieces, self.pieces = self.pieces, []
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.ledger is not None:
            self.ledger.taken(len(data))
            if self.core.wake is not None:
                self.core.settle()  # what waited for room may go out on another exchange
        return data

    def retire(self) -> None:
        """The response was taken whole, or no one reads it: the transport hears nothing more."""
        self.taken = 2
        self.core.ready.pop(self.handle, None)
        self.handle = None


@final
class ServerExchange:
    """One HTTP request that an endpoint serves; made by `ServerEndpoint.exchange`.

    Bytes of the request's body go in; head, body and end of the response come out. The methods
    `receive_*` never raise for what the peer did.
    """

    __slots__ = ("__weakref__", "_exchange", "_receiver")

    def __init__(self, exchange: ServerExchangeCore, receiver: BodyReceiver) -> None:
        self._exchange = exchange
        self._receiver = receiver
        exchange.handle = self

    def __repr__(self) -> str:
        exchange = self._exchange
        state = "over" if exchange.over else "open"
        return f"<ServerExchange {exchange.method[:20]} {exchange.path[:80]} {state}>"

    # -------------------------------------------------------------------- from the transport

    def receive_data(
        self, data: bytes | bytearray | memoryview, *, now: float | None = None
    ) -> None:
        """Take the next bytes of the request's body, cut anywhere.

        Args:
            data: Any number of bytes. Those of a request that was refused are not kept.
            now: The caller's clock in seconds.
        """
        exchange = self._exchange
        core = exchange.core
        if now is not None:
            core.tell(now)
        body, limit = exchange.body, core.config.max_message_bytes
        if body is None:
            return
        size = len(body) + len(data)
        if size > limit:
            exchange.refuse(413, Breach("OWN-001", f"the body is longer than {limit} bytes"))
            core.settle()
            return
        if size > SMALL_BODY and core.held.body_has(exchange, size):
            core.settle()
            if exchange.body is None:
                return
        if not body:
            exchange.body = bytes(data)  # most bodies come in one piece
        elif isinstance(body, bytearray):
            body += data
        else:
            exchange.body = bytearray(body) + data

    def receive_end(self, *, at: float | None = None, now: float | None = None) -> None:
        """The body is complete. Call it for every request, also for one without a body.

        Args:
            at: The time in Unix seconds. Where it is told and `Config.state_keys` are set, the
                seal of a state is checked before the request is delivered.
            now: The caller's clock in seconds.

        Raises:
            LocalProtocolError: There are a principal and `Config.state_keys`, and no
                `principal_key`. The request was answered with 500.
        """
        exchange = self._exchange
        core = exchange.core
        if at is not None:
            check_clock("at", at)
        if now is not None:
            core.tell(now)
        body = exchange.body
        if body is None:
            return
        exchange.body = None
        if len(body) > SMALL_BODY:
            core.held.body_is_over(exchange)
        exchange.is_complete = True
        lookup = exchange.lookup
        if lookup is not None and lookup.is_waiting:
            lookup.keep_body(body, at)
        else:
            core.at = at
            self._receiver.receive(exchange, body)
        exchange.fields = NO_FIELDS  # the response may be open for long
        if core.wake is not None:
            core.settle()

    def receive_disconnect(self, *, now: float | None = None) -> None:
        """The client is gone, before the response was over.

        In 2026-07-28 that cancels the request. Before, it does not: the client may come back for
        the rest of a stream, if there is an event log. Spare calls do nothing.
        """
        exchange = self._exchange
        core = exchange.core
        if now is not None:
            core.tell(now)
        if exchange.lookup is not None:
            exchange.lookup.ended(LookupEnd.DISCONNECTED)
        exchange.drop_body()
        route = exchange.route
        if route is not None and route.over and not exchange.is_stream and exchange.behind is None:
            if exchange.pieces:  # the response was made, and never taken
                route.answer_lost()
            route = None
        exchange.close()
        if route is None:
            exchange.drop()
        else:
            route.drop()
        exchange.retire()
        if route is not None:
            route.disconnected()
        core.settle()

    def refuse(
        self,
        status: int,
        text: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        *,
        now: float | None = None,
    ) -> bool:
        """Answer for the transport, which has found that this request must not be served.

        A client is told in this way to authenticate: 401 or 403, with `WWW-Authenticate`. The
        application refuses so, too, what it is asked for by `CredentialsReceived`,
        `ToolSchemaWanted`, `SessionRequested` and `SessionWanted`.

        Args:
            status: From 400 to 599. From 500 on the JSON-RPC error in the body is -32603, since
                the server has failed; below it is -32600.
            text: One sentence for the client.
            headers: Fields beside those that every response has: a mapping, or pairs.
            now: The caller's clock in seconds.

        Returns:
            Whether it was done. False: the request is answered, or being served, already.

        Raises:
            ValueError: The status is none of an error, a header is about the body, or it holds
                characters that no header may hold.
        """
        more = error_headers(status, headers)
        exchange = self._exchange
        core = exchange.core
        if now is not None:
            core.tell(now)
        if exchange.over or exchange.route is not None:
            return False
        id = None if exchange.lookup is None else exchange.lookup.id
        exchange.drop_body()
        code = ErrorCode.INVALID_REQUEST if status < 500 else ErrorCode.INTERNAL_ERROR
        exchange.answer(status, core.error_body(text, code, id), more)
        core.settle()
        return True

    # --------------------------------------------------------------- from another process

    def relay_head(
        self,
        status: int,
        headers: Mapping[str, str] | Iterable[tuple[Text, Text]],
        *,
        now: float | None = None,
    ) -> bool:
        """Give the head of the response to a request that `ServerEndpoint.carry` has taken away.

        A response with a `content-length` goes out when it is complete, and 503 instead if it never
        is; any other one goes out as it comes. Headers of the connection and of CORS are left out:
        this endpoint sends its own.

        Args:
            status: From 200 to 599.
            headers: As the other process has them: a mapping, or pairs.
            now: The caller's clock in seconds.

        Returns:
            Whether the rest is wanted. False: the exchange was ended (`RelayEnded`).

        Raises:
            ValueError: The status is none of a response, or a header is not valid.
            LocalProtocolError: The request was not carried, or its head was given before.
        """
        given = tuple(
            (text_of(name).lower().encode("latin-1"), text_of(value).encode("latin-1"))
            for name, value in pairs_of(headers)
        )
        if not 200 <= status <= 599 or has_bad_field(given):
            raise ValueError(f"no response can have status {status} and the headers {given!r:.200}")
        return self._settled(self._relay(now).head(status, given))

    def relay_body(self, data: bytes, *, now: float | None = None) -> bool:
        """Give bytes of the body of a relayed response.

        Args:
            data: Any number of bytes.
            now: The caller's clock in seconds.

        Returns:
            Whether more is wanted. False: the exchange was ended (`RelayEnded`), perhaps just now,
            since more than `Config.max_unsent_bytes` would wait for a client that does not read.

        Raises:
            LocalProtocolError: The request was not carried, there is no head yet, the response is
                complete, or the body is longer than its `content-length`.
        """
        return self._settled(self._relay(now).body(data))

    def relay_end(self, *, now: float | None = None) -> bool:
        """End a relayed response.

        Returns:
            Whether the response is complete. False: it lacks a part, for which 503 goes out, or the
            exchange was ended before.

        Raises:
            LocalProtocolError: The request was not carried, there is no head yet, or the response
                is complete already.
        """
        return self._settled(self._relay(now).end())

    def relay_failed(
        self,
        text: str = "the process that serves this session has not answered",
        *,
        status: int = 503,
        retry_after: int | None = None,
        now: float | None = None,
    ) -> bool:
        """End a relayed response whose rest will not come: an error, or the end of what was begun.

        Args:
            text: One sentence for the client, where the response is an error.
            status: 503, or 404 where the session turns out not to exist.
            retry_after: After how many seconds the client may send the request again; None: it is
                not told to, as the request may have been served.
            now: The caller's clock in seconds.

        Returns:
            Whether it was open until now.

        Raises:
            LocalProtocolError: The request was not carried.
            ValueError: The status is neither 404 nor 503, or `retry_after` is negative.
        """
        if status not in (404, 503):
            raise ValueError(f"status must be 404 or 503, not {status!r}")
        if retry_after is not None:
            check_whole("retry_after", retry_after, 0)
        relay = self._relay(now)
        return self._settled(relay.fail(LookupEnd.FAILED, text, status, retry_after))

    def _relay(self, now: float | None) -> ExchangeRelay:
        exchange = self._exchange
        if now is not None:
            exchange.core.tell(now)
        relay = None if exchange.lookup is None else exchange.lookup.relay
        if relay is None:
            raise LocalProtocolError("OWN-064", "the request was not carried to another process")
        return relay

    def _settled(self, outcome: bool) -> bool:
        self._exchange.core.settle()
        return outcome

    # ------------------------------------------------------------------------- to the caller

    def next_output(self) -> Sent | None:
        """Take the next piece of the response to send; None means that there is nothing now."""
        return self._exchange.next_output()

    def response(self) -> tuple[int, Headers, bytes] | None:
        """The whole response, for callers that cannot use a part of it.

        Returns:
            Status, headers and body, once it is complete, and the same from then on; else
            None, as after `next_output`. A stream that stays open is never complete.
        """
        return self._exchange.response()

    def refusal(self, status: int, text: str) -> tuple[int, Headers, bytes]:
        """The response to send where this exchange cannot be carried on: as that of an endpoint.

        For a body that cannot be read, or takes too long. It changes nothing: tell the exchange by
        `receive_disconnect`.
        """
        return plain_response(status, text, self._exchange.common)

    # ------------------------------------------------------------------------------- looking

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._exchange.method

    @property
    def path(self) -> str:
        """The target of the request, without its query."""
        return self._exchange.path

    @property
    def principal(self) -> Any:
        """Who sent the request, as `exchange()` was told.

        It may be set until the body is complete (`receive_end`), and counts from then on.
        """
        return self._exchange.principal

    @principal.setter
    def principal(self, principal: Any) -> None:
        self._exchange.principal = principal

    @property
    def principal_key(self) -> str | None:
        """A string that stands for the principal; it may be set as `principal` may."""
        return self._exchange.principal_key

    @principal_key.setter
    def principal_key(self, key: str | None) -> None:
        self._exchange.principal_key = key

    @property
    def context(self) -> Any:
        """What else `exchange()` was told about the request; it may be set as `principal` may."""
        return self._exchange.context

    @context.setter
    def context(self, context: Any) -> None:
        self._exchange.context = context

    @property
    def is_stream(self) -> bool:
        """Whether the response is an event stream."""
        return self._exchange.is_stream

    @property
    def needs_principal(self) -> bool:
        """Whether the principal counts: it is to be found out before the body is complete.

        It does not where the head is refused, and not for preflights of CORS, with which no
        browser sends credentials (Fetch standard, CORS protocol and credentials).
        """
        return not self._exchange.over and self._exchange.method != "OPTIONS"

    @property
    def refused(self) -> bool:
        """Whether the response is there before the body came: the body need not be read."""
        return self._exchange.over and not self._exchange.is_complete

    @property
    def ended(self) -> bool:
        """Whether the response is over: nothing is added to it, or no client is there to read."""
        return self._exchange.over

    @property
    def held_bytes(self) -> int:
        """Bytes that wait here: of a body, and of output not yet taken.

        A body counts until it is complete, or as long as the application is asked about it.
        """
        exchange = self._exchange
        waiting = len(exchange.lookup.body) if exchange.lookup is not None else 0
        return sum(map(len, exchange.pieces)) + len(exchange.body or b"") + waiting

    @property
    def has_output(self) -> bool:
        """Whether `next_output` has something now."""
        exchange = self._exchange
        if exchange.taken == 0:
            return exchange.status != 0
        return (
            bool(exchange.pieces)
            or (exchange.behind is not None and not exchange.waits)
            or (exchange.over and exchange.taken == 1)
        )


def core_of(exchange: ServerExchange) -> ServerExchangeCore:
    """The object behind the handle of an exchange, for the parts of an endpoint."""
    return exchange._exchange
