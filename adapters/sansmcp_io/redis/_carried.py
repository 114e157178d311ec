"""Exchanges that one worker has received and another one serves: one object on each side.

The bytes of a response go to the worker that asks as far as its client takes them: a client that
does not read has its own exchange wait, at the worker that serves it, where the usual limits on
unsent output hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import attrs

from sansmcp import JSONValue
from sansmcp.http import CarriedRequest, SendBody, SendHead, ServerExchange

from ._commands import Command
from ._entries import Entry, Kind, byte_headers, text_headers
from ._link import Link

PIECE_BYTES: Final = 64 * 1024
"""Bytes of a body in one entry."""
WINDOW_BYTES: Final = 256 * 1024
"""Bytes of a stream that may be on their way to a client that does not read."""


CARRIED_HEADERS: Final = frozenset(
    {
        *(b"accept", b"accept-language", b"baggage", b"content-encoding", b"content-type"),
        *(b"host", b"last-event-id", b"mcp-method", b"mcp-name", b"mcp-protocol-version"),
        *(b"mcp-session-id", b"origin", b"traceparent", b"tracestate", b"user-agent"),
    }
)
"""Headers that the other worker needs for its part, and those that tell nothing of credentials."""
_PARAM: Final = b"mcp-param-"


@attrs.frozen
class Sent:
    """An entry, and the command that sends it."""

    entry: Entry
    command: Command


class Carrier(Protocol):
    """The worker that carries an exchange."""

    @property
    def wires(self) -> dict[ServerExchange, Any]:
        """The objects that carry the output of exchanges."""
        ...

    @property
    def headers(self) -> frozenset[bytes]:
        """The names of headers that are carried."""
        ...

    def send(self, link: Link, kind: Kind, rest: Sequence[Any] = (), body: bytes = b"") -> Sent:
        """Send an entry."""
        ...

    def withdraw(self, link: Link, sent: Sent) -> bool:
        """Take back an entry, and return whether it was certainly not sent."""
        ...

    def now(self) -> float:
        """The time for calls into the endpoint."""
        ...


class CarriedOut:
    """An exchange of this worker that another one serves.

    Args:
        member: This worker.
        link: The other one.
        number: The number of the exchange, of this worker.
        exchange: The exchange.

    Attributes:
        link: The other worker.
        number: The number of the exchange.
        exchange: The exchange.
        asked: The number of the entry with the request; 0: it was not sent yet.
        asked_all: The number of the entry with its last part; 0: it was not sent yet.
    """

    def __init__(self, member: Carrier, link: Link, number: int, exchange: ServerExchange) -> None:
        self._member: Final = member
        self.link: Final = link
        self.number: Final = number
        self.exchange: Final = exchange
        self.asked = 0
        self.asked_all = 0
        self._sent: list[Sent] = []  # the parts of the request
        self._head: list[Any] = []
        self._body = b""
        self._at = 0  # so much of it was sent
        self._is_whole = False  # the response: it goes to the client when it is complete
        self._received = 0
        self._granted = 0
        link.carried_out[number] = self

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the request that were not sent yet."""
        return len(self._body) - self._at

    def ask(self, session_id: str, request: CarriedRequest, principal: JSONValue) -> None:
        """Send the request, as far as there is room."""
        names = self._member.headers
        headers = [
            (name, value)
            for name, value in request.headers
            if name in names or name.startswith(_PARAM)
        ]
        self._head = [
            session_id,
            request.method,
            request.target,
            text_headers(headers),
            request.principal_key,
            principal,
        ]
        self._body = request.body
        self.go_on()

    def go_on(self) -> None:
        """Send more of the request, as far as there is room."""
        link = self.link
        while self._head or self._at < len(self._body):
            if not link.has_room:
                link.stalled[self] = None
                return
            piece = self._body[self._at : self._at + PIECE_BYTES]
            self._at += len(piece)
            has_more = int(self._at < len(self._body))
            if self._head:
                head, self._head = self._head, []
                sent = self._member.send(link, Kind.REQUEST, (self.number, has_more, *head), piece)
                self.asked = sent.entry.number
            else:
                sent = self._member.send(link, Kind.REQUEST_BODY, (self.number, has_more), piece)
            self._sent.append(sent)
            if not has_more:
                self.asked_all = sent.entry.number
        self._body, self._at = b"", 0

    def respond(self, status: int, headers: Sequence[Sequence[str]]) -> bool:
        """The head of the response is there; False: the exchange was ended."""
        self._is_whole = any(name == "content-length" for name, _ in headers)
        return self.exchange.relay_head(status, byte_headers(headers), now=self._member.now())

    def take(self, body: bytes, has_more: int) -> bool:
        """Bytes of the body of the response are there; False: the exchange was ended."""
        now = self._member.now()
        if body:
            self._received += len(body)
            if not self.exchange.relay_body(body, now=now):
                return False
        if has_more:
            self.grant()
            return True
        self.forget()
        return self.exchange.relay_end(now=now)

    @property
    def owes_grant(self) -> bool:
        """Whether the other worker waits, or soon will, for a report of the bytes taken."""
        return not self._is_whole and self._received - self._granted >= WINDOW_BYTES // 2

    def grant(self) -> None:
        """Tell the other worker how much the client has taken, where that is much."""
        if self.owes_grant:
            taken = self._received - self.exchange.held_bytes
            if taken - self._granted >= WINDOW_BYTES // 2:
                self._granted = taken
                self._member.send(self.link, Kind.TAKEN, (self.number, taken))

    def forget(self) -> None:
        """Forget the exchange: no more entries for it are sent or expected."""
        self.link.carried_out.pop(self.number, None)
        self.link.stalled.pop(self, None)

    def withdraw(self) -> bool:
        """Take back the request, and return whether no part of it was sent, nor perhaps sent."""
        is_unsent = True
        for part in self._sent:
            is_unsent &= self._member.withdraw(self.link, part)
        self._sent.clear()
        return is_unsent

    def fail(self, text: str, retry_after: int | None = None) -> None:
        """End the exchange without the rest of the response.

        Args:
            text: The cause, for the client.
            retry_after: The seconds after which the request may be sent again; None: it may have
                been served.
        """
        self.forget()
        self.exchange.relay_failed(text, retry_after=retry_after, now=self._member.now())

    def refuse(self, text: str) -> None:
        """Say that there is no such session, before any part of the response has come."""
        self.forget()
        self.exchange.relay_failed(text, status=404, now=self._member.now())


