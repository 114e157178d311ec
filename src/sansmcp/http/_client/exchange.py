"""One HTTP request of a client, and the response to it: bytes in, and what they are for."""

from __future__ import annotations

import enum
from typing import Final, Protocol, final

from ..._connection.timers import Timed
from ..._rules.sending import Breach
from .._headers import GivenHeaders, Headers
from .._sse import OverlongEvent, ServerSentEvent, SSEDecoder
from .core import EndpointCore
from .events import Asked
from .headers import RequestHeaders, event_id_value
from .response_head import Head
from .retries import StreamRetries
from .urls import URL, Origin

_MAY_HAVE_RUN = (
    ". The connection had carried earlier requests. Whether the server ran this one is not known. "
)
_NOT_REPEATED = "It was not sent again."
_REPEATED = "It was sent again once, and is not sent a third time."
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

    def __init__(self, exchange: ExchangeCore) -> None:
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
        """The handle of what the application has asked for by this exchange, if anything.

        An exchange that resumes a stream has the handle of the request that the stream answers.
        """
        return self._exchange.owner.request

    @property
    def awaited(self) -> bool:
        """Whether a request waits for its answer, with the timeout that the request was given."""
        return self._exchange.awaited

    @property
    def is_stream(self) -> bool:
        """Whether the response is an event stream, which may be silent for long."""
        return self._exchange.reading is _STREAM

    def __repr__(self) -> str:  # the query may hold a secret, and headers do
        url, purpose = self._exchange.url, self._exchange.purpose
        path = url.target.partition("?")[0]
        return f"<ClientExchange {self.method} {url.authority}{path} {purpose.name}>"

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
            text: What happened, in one sentence. It stands in events: no secrets.
            now: The caller's clock in seconds.
            kept: The connection had carried exchanges before, and was closed before any byte of
                this response came. Servers close idle connections, and may have done so before
                the request arrived. It is then made once more where that is safe: a GET, a
                DELETE, and messages that have the same effect if the server gets them twice. A
                `tools/call` is not one of them, and ends as lost.

        Source: RFC 9110, section 9.2.2; RFC 9112, section 9.3.1.
        """
        self._exchange.receive_failure(text, now, kept=kept)


class HeadJudge(Protocol):
    """Decides what responses mean."""

    def judge_head(self, exchange: ExchangeCore, head: Head) -> None:
        """Decide what the head of a response means, and how its body is read."""
        ...

    def judge_refusal(self, exchange: ExchangeCore, head: Head, body: bytes) -> None:
        """Decide what a response with a status that refuses the request means."""
        ...


class ExchangeHost(Protocol):
    """What an exchange and its owner need of the queue that holds the exchange.

    Attributes:
        core: What all parts of the endpoint share.
        headers: The headers of the caller, whose secrets no excerpt shows.
        judge: Decides what responses mean.
    """

    core: EndpointCore
    headers: RequestHeaders
    judge: HeadJudge

    def add(self, exchange: ExchangeCore) -> None:
        """Put an exchange in line; it becomes the current one of its owner."""
        ...

    def close_later(self, exchange: ExchangeCore) -> None:
        """Close an exchange that nothing waits for, unless it ends by itself before."""
        ...

    def remove(self, exchange: ExchangeCore) -> None:
        """Take an exchange that is over out of all tables."""
        ...


class ExchangeOwner:
    """What an exchange is made for: a message to POST, or a stream.

    An owner has one exchange after another until it is over: its exchange may be redirected, be
    refused for want of credentials, or break off and be resumed. The defaults are those of a stream
    that GET asks for.

    Attributes:
        challenged: How often in a row the server wanted authorization.
        exchange: The current exchange; None: there is none now.
        host: The queue of exchanges.
        is_modern: It belongs to the modern revision, whose headers repeat what the message says.
        over: Nothing that still comes is of use.
        redirects: How often in a row the server has redirected the exchange.
        repeated: The exchange was sent again, since the connection was closed as it was sent.
        retries: When the stream is resumed, and where; None for what is no such stream.
        url: The URL to which the server has redirected the exchange; None: the usual one.
    """

    __slots__ = (
        "challenged",
        "exchange",
        "host",
        "is_modern",
        "over",
        "redirects",
        "repeated",
        "retries",
        "url",
    )

    def __init__(self, host: ExchangeHost, *, is_modern: bool = False) -> None:
        self.host: ExchangeHost = host
        self.is_modern: bool = is_modern
        self.exchange: ExchangeCore | None = None
        self.url: URL | None = None
        self.over: bool = False
        self.redirects: int = 0
        self.repeated: bool = False
        self.challenged: int = 0
        self.retries: StreamRetries | None = None

    @property
    def request(self) -> Asked | None:
        """The handle of what the application has asked for by this message or stream."""
        return None

    @property
    def awaited(self) -> bool:
        """Whether a request, which may be the library's own, waits for what it brings."""
        return False

    @property
    def may_repeat(self) -> bool:
        """Whether the exchange may be made once more although the server may have received it.

        GET and DELETE are idempotent. A repetition that fails is not repeated (RFC 9110, 9.2.2).
        """
        return not self.repeated

    # -------------------------------------------------------------------------------- sending

    def send(self) -> None:
        """Put the next exchange in line."""
        self.get()

    def get(self) -> None:
        """Put a GET in line that opens the stream, or resumes it where that is possible."""
        url = self.url or self.host.core.url
        purpose = ExchangePurpose.RESUME if self.last_event_id else ExchangePurpose.GET
        self.host.add(ExchangeCore(self, self.host, "GET", url, purpose))

    def fields(self, exchange: ExchangeCore) -> Headers:
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

    def head(self, exchange: ExchangeCore, head: Head) -> None:
        """Take a head that is no redirect, no demand for authorization, and no lost session."""

    def whole(self, head: Head, body: bytes) -> None:
        """Take a complete body that is not read as a stream."""

    def event(self, exchange: ExchangeCore, item: ServerSentEvent | OverlongEvent) -> None:
        """Take an event of the stream."""

    def broken(self, exchange: ExchangeCore, text: str) -> None:
        """Take the end of an exchange that did not bring what it was for."""

    def unreadable(self, head: Head, text: str) -> None:
        """Take the news that the body came in a form that cannot be read."""
        self.give_up(head.status, text)

    def give_up(self, status: int, text: str) -> None:
        """End because the server wants something that it is not given."""

    def lost(self, text: str) -> None:
        """End because the stream cannot be resumed."""


