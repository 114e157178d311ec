"""HTTP exchanges of a client: a request and its response, what each is for, and the queue."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol, final

import attrs

from ..._connection.timers import Timed
from ..._rules.sending import Breach
from ..._rules.state_tables import State
from .._headers import GivenHeaders, Headers
from .._sse import OverlongEvent, ServerSentEvent, SSEDecoder
from .core import ClientEndpointCore
from .events import Asked, AuthorizationRequired
from .headers import RequestHeaders, event_id_value, read_headers
from .response_head import Head
from .retries import StreamRetries
from .urls import URL, Origin

_MAY_HAVE_RUN = (
    ". The connection had carried earlier requests. Whether the server ran this one is not known. "
)
_NOT_REPEATED = "It was not sent again."
_REPEATED = "It was sent again once, and is not sent a third time."
_SPARE: Final = 8
"""Streams that may be open beside the exchanges of requests and other messages."""
_LINGER: Final = 5.0
"""Seconds that an exchange has to end by itself when everything of use has come.

The connection of an exchange that ended by itself can be used again."""
_TRAILING: Final = 2.0
"""Seconds for which the stream of a request that has ended without a response is read on."""
_MAX_TRAILING: Final = 8
"""Such streams that are read on. With one more, the oldest is closed."""
_ACCEPT_STREAM: Final[Headers] = ((b"accept", b"text/event-stream"),)


@final
class ExchangePurpose(enum.Enum):
    """What an exchange is for."""

    POST = "a message"
    CANCEL = "a message that cancels a request"
    GET = "a stream for what belongs to no request"
    RESUME = "the rest of a stream"
    DELETE = "the end of a session"


class Reading(enum.Enum):
    """How the body of a response is read."""

    NOTHING = "it is not read"
    WHOLE = "as one message"
    REFUSAL = "as a whole, for the reason why the server refused the request"
    STREAM = "as an event stream"


# Looking a member up in its enum costs as much as some calls.
_NOTHING, _WHOLE, _REFUSAL, _STREAM = Reading


@final
class ClientExchange:
    """One HTTP request that the caller has to make; `ClientEndpoint.next_exchange` gives it out.

    It holds the request to send, and takes the response: a head, pieces of a body, and the end or
    a failure. The methods `receive_*` never raise for what the peer did.
    """

    __slots__ = ("__weakref__", "_exchange")

    def __init__(self, exchange: ClientExchangeCore) -> None:
        self._exchange = exchange

    # ------------------------------------------------------------------------------- looking

    @property
    def method(self) -> str:
        """`POST`, `GET` or `DELETE`."""
        return self._exchange.method

    @property
    def headers(self) -> Headers:
        """The headers to send, names in lower case.

        The sender adds `Host`, `Content-Length` and `Connection`.
        """
        return self._exchange.headers

    @property
    def body(self) -> bytes:
        """The body to send; empty for a request without a body."""
        return self._exchange.body

    @property
    def purpose(self) -> ExchangePurpose:
        """What the exchange is for."""
        return self._exchange.purpose

    @property
    def over(self) -> bool:
        """Whether nothing more is expected: the exchange has ended, failed, or was aborted."""
        return self._exchange.over

    @property
    def aborted(self) -> bool:
        """Whether to close the connection of this exchange now, even in the midst of it."""
        return self._exchange.aborted

    @property
    def url(self) -> str:
        """The whole URL."""
        return self._exchange.url.text

    @property
    def origin(self) -> Origin:
        """Scheme, host and port to connect to, the same for all exchanges of an endpoint."""
        return self._exchange.url.origin

    @property
    def authority(self) -> str:
        """The value of `Host`."""
        return self._exchange.url.authority

    @property
    def target(self) -> str:
        """Path and query, as in a request line."""
        return self._exchange.url.target

    @property
    def request(self) -> Asked | None:
        """The handle that the application holds for this exchange; None: it has not asked for it.

        An exchange that resumes a stream has the handle of the request that the stream answers.
        """
        return self._exchange.owner.request

    @property
    def awaited(self) -> bool:
        """Whether a request, which has a timeout of its own, waits for the response."""
        return self._exchange.awaited

    @property
    def is_stream(self) -> bool:
        """Whether the response is an event stream, which may be silent for long."""
        return self._exchange.reading is _STREAM

    @property
    def status(self) -> int | None:
        """The status of the response; None before its head has come."""
        head = self._exchange.head
        return None if head is None else head.status

    @property
    def dpop_nonce(self) -> str | None:
        """The header `DPoP-Nonce` of the response, for the next proof; None without it."""
        head = self._exchange.head
        return None if head is None else head.fields.get("dpop-nonce")

    @property
    def is_resumable(self) -> bool:
        """Whether another exchange goes on with the stream, should this one fail now.

        That holds for the stream for messages without a request, and in legacy revisions for the
        stream of a response of whose events the last has an id.
        """
        exchange = self._exchange
        return not exchange.over and exchange.owner.resumes(exchange)

    @property
    def asker(self) -> ClientExchange | None:
        """The exchange whose response waits for this message.

        This message answers a request that the server has sent on the stream of that exchange.
        None: it answers no such request, or that exchange is over.
        """
        asker = self._exchange.owner.asker
        return None if asker is None else self._exchange.queue.face_of(asker)

    def __repr__(self) -> str:  # the query may hold a secret, and headers do
        url, purpose = self._exchange.url, self._exchange.purpose
        path = url.target.partition("?")[0]
        return f"<ClientExchange {self.method} {url.authority}{path} {purpose.name}>"

    # ------------------------------------------------------------------- from the application

    def add_headers(self, headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        """Add headers to this exchange alone, before it is sent: such as a proof made for it.

        Args:
            headers: As for `ClientEndpoint`.

        Raises:
            ValueError: As for `ClientEndpoint`. Nothing was added.

        Source: RFC 9449, section 7.
        """
        self._exchange.headers += read_headers(headers)

    # -------------------------------------------------------------------- from the transport

    def receive_head(
        self,
        status: int,
        headers: GivenHeaders,
        *,
        now: float | None = None,
        at: float | None = None,
    ) -> None:
        """Take the head of the response.

        Args:
            status: The status. Those below 200 are interim responses, and are passed over.
            headers: A mapping, or pairs, of names in any case and values, as text or bytes.
            now: The caller's clock in seconds.
            at: The time in Unix seconds, for headers that hold a date; None: the server's clock.
        """
        self._exchange.receive_head(status, headers, now, at)

    def receive_data(
        self, data: bytes | bytearray | memoryview, *, now: float | None = None
    ) -> None:
        """Take the next bytes of the body, cut anywhere.

        Args:
            data: Any number of bytes, after the decoding of chunks.
            now: The caller's clock in seconds.
        """
        self._exchange.receive_data(data, now)

    def receive_end(self, *, now: float | None = None) -> None:
        """Take the end of a complete response. Spare calls do nothing."""
        self._exchange.receive_end(now)

    def receive_failure(self, text: str, *, now: float | None = None, kept: bool = False) -> None:
        """Take the news that the request could not be made, or that the response broke off.

        Spare calls do nothing.

        Args:
            text: What happened, in one sentence. Events contain it, so it must hold no secrets.
            now: The caller's clock in seconds.
            kept: The connection had carried exchanges before, and was closed before any byte of
                this response came. Servers close idle connections, and may have done so before
                the request arrived. If it is safe, the exchange is then made once more: a GET, a
                DELETE, and messages that have the same effect if the server gets them twice. A
                `tools/call` is not one of them, and ends as lost.

        Source: RFC 9110, section 9.2.2; RFC 9112, section 9.3.1.
        """
        self._exchange.receive_failure(text, now, kept=kept)


class ExchangeJudge(Protocol):
    """Decides what the status of a response means, and which part handles it."""

    def judge_head(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Decide what the head of a response means, and how its body is read."""
        ...

    def judge_refusal(self, exchange: ClientExchangeCore, head: Head, body: bytes) -> None:
        """Decide what a response with a status that refuses the request means."""
        ...


