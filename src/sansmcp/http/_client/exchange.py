"""One HTTP request of a client, and the response to it: bytes in, and whose they are."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, final

from ..._rules.sending import Breach
from .._headers import GivenHeaders, Headers
from .._sse import OverlongEvent, SSEDecoder
from .events import Asked
from .response_head import Head
from .urls import URL, Origin

if TYPE_CHECKING:
    from .retries import Lane

_MAY_HAVE_RUN = (
    ". The connection had carried earlier requests. Whether the server ran this one is not known. "
)
_NOT_REPEATED = "It was not sent again."
_REPEATED = "It was sent again once, and is not sent a third time."


@final
class ExchangePurpose(enum.Enum):
    """What an exchange is for."""

    POST = "a message"
    CANCEL = "a message that cancels a request"
    GET = "a stream for what belongs to no request"
    RESUME = "the rest of a stream"
    DELETE = "the end of a session"


class Reading(enum.Enum):
    """What becomes of the body of a response."""

    NOTHING = 0
    WHOLE = 1
    STREAM = 2


@final
class ClientExchange:
    """One HTTP request that a client has to make; given out by `ClientEndpoint.next_exchange`.

    It says what to send, and is told what comes back: a head, pieces of a body, and its end, or a
    failure. The methods `receive_*` never raise for what the peer did.

    Attributes:
        aborted: Close the connection of this exchange now, in the midst of it if need be.
        body: The body to send; empty where there is none.
        headers: The fields to send, names in lower case. `Host`, `Content-Length` and
            `Connection` are added by who sends them.
        method: `POST`, `GET` or `DELETE`.
        over: Nothing more is expected: it has ended, failed, or was aborted.
        purpose: What it is for.
    """

    __slots__ = (
        "__weakref__",
        "_deadline",
        "_decoder",
        "_given_out",
        "_head",
        "_lane",
        "_parts",
        "_reading",
        "_size",
        "_url",
        "_version",
        "aborted",
        "body",
        "headers",
        "method",
        "over",
        "purpose",
    )

    def __init__(
        self, lane: Lane, method: str, url: URL, purpose: ExchangePurpose, body: bytes = b""
    ) -> None:
        self._lane = lane
        self._url = url
        self._version = 0  # of the caller's fields, which may change
        self._given_out = False
        self._head: Head | None = None
        self._reading = Reading.NOTHING
        self._parts: list[bytes] = []
        self._size = 0
        self._decoder: SSEDecoder | None = None
        self._deadline: float | None = None
        self.method: str = method
        self.headers: Headers = ()
        self.body: bytes = body
        self.purpose: ExchangePurpose = purpose
        self.over: bool = False
        self.aborted: bool = False

    # ------------------------------------------------------------------------------- looking

    @property
    def url(self) -> str:
        """The whole URL."""
        return self._url.text

    @property
    def origin(self) -> Origin:
        """Whom to connect to. It is the same for all exchanges of an endpoint."""
        return self._url.origin

    @property
    def authority(self) -> str:
        """The value of `Host`."""
        return self._url.authority

    @property
    def target(self) -> str:
        """Path and query, as in a request line."""
        return self._url.target

    @property
    def request(self) -> Asked | None:
        """What the application has asked for by it, or what it brings the rest of the answer to."""
        return self._lane.request

    @property
    def awaited(self) -> bool:
        """Whether a request waits for its answer: that one has the time that it was given."""
        return self._lane.awaited and self._lane.exchange is self

    @property
    def is_stream(self) -> bool:
        """Whether the response is an event stream, which may say nothing for long."""
        return self._reading is Reading.STREAM

    def __repr__(self) -> str:  # the query may hold a secret, and fields do
        path = self._url.target.partition("?")[0]
        return f"<ClientExchange {self.method} {self._url.authority}{path} {self.purpose.name}>"

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
            status: The status. Those below 200 are not the answer yet, and are passed over.
            headers: A mapping, or pairs, of names in any case and values, as text or bytes.
            now: The caller's clock in seconds.
            at: The time in Unix seconds, for fields that name one; None: the server's own clock.
        """
        endpoint = self._lane.endpoint
        if now is not None:
            endpoint._tell(now)
        if self.over or self._head is not None or status < 200:
            return
        self._head = head = Head(status, headers, at)
        self._lane.repeated = False
        endpoint._judge_head(self, head)
        if not (self.awaited or self.is_stream):
            endpoint._linger(self)
        endpoint._settle()

    def receive_data(
        self, data: bytes | bytearray | memoryview, *, now: float | None = None
    ) -> None:
        """Take the next bytes of the body, cut anywhere.

        Args:
            data: Any number of bytes, after the decoding of chunks.
            now: The caller's clock in seconds.
        """
        endpoint = self._lane.endpoint
        if now is not None:
            endpoint._tell(now)
        if self.over or self._reading is Reading.NOTHING:
            return
        if self._decoder is not None:
            self._feed(self._decoder, data)
        else:
            self._size += len(data)
            if self._size > endpoint._config.max_message_bytes:
                limit = endpoint._config.max_message_bytes
                assert self._head is not None  # a body comes after it
                length = self._head.length or 0
                size = length if length > limit else f"more than {limit}"
                text = (
                    f"the body has {size} bytes; the limit of Config.max_message_bytes is {limit}"
                )
                first = self._parts[0] if self._parts else bytes(data)
                start = endpoint._excerpt(first, over=limit)
                endpoint._report(Breach("OWN-001", text), excerpt=start)
                self._lane.unreadable(self._head, text)
                self._abort()
            else:
                self._parts.append(bytes(data))
        endpoint._settle()

    def receive_end(self, *, now: float | None = None) -> None:
        """The response is complete. Spare calls do nothing."""
        endpoint = self._lane.endpoint
        if now is not None:
            endpoint._tell(now)
        if self.over:
            return
        self._end()
        head, parts, reading = self._head, self._parts, self._reading
        self._parts = []
        if head is None:
            self._lane.broken(self, "the connection ended before there was an answer")
        elif reading is Reading.STREAM:
            self._lane.broken(self, "the stream ended")
        elif reading is Reading.WHOLE:
            self._lane.whole(head, parts[0] if len(parts) == 1 else b"".join(parts))
        endpoint._settle()

    def receive_failure(self, text: str, *, now: float | None = None, kept: bool = False) -> None:
        """The request could not be made, or the response broke off. Spare calls do nothing.

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
        endpoint = self._lane.endpoint
        if now is not None:
            endpoint._tell(now)
        if self.over:
            return
        self._end()
        self._parts = []
        lane = self._lane
        if kept and self._head is None and not lane.over:
            if lane.may_repeat:
                lane.repeated = True
                lane.send()
                endpoint._settle()
                return
            text += _MAY_HAVE_RUN + (_REPEATED if lane.repeated else _NOT_REPEATED)
        if self._head is None or self._reading is not Reading.NOTHING:
            self._lane.broken(self, text)
        endpoint._settle()

    # --------------------------------------------------------------------------- for the lanes

    @property
    def _is_undecided(self) -> bool:
        """Whether a message was sent, and a request waits for any response to it."""
        return self.method == "POST" and self._head is None and self.awaited

    def _read_whole(self) -> None:
        self._reading = Reading.WHOLE

    def _read_stream(self, last_event_id: str) -> None:
        self._reading = Reading.STREAM
        limit = self._lane.endpoint._config.max_message_bytes
        self._decoder = SSEDecoder(limit, last_event_id)

    def _feed(self, decoder: SSEDecoder, data: bytes | bytearray | memoryview) -> None:
        lane = self._lane
        items = decoder.feed(data)
        if decoder.retry_ms is not None:
            lane.retry_ms = decoder.retry_ms
        for item in items:
            if isinstance(item, OverlongEvent) or (item.data and item.type == "message"):
                lane.advanced()  # events of other types say nothing of use
            if self.over:
                return  # one of the events before has ended all of it
            lane.event(self, item)
        if not self.over and decoder.last_event_id != lane.last_event_id:
            lane.advanced()
            lane.last_event_id = decoder.last_event_id

    def _expire(self) -> None:
        """Nobody has waited for the rest of it, and it has not come."""
        self._abort()
        if self._reading is Reading.WHOLE:
            self._lane.broken(self, "the rest of the response did not come")

    def _end(self) -> None:
        """It is over by itself."""
        self.over = True
        self._lane.endpoint._forget(self)

    def _abort(self) -> None:
        """It is over, whatever still comes."""
        if not self.over:
            self.over = self.aborted = True
            self._parts = []
            self._lane.endpoint._forget(self)
            if self._given_out:
                self._lane.endpoint._aborted.append(self)