class ExchangeCore:
    """One HTTP request and the response to it, as the parts of an endpoint see them.

    Attributes:
        aborted: It was ended by this side before the response was complete.
        body: The body to send.
        head: The head of the response; None before it came.
        headers: The headers to send, once the exchange is given out.
        host: The queue that holds it.
        is_given_out: The caller has it.
        method: The HTTP method.
        over: It has ended, failed, or was aborted.
        owner: What it is made for.
        purpose: What it is for, as the caller sees it.
        reading: How the body of the response is read.
        url: The URL to send it to.
        version: `RequestHeaders.version` as it was given out.
    """

    __slots__ = (
        "_deadline",
        "_decoder",
        "_parts",
        "_size",
        "aborted",
        "body",
        "head",
        "headers",
        "host",
        "is_given_out",
        "method",
        "over",
        "owner",
        "purpose",
        "reading",
        "url",
        "version",
    )

    def __init__(
        self,
        owner: ExchangeOwner,
        host: ExchangeHost,
        method: str,
        url: URL,
        purpose: ExchangePurpose,
        body: bytes = b"",
    ) -> None:
        self.owner: ExchangeOwner = owner
        self.host: ExchangeHost = host
        self.method: str = method
        self.url: URL = url
        self.purpose: ExchangePurpose = purpose
        self.body: bytes = body
        self.headers: Headers = ()
        self.version: int = 0
        self.is_given_out: bool = False
        self.over: bool = False
        self.aborted: bool = False
        self.head: Head | None = None
        self.reading: Reading = _NOTHING
        self._parts: list[bytes] = []
        self._size = 0
        self._decoder: SSEDecoder | None = None
        self._deadline: float | None = None

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
        host = self.host
        if now is not None:
            host.core.tell(now)
        if self.over or self.head is not None or status < 200:
            return
        self.head = head = Head(status, headers, at)
        self.owner.repeated = False
        host.judge.judge_head(self, head)
        if self.reading is not _STREAM and not self.awaited:
            host.close_later(self)
        host.core.settle()

    def receive_data(self, data: bytes | bytearray | memoryview, now: float | None) -> None:
        """Take the next bytes of the body."""
        core = self.host.core
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
            else:
                self._parts.append(bytes(data))
        core.settle()

    def receive_end(self, now: float | None) -> None:
        """Take the end of a complete response."""
        core = self.host.core
        if now is not None:
            core.tell(now)
        if self.over:
            return
        head, parts, reading = self.head, self._parts, self.reading
        self._end()
        if head is None:
            self.owner.broken(self, "the connection ended before there was an answer")
        elif reading is _STREAM:
            self.owner.broken(self, "the stream ended")
        elif reading is not _NOTHING:
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            if reading is _WHOLE:
                self.owner.whole(head, body)
            else:
                self.host.judge.judge_refusal(self, head, body)
        core.settle()

    def receive_failure(self, text: str, now: float | None, *, kept: bool) -> None:
        """Take the news that the request could not be made, or that the response broke off."""
        core, owner = self.host.core, self.owner
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
        """Collect the body for `HeadJudge.judge_refusal`."""
        self.reading = _REFUSAL

    def read_stream(self) -> None:
        """Give each event of the body to `ExchangeOwner.event`."""
        self.reading = _STREAM
        limit = self.host.core.config.max_message_bytes
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
        core, head = self.host.core, self.head
        assert head is not None  # a body comes after it
        limit, length = core.config.max_message_bytes, head.length or 0
        size = length if length > limit else f"more than {limit}"
        text = f"the body has {size} bytes; the limit of Config.max_message_bytes is {limit}"
        first = self._parts[0] if self._parts else bytes(data)
        start = self.host.headers.excerpt(first, core.session_id, over=limit)
        core.report(Breach("OWN-001", text), excerpt=start)
        self.owner.unreadable(head, text)
        self.abort()

    # --------------------------------------------------------------------------------- ending

    def expire(self) -> None:
        """End an exchange whose rest nothing waited for, and did not come."""
        is_read = self.reading is _WHOLE or self.reading is _REFUSAL
        self.abort()
        if is_read:
            self.owner.broken(self, "the rest of the response did not come")

    def abort(self) -> None:
        """End the exchange, whatever still comes."""
        if not self.over:
            self.aborted = True
            self._end()

    def _end(self) -> None:
        self.over = True
        self._parts = []
        self.host.remove(self)