@attrs.define(eq=False, repr=False)
class ExchangeOwner:
    """The purpose of an exchange: a message to POST, or a stream.

    An owner has one exchange after another until it is over: its exchange may be redirected, be
    refused for lack of credentials, or break off and be resumed. The defaults are those of a stream
    that GET asks for.

    Attributes:
        challenged: How often in a row the server wanted authorization.
        exchange: The current exchange; None: there is none now.
        held_since: When it began to wait for credentials; None: it does not wait.
        is_modern: It belongs to the modern revision, whose headers repeat what the message says.
        over: Everything that still comes is ignored.
        queue: The queue of exchanges.
        redirects: How often in a row the server has redirected the exchange.
        repeated: The exchange was sent again, since the connection was closed as it was sent.
        retries: When the stream is resumed, and where; None: it cannot be resumed.
        url: The URL to which the server has redirected the exchange; None: the usual one.
    """

    queue: ExchangeQueue
    is_modern: bool = attrs.field(default=False, kw_only=True)
    challenged: int = attrs.field(default=0, kw_only=True)
    exchange: ClientExchangeCore | None = attrs.field(default=None, kw_only=True)
    held_since: float | None = attrs.field(default=None, kw_only=True)
    over: bool = attrs.field(default=False, kw_only=True)
    redirects: int = attrs.field(default=0, kw_only=True)
    repeated: bool = attrs.field(default=False, kw_only=True)
    retries: StreamRetries | None = attrs.field(default=None, kw_only=True)
    url: URL | None = attrs.field(default=None, kw_only=True)

    @property
    def request(self) -> Asked | None:
        """The handle that the application holds for this message or stream; else None."""
        return None

    @property
    def awaited(self) -> bool:
        """Whether a request, which may be the library's own, waits for the response."""
        return False

    @property
    def ends_task(self) -> bool:
        """Whether the message cancels a task of the server, and has no answer yet."""
        return False

    @property
    def may_repeat(self) -> bool:
        """Whether the exchange may be made once more although the server may have received it.

        GET and DELETE are idempotent. A repetition that fails is not repeated (RFC 9110, 9.2.2).
        """
        return not self.repeated

    @property
    def asker(self) -> ClientExchangeCore | None:
        """The exchange on whose stream the server sent the request that this message answers."""
        return None

    def resumes(self, exchange: ClientExchangeCore) -> bool:
        """Whether another exchange goes on with the stream, should this one fail now."""
        return False

    # -------------------------------------------------------------------------------- sending

    def send(self) -> None:
        """Put the next exchange in line."""
        self.get()

    def get(self) -> None:
        """Put a GET in line that opens the stream, or resumes it where that is possible."""
        url = self.url or self.queue.core.url
        purpose = ExchangePurpose.RESUME if self.last_event_id else ExchangePurpose.GET
        self.queue.add(ClientExchangeCore(self, self.queue, "GET", url, purpose))

    def fields(self, exchange: ClientExchangeCore) -> Headers:
        """Return the headers of an exchange, except those that all exchanges have.

        Keeps SSE-032, SSE-033.
        """
        id = event_id_value(self.last_event_id)
        return _ACCEPT_STREAM if id is None else (*_ACCEPT_STREAM, (b"last-event-id", id))

    @property
    def last_event_id(self) -> str:
        """The event after which the stream can be resumed; `""`: nowhere."""
        return "" if self.retries is None else self.retries.last_event_id

    def _timer_fired(self, subject: Timed) -> None:
        self.send()

    # ------------------------------------------------------------------------------ receiving

    def head(self, exchange: ClientExchangeCore, head: Head) -> None:
        """Take a head that is no redirect, no demand for authorization, and no lost session."""

    def whole(self, head: Head, body: bytes) -> None:
        """Take a complete body that is not read as a stream."""

    def event(self, exchange: ClientExchangeCore, item: ServerSentEvent | OverlongEvent) -> None:
        """Take an event of the stream."""

    def broken(self, exchange: ClientExchangeCore, text: str) -> None:
        """Take the end of an exchange that did not bring its response."""

    def unreadable(self, head: Head, text: str) -> None:
        """Take the news that the body cannot be read."""
        self.fail_with_status(head.status, text)

    def fail_with_status(self, status: int, text: str) -> None:
        """End as refused: the status of the response, and why it is of no use."""

    def lost(self, text: str) -> None:
        """End because the stream cannot be resumed."""