class CarriedIn:
    """An exchange of another worker that this one serves. It carries the output of its exchange.

    Args:
        member: This worker.
        link: The other one.
        number: The number of the exchange, of the other worker.
        head: Session, method, target, headers, the key of the principal, and the principal.

    Attributes:
        link: The other worker.
        number: The number of the exchange.
        head: Session, method, target, headers, the key of the principal, and the principal.
        exchange: The exchange, once the request is complete.
        body: What came of the body.
    """

    def __init__(self, member: Carrier, link: Link, number: int, head: Sequence[Any]) -> None:
        self._member: Final = member
        self.link: Final = link
        self.number: Final = number
        self.head: Sequence[Any] = head
        self.exchange: ServerExchange | None = None
        self.body = bytearray()
        self._start: list[Any] = []  # status and headers, until they are sent
        self._has_started = False
        self._has_ended = False
        self._is_whole = False  # the client gets the response when it is complete
        self._data = b""
        self._at = 0  # so much of it was sent
        self._sent = 0
        self._taken = 0
        link.carried_in[number] = self

    def serve(self, exchange: ServerExchange) -> None:
        """The request is complete, and being served."""
        self.exchange = exchange
        self._member.wires[exchange] = self
        self.head, self.body = (), bytearray()

    def flush(self) -> None:
        """Send the output of the exchange, as far as there is room."""
        if self not in self.link.stalled:
            self.go_on()

    def go_on(self) -> None:
        """Send the output of the exchange, as far as there is room."""
        link = self.link
        while self._collect():
            data = self._data
            if not link.has_room:
                link.stalled[self] = None
                return
            is_behind = self._sent - self._taken >= WINDOW_BYTES
            if is_behind and self._at < len(data) and not self._is_whole:
                return
            piece = data if len(data) <= PIECE_BYTES else data[self._at : self._at + PIECE_BYTES]
            self._at += len(piece)
            self._sent += len(piece)
            has_more = int(not self._has_ended or self._at < len(data))
            if self._start:
                start, self._start = self._start, []
                self._member.send(link, Kind.RESPONSE, (self.number, has_more, *start), piece)
            else:
                self._member.send(link, Kind.RESPONSE_BODY, (self.number, has_more), piece)
            if not has_more:
                self.forget()
                return

    def _collect(self) -> bool:
        """Take output, if all that was taken before is sent; return whether there is some."""
        exchange = self.exchange
        if exchange is None or self.number not in self.link.carried_in:
            return False
        if self._at < len(self._data):
            return True
        pieces: list[bytes] = []
        size = self._at = 0
        while size < PIECE_BYTES and (output := exchange.next_output()) is not None:
            if isinstance(output, SendHead):
                headers = text_headers(output.headers)
                self._start = [output.status, headers]
                self._is_whole = any(name == "content-length" for name, _ in headers)
            elif isinstance(output, SendBody):
                pieces.append(output.data)
                size += len(output.data)
            else:
                self._has_ended = True
        self._data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return bool(self._start or pieces or self._has_ended)

    def take(self, taken: int) -> None:
        """Note the number of bytes of the response that the client has taken so far."""
        self._taken = max(taken, self._taken)
        self.flush()

    def refuse(self, text: str, retry_after: int = 0) -> None:
        """Tell the other worker that the request is not served.

        Args:
            text: The cause, for the client.
            retry_after: The seconds after which the client may send the request again; 0: that
                would not help.
        """
        self._member.send(self.link, Kind.FAILED, (self.number, text, retry_after))
        self.forget()

    def forget(self) -> None:
        """Forget the exchange: no more entries for it are sent."""
        self.link.carried_in.pop(self.number, None)
        self.link.stalled.pop(self, None)
        if self.exchange is not None:
            self._member.wires.pop(self.exchange, None)

    def lose(self) -> None:
        """The client is gone, or cannot be reached."""
        self.forget()
        if self.exchange is not None:
            self.exchange.receive_disconnect(now=self._member.now())
