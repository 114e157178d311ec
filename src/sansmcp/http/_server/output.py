"""What goes out on one exchange: a head, pieces of a body, and an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs

from ..._wire.values import Record
from .._headers import Headers

if TYPE_CHECKING:
    from .connection import SessionConnection
    from .endpoint import ServerEndpoint
    from .reply import Reply
    from .streams import Stream

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
    """Send this status and these fields; their names are in lower case."""

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


def plain_response(status: int, text: str, common: Headers) -> tuple[int, Headers, bytes]:
    """A response with one sentence of text, for a person to read."""
    body = text.encode() + b"\n"
    return status, (_TEXT, (b"content-length", b"%d" % len(body)), *common), body


Sent: TypeAlias = SendHead | SendBody | SendEnd


class Output:
    """The response of an exchange, put together here and taken piece by piece."""

    __slots__ = (
        "__weakref__",
        "_behind",
        "_common",
        "_endpoint",
        "_headers",
        "_is_resting",
        "_ledger",
        "_over",
        "_pieces",
        "_status",
        "_taken",
        "_whole",
        "_written_at",
        "is_stream",
    )

    # The exchange sets them all: one is made for every request, and two initialisers cost more.
    _endpoint: ServerEndpoint
    _ledger: SessionConnection | Reply | None  # which counts what waits to be sent
    _status: int  # 0: there is none yet
    _taken: int  # 1: the head was taken, 2: the end was, too
    _pieces: list[bytes]
    _behind: Stream | None  # of which the event log has more than was taken here
    _over: bool
    _whole: tuple[int, Headers, bytes] | None  # which `response` has given
    is_stream: bool

    # When they are needed first.
    _common: Headers  # fields of every response to this request
    _headers: Headers
    _written_at: float | None
    _is_resting: bool  # a part of what was missed was taken, and is to be sent before the next one

    # ------------------------------------------------------------------------------ to the caller

    def next_output(self) -> Sent | None:
        """Take what is to be sent next; None means that there is nothing now."""
        if self._taken == 0:
            if self._status == 0:
                return None
            self._taken = 1
            return SendHead(self._status, self._headers)
        if self._pieces:
            return SendBody(self._take())
        if self._over and self._taken == 1:
            self._taken = 2
            self._endpoint._ready.pop(self, None)
            return SendEnd()
        if self._behind is not None:
            return self._catch_up(self._behind)
        return None

    def _catch_up(self, stream: Stream) -> Sent | None:
        """What was missed, in portions: in between there is nothing, so that each can be sent."""
        if self._is_resting:
            self._is_resting = False
            self._endpoint._ready[self] = None
            self._endpoint._settle()
            return None
        while not (data := stream.missed()):
            behind = self._behind
            if behind is None or self._pieces:
                return self.next_output()  # of which it may be the end
            stream = behind  # one stream after another whose events are lost
        self._is_resting = self._behind is not None
        self._written_at = self._endpoint._now
        return SendBody(data)

    def response(self) -> tuple[int, Headers, bytes] | None:
        """The whole response, for callers that have no use for a part of it.

        Returns:
            Status, header fields and body, once it is complete, and the same from then on; else
            None, as after `next_output`. A stream that stays open is never complete.
        """
        if self._whole is not None:
            return self._whole
        while (
            self._behind is not None
            and self._behind.over
            and not self._behind.listens
            and not self._taken
        ):
            self._pieces.append(self._behind.missed())
        if not self._over or self._status == 0 or self._taken:
            return None
        self._taken = 2
        self._endpoint._ready.pop(self, None)
        body = self._take() if self._pieces else b""
        self._whole = whole = self._status, self._headers, body
        return whole

    def _take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self._ledger is not None:
            self._ledger.taken(len(data))
            if self._endpoint._wake is not None:
                self._endpoint._settle()  # what waited for room may go out on another exchange
        return data

    # ------------------------------------------------------------------------------- composing

    def _answer(self, status: int, body: bytes, more: Headers = ()) -> None:
        """The whole response: a body of JSON, or none."""
        self._status = status
        if body:
            size = len(body)
            self._headers = (_JSON, (b"content-length", b"%d" % size))
            if more or self._common:
                self._headers += more + self._common
            self._pieces.append(body)
            if self._ledger is not None:
                self._ledger.waits(size)
        else:
            self._headers = (() if status == 204 else _NO_BODY) + more + self._common
        self._over = True
        self._endpoint._ready[self] = None

    def _begin_stream(self) -> None:
        # Keeps HTTP-025.
        self.is_stream = True
        self._status = 200
        self._headers = _STREAM + self._common
        self._written_at = self._endpoint._now
        self._endpoint._ready[self] = None

    def _write(self, data: bytes) -> None:
        """A piece of the stream."""
        ledger = self._ledger
        assert ledger is not None  # as long as it goes on
        self._pieces.append(data)
        ledger.waits(len(data))
        self._written_at = self._endpoint._now
        self._endpoint._ready[self] = None

    def _drop(self) -> None:
        """Forget what waits: nobody will read it."""
        pieces, self._pieces = self._pieces, []
        if self._ledger is not None:
            self._ledger.taken(sum(map(len, pieces)))