@attrs.define(eq=False, repr=False)
class ClientExchangeCore:
    """One HTTP request and the response to it, as the parts of an endpoint see them.

    Attributes:
        aborted: It was ended by this side before the response was complete.
        body: The body to send.
        head: The head of the response; None before it came.
        headers: The headers to send, once the exchange is given out.
        is_given_out: The caller has it.
        method: The HTTP method.
        over: It has ended, failed, or was aborted.
        owner: What it is made for.
        purpose: What it is for, as the caller sees it.
        queue: The queue that holds it.
        reading: How the body of the response is read.
        url: The URL to send it to.
        version: `RequestHeaders.version` as it was given out.
    """

    owner: ExchangeOwner
    queue: ExchangeQueue
    method: str
    url: URL
    purpose: ExchangePurpose
    body: bytes = b""
    aborted: bool = False
    head: Head | None = None
    headers: Headers = ()
    is_given_out: bool = False
    over: bool = False
    reading: Reading = _NOTHING
    version: int = 0
    _deadline: float | None = None
    _decoder: SSEDecoder | None = None
    _parts: list[bytes] | None = None
    _size: int = 0

    @property
    def awaited(self) -> bool:
        """Whether a request waits for the response."""
        return self.owner.awaited and self.owner.exchange is self

    @property
    def is_undecided(self) -> bool:
        """Whether a request was sent and waits, so far without any response."""
        return self.method == "POST" and self.head is None and self.awaited

    # -------------------------------------------------------------------- from the transport

    def receive_head(
        self, status: int, headers: GivenHeaders, now: float | None, at: float | None
    ) -> None:
        """Take the head of the response: see `ClientExchange`, as for all `receive_*`."""
        queue = self.queue
        if now is not None:
            queue.core.tell(now)
        if self.over or self.head is not None or status < 200:
            return
        if at is not None:
            queue.core.at = at
        self.head = head = Head(status, headers, at)
        self.owner.repeated = False
        queue.judge.judge_head(self, head)
        if self.reading is not _STREAM and not self.awaited:
            queue.close_later(self)
        queue.core.settle()

    def receive_data(self, data: bytes | bytearray | memoryview, now: float | None) -> None:
        """Take the next bytes of the body."""
        core = self.queue.core
        if now is not None:
            core.tell(now)
        if self.over or self.reading is _NOTHING:
            return
        if self._decoder is not None:
            self._feed(self._decoder, data)
        else:
            self._size += len(data)
            if self._size > core.config.max_message_bytes:
                self._refuse_body(data)
            elif self._parts is None:
                self._parts = [bytes(data)]
            else:
                self._parts.append(bytes(data))
        core.settle()

    def receive_end(self, now: float | None) -> None:
        """Take the end of a complete response."""
        core = self.queue.core
        if now is not None:
            core.tell(now)
        if self.over:
            return
        head, parts, reading = self.head, self._parts or (), self.reading
        self._end()
        if head is None:
            self.owner.broken(self, "the connection ended before a response came")
        elif reading is _STREAM:
            self.owner.broken(self, "the stream ended")
        elif reading is not _NOTHING:
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            if reading is _WHOLE:
                self.owner.whole(head, body)
            else:
                self.queue.judge.judge_refusal(self, head, body)
        core.settle()

    def receive_failure(self, text: str, now: float | None, *, kept: bool) -> None:
        """Take the news that the request could not be made, or that the response broke off."""
        core, owner = self.queue.core, self.owner
        if now is not None:
            core.tell(now)
        if self.over:
            return
        self._end()
        if kept and self.head is None and not owner.over:
            if owner.may_repeat:
                owner.repeated = True
                owner.send()
                core.settle()
                return
            text += _MAY_HAVE_RUN + (_REPEATED if owner.repeated else _NOT_REPEATED)
        if self.head is None or self.reading is not _NOTHING:
            owner.broken(self, text)
        core.settle()

    # --------------------------------------------------------------------------------- reading

    def read_whole(self) -> None:
        """Collect the body for `ExchangeOwner.whole`."""
        self.reading = _WHOLE

    def read_refusal(self) -> None:
        """Collect the body for `ExchangeJudge.judge_refusal`."""
        self.reading = _REFUSAL

    def read_stream(self) -> None:
        """Give each event of the body to `ExchangeOwner.event`."""
        self.reading = _STREAM
        limit = self.queue.core.config.max_message_bytes
        self._decoder = SSEDecoder(limit, self.owner.last_event_id)

    def _feed(self, decoder: SSEDecoder, data: bytes | bytearray | memoryview) -> None:
        owner = self.owner
        items = decoder.feed(data)
        retries = owner.retries
        if retries is not None and decoder.retry_ms is not None:
            retries.retry_ms = decoder.retry_ms
        for item in items:
            if retries is not None and (
                isinstance(item, OverlongEvent) or (item.data and item.type == "message")
            ):
                retries.advanced()  # events of other types say nothing of use
            if self.over:
                return  # an earlier event has ended the exchange
            owner.event(self, item)
        if not self.over and retries is not None:
            retries.reached(decoder.last_event_id)

    def _refuse_body(self, data: bytes | bytearray | memoryview) -> None:
        """Report that the body exceeds the limit, and end the exchange."""
        core, head = self.queue.core, self.head
        assert head is not None  # a body comes after it
        limit, length = core.config.max_message_bytes, head.length or 0
        size = length if length > limit else f"more than {limit}"
        text = f"the body has {size} bytes; the limit of Config.max_message_bytes is {limit}"
        first = self._parts[0] if self._parts else bytes(data)
        start = self.queue.headers.excerpt(first, core.session_id, over=limit)
        core.report(Breach("OWN-001", text), excerpt=start)
        self.owner.unreadable(head, text)
        self.abort()

    # --------------------------------------------------------------------------------- ending

    def expire(self) -> None:
        """End an exchange for whose rest nothing waits, and which did not end by itself."""
        is_read = self.reading is _WHOLE or self.reading is _REFUSAL
        self.abort()
        if is_read:
            self.owner.broken(self, "the rest of the response did not come")

    def abort(self) -> None:
        """End the exchange, and ignore everything that still comes."""
        if not self.over:
            self.aborted = True
            self._end()

    def _end(self) -> None:
        self.over = True
        self._parts = None
        self.queue.remove(self)


@attrs.define(eq=False, repr=False)
class ExchangeQueue:
    """The exchanges of an endpoint.

    Attributes:
        barrier: The message that is sent before all others: `notifications/initialized`, until the
            server has it.
        core: What all parts of the endpoint share.
        headers: The headers of all requests.
        held: Owners whose exchange waits until the application supplies credentials.
        judge: Decides what responses mean.
        moved: Requests of a lost session that wait for the next session.
        standalone: The stream for messages that belong to no request; None: there is none.
    """

    core: ClientEndpointCore
    headers: RequestHeaders
    barrier: ExchangeOwner | None = attrs.field(default=None, init=False)
    held: dict[ExchangeOwner, AuthorizationRequired] = attrs.field(
        factory=dict[ExchangeOwner, AuthorizationRequired], init=False
    )
    judge: ExchangeJudge = attrs.field(init=False)
    moved: dict[ExchangeOwner, None] = attrs.field(factory=dict[ExchangeOwner, None], init=False)
    standalone: ExchangeOwner | None = attrs.field(default=None, init=False)
    _waiting: OrderedDict[ClientExchangeCore, None] = attrs.field(
        factory=OrderedDict[ClientExchangeCore, None], init=False
    )
    _live: dict[ClientExchangeCore, ClientExchange] = attrs.field(
        factory=dict[ClientExchangeCore, ClientExchange], init=False
    )
    # Streams of abandoned requests, which are read for a little longer.
    _trailing: dict[ClientExchangeCore, None] = attrs.field(
        factory=dict[ClientExchangeCore, None], init=False
    )
    _aborted: list[ClientExchange] = attrs.field(factory=list[ClientExchange], init=False)

    def __attrs_post_init__(self) -> None:
        self.core.work = self

    # -------------------------------------------------------------------------- to the caller

    def take(self) -> ClientExchange | None:
        """Give out the next exchange; None: there is none now."""
        if not self._has_next():
            if not self._aborted:
                self.core.told_work = False
            return None
        exchange, _ = self._waiting.popitem(last=False)
        core = self.core.machine.core
        core.unsent -= len(exchange.body)
        exchange.is_given_out = True
        exchange.version = self.headers.version
        exchange.headers = self._headers_of(exchange)
        self._live[exchange] = face = ClientExchange(exchange)
        return face

    def take_aborted(self) -> list[ClientExchange]:
        """Return the exchanges that were given out and aborted since the last call."""
        aborted, self._aborted = self._aborted, []
        if not self._has_next():
            self.core.told_work = False
        return aborted

    def is_there(self) -> bool:
        """Whether `take` or `take_aborted` has something for the caller now."""
        return bool(self._aborted) or self._has_next()

    @property
    def under_way(self) -> tuple[ClientExchange, ...]:
        """The exchanges that were given out and are not over, oldest first."""
        return tuple(self._live.values())

    def face_of(self, exchange: ClientExchangeCore) -> ClientExchange | None:
        """The exchange as it was given out; None: it was not, or is over."""
        return self._live.get(exchange)

    def _has_next(self) -> bool:
        """Whether the first waiting exchange may be given out now."""
        waiting = self._waiting
        return (
            bool(waiting)
            and (self.barrier is None or next(iter(waiting)).owner is self.barrier)
            # One exchange for each request, as many for other messages, and a few for streams.
            and len(self._live) < 2 * self.core.config.max_requests + _SPARE
        )

    def _headers_of(self, exchange: ClientExchangeCore) -> Headers:
        fields = exchange.owner.fields(exchange)
        if exchange.owner.is_modern:
            return self.headers.modern(fields)
        revision = self.core.machine.core.peer.revision
        return self.headers.legacy(fields, revision, self.core.session_id)

    # ----------------------------------------------------------------------------- for owners

    def add(self, exchange: ClientExchangeCore) -> None:
        """Put an exchange in line; it becomes the current one of its owner."""
        owner = exchange.owner
        owner.exchange = exchange
        self.core.machine.core.unsent += len(exchange.body)
        self._waiting[exchange] = None
        if owner is self.barrier:
            self._waiting.move_to_end(exchange, last=False)

    def remove(self, exchange: ClientExchangeCore) -> None:
        """Take an exchange that is over out of all tables."""
        self.core.timers.drop(exchange)
        self._trailing.pop(exchange, None)
        if exchange.is_given_out:
            face = self._live.pop(exchange)
            if exchange.aborted:
                self._aborted.append(face)
        else:
            del self._waiting[exchange]
            self.core.machine.core.unsent -= len(exchange.body)
        if exchange.owner.exchange is exchange:
            exchange.owner.exchange = None

    def passed(self, owner: ExchangeOwner) -> None:
        """Let other messages go: the server has the first message, or will never have it."""
        if self.barrier is owner:
            self.barrier = None

    def drop(self, owner: ExchangeOwner) -> None:
        """End an owner and its exchange, and ignore everything that still comes."""
        owner.over = True
        self.held.pop(owner, None)
        if owner.retries is not None:
            owner.retries.stop()
        if owner.exchange is not None:
            owner.exchange.abort()

    def drop_all(self, but: Collection[ExchangeOwner] = ()) -> None:
        """End all exchanges and owners except `but`."""
        self.barrier = None
        for exchange in [*self._live, *self._waiting]:
            if exchange.owner not in but:
                self.drop(exchange.owner)
                exchange.abort()
        owners = [*self.held] if self.standalone is None else [*self.held, self.standalone]
        self.standalone = None
        for owner in owners:
            self.drop(owner)

    def ends_of_tasks(self) -> list[ExchangeOwner]:
        """Return the owners of exchanges that cancel tasks of the server."""
        exchanges = [*self._live, *self._waiting]
        return [exchange.owner for exchange in exchanges if exchange.owner.ends_task]

    def undecided(self) -> list[ExchangeOwner]:
        """Return the owners of requests under way to which no response has come."""
        return [exchange.owner for exchange in self._live if exchange.is_undecided]

    def unsent(self) -> list[ExchangeOwner]:
        """Return the owners of the exchanges that were not given out yet."""
        return [exchange.owner for exchange in self._waiting]

    # ------------------------------------------------------------------------------- responses

    def close_later(self, exchange: ClientExchangeCore) -> None:
        """Close an exchange that nothing waits for, unless it ends by itself before."""
        now = self.core.now
        if now is not None and not exchange.over:
            self.core.timers.arm(self, exchange, now + _LINGER)

    def read_on(self, exchange: ClientExchangeCore) -> None:
        """Read the stream of an abandoned request for a little longer, in a legacy session.

        Some servers and gateways send the next notifications on it. Nothing waits for its end, so
        only a few are kept, and each for a short time.
        """
        core = self.core.machine.core
        if core.now is None or core.state is not State.OPEN:
            exchange.abort()
            return
        if len(self._trailing) == _MAX_TRAILING:
            next(iter(self._trailing)).abort()
        self._trailing[exchange] = None
        self.core.timers.arm(self, exchange, core.now + _TRAILING)

    def _timer_fired(self, subject: Timed) -> None:
        assert isinstance(subject, ClientExchangeCore)  # an owner that waits has its own deadline
        subject.expire()
