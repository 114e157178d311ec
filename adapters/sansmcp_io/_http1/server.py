"""HTTP/1.1 for `sansmcp.http` without sockets, for any loop. h11 reads requests."""

from __future__ import annotations

import enum
import math
import re
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeAlias, final

from .._common.errors import without_extra

try:
    import h11
except ModuleNotFoundError as error:
    raise without_extra("h11", error) from None

from sansmcp.http import SendBody, SendEnd, SendHead, ServerEndpoint, ServerExchange

from .._common.http_server import HTTPLimits, Response
from .heads import RequestHead, body_bytes, head_of, origin_form, sentence_without_quotes
from .responses import Sending

Documents: TypeAlias = Callable[[str, str], Response | None]
"""From method and target of a request to its response; None where there is none."""

_BLANK: Final = b"\r\n"
_ORIGIN: Final = re.compile(rb"\norigin:[ \t]*([!-~]+)[ \t]*\r?\n", re.IGNORECASE)


class ConnectionState(enum.Enum):
    """The next action on a connection after its output was written."""

    OPEN = "go on reading"
    LINGERING = "end the sending side, and go on reading: the client has yet to see the response"
    CLOSED = "close it"


@final
class HTTPConnection(Sending):
    """One client's connection: bytes in, bytes out, one exchange of the endpoint at a time.

    After each call, take `data_to_send`; after any call into the endpoint, take that of every
    connection whose `exchange` is in `ServerEndpoint.ready`. When all of it was written, `state`
    says how to go on.

    Requests that come before the response to the one before (pipelining) are not served: the
    connection is closed after that response, and a client then knows which to send again.

    Args:
        endpoint: The endpoint that serves the requests.
        paths: The paths of the endpoint; others get 404.
        authenticates: Stop at each head until `admit` or `refuse` was called.
        documents: Gives the response for method and target of a request to another path, such as
            `sansmcp.auth.ProtectedResource.respond`; where it gives None, the response is 404.
        context: Becomes `IncomingRequest.context`.
        limits: Limits on sizes and times.
        now: The time of its beginning, in seconds on a clock that never goes back.

    Source: RFC 9112; MCP 2026-07-28, basic/transports/streamable-http.
    """

    __slots__ = (
        "_authenticates",
        "_awaiting",
        "_context",
        "_deadline",
        "_documents",
        "_endpoint",
        "_exchange",
        "_fed",
        "_head",
        "_left",
        "_limits",
        "_now",
        "_paths",
        "_pieces",
        "_state",
    )

    def __init__(
        self,
        endpoint: ServerEndpoint,
        *,
        paths: Collection[str] = ("/mcp",),
        authenticates: bool = False,
        documents: Documents | None = None,
        context: Any = None,
        limits: HTTPLimits | None = None,
        now: float,
    ) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._paths = frozenset(path.encode("ascii") for path in paths)
        self._authenticates = authenticates
        self._documents = documents
        self._context = context
        self._limits = limits or HTTPLimits()
        self._h11 = h11.Connection(h11.SERVER, self._limits.head_bytes)
        self._exchange: ServerExchange | None = None
        self._awaiting: RequestHead | None = None
        self._pieces: list[bytes] = []  # of a body, as far as they are not handed on
        self._fed = 0  # bytes of the head that is being received
        self._head = bytearray()  # these bytes: h11 forgets a head in which something is wrong
        self._left = 0.0  # bytes of the body that are still to come, as far as it is known
        self._state = ConnectionState.OPEN
        self._now = now
        self._deadline = now + self._limits.head

    # ------------------------------------------------------------------------------- looking

    @property
    def state(self) -> ConnectionState:
        """The next action after all output was written."""
        return self._state

    @property
    def exchange(self) -> ServerExchange | None:
        """The exchange whose output goes out on this connection now."""
        return self._exchange

    @property
    def awaiting(self) -> RequestHead | None:
        """The request that waits for `admit` or `refuse`. Do not read meanwhile."""
        return self._awaiting

    @property
    def idle(self) -> bool:
        """Whether no request is open, and no part of one has come."""
        return self._exchange is None and not self._fed and self._h11.their_state is h11.IDLE

    @property
    def held_bytes(self) -> int:
        """Bytes that wait here: of a body that is not complete, and of output not yet taken."""
        return 0 if self._exchange is None else self._exchange.held_bytes

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout`; None means never. It may be early, never late."""
        return None if self._deadline == math.inf else self._deadline

    # -------------------------------------------------------------------- from the transport

    def receive_data(self, data: bytes | bytearray, *, now: float) -> None:
        """Take bytes from the client, cut anywhere. Never raises for what they are."""
        self._now = now
        if self._state is not ConnectionState.OPEN:
            return  # later data of a client that got a final error
        their_state = self._h11.their_state
        if their_state is h11.IDLE:
            if not self._fed:
                data = data.lstrip(_BLANK)  # RFC 9112, 2.2: older clients send some after a body
                if not data:
                    return
                self._deadline = now + self._limits.head
        elif their_state is not h11.SEND_BODY:
            self._note_pipelined(data)
            return
        try:
            if their_state is h11.IDLE:
                data = self._receive_head(data)
            if data:
                self._h11.receive_data(bytes(data))
            if self._awaiting is None:
                self._read_events()
        except h11.RemoteProtocolError as error:
            self._break_off(error.error_status_hint, sentence_without_quotes(error))

    def receive_eof(self, *, now: float) -> None:
        """The client has disconnected, or has ended its data, which counts as the same for HTTP."""
        self._now = now
        self._lose_exchange()
        self._close()

    def handle_timeout(self, now: float) -> None:
        """Break off a head, a body or a response that takes too long at the time `now`."""
        self._now = now
        if now < self._deadline:
            return
        self._deadline = math.inf
        their_state = self._h11.their_state
        if self._state is not ConnectionState.OPEN or self.idle:
            self._close()
        elif their_state is h11.IDLE:
            self._break_off(408, "the head of the request took too long")
        elif their_state is h11.SEND_BODY:
            self._break_off(408, "the body of the request took too long")

    # --------------------------------------------------------------------------- to be decided

    def admit(self, principal: Any = None, principal_key: str | None = None, *, now: float) -> None:
        """Serve the request that waits.

        Args:
            principal: The principal that sends it.
            principal_key: A string that stands for the principal; sealed states are bound to it.
            now: The time.
        """
        self._now = now
        exchange = self._exchange
        if self._awaiting is None or exchange is None:
            return  # the client is gone
        self._awaiting = None
        exchange.principal, exchange.principal_key = principal, principal_key
        try:
            self._go_on_with(exchange)
            self._read_events()
        except h11.RemoteProtocolError as error:
            self._break_off(error.error_status_hint, sentence_without_quotes(error))

    def refuse(
        self,
        status: int,
        text: str,
        challenge: str | None = None,
        *,
        retry_after: int | None = None,
        headers: Iterable[tuple[str, str]] = (),
        now: float,
    ) -> None:
        """Refuse the request that waits: with 401 or 403, or 503 if that cannot be found out now.

        Args:
            status: The status.
            text: One sentence for the client.
            challenge: The header `WWW-Authenticate`; 401 must have one (RFC 9110, 15.5.2).
            retry_after: Seconds after which the client may try again; None: that is not said.
            headers: Further names and values.
            now: The time.

        Raises:
            ValueError: The status is not that of an error, or the challenge not valid in a header.
        """
        self._now = now
        exchange = self._exchange
        if self._awaiting is None or exchange is None:
            return  # the client is gone
        fields = [*headers]
        if challenge is not None:
            fields.append(("www-authenticate", challenge))
        if retry_after is not None:
            fields.append(("retry-after", str(retry_after)))
        exchange.refuse(status, text, fields, now=now)
        self._awaiting = None
        try:
            self._read_events()
        except h11.RemoteProtocolError as error:
            self._break_off(error.error_status_hint, sentence_without_quotes(error))

    def drop_request(self, *, now: float) -> None:
        """Drop the open request, since all clients together take too much memory.

        It is answered with 503 if that is still possible. For the endpoint, its client has
        disconnected.
        """
        self._now = now
        self._break_off(503, "the server has too much to hold: try again later")

    def close(self, *, now: float) -> None:
        """Serve no further request: close as soon as none is open."""
        self._now = now
        self._closes = True
        if self.idle:
            self._close()

    # --------------------------------------------------------------------------- to the caller

    def data_to_send(self, *, now: float) -> bytes:
        """Take the next output; `b""` means that there is none now.

        Take it when everything before was written: bytes that wait here are counted.
        """
        self._now = now
        exchange = self._exchange
        if exchange is not None and self._awaiting is None and not self._answered(exchange):
            self._take_output(exchange)
        return self._joined()

    # -------------------------------------------------------------------------------- receiving

    def _receive_head(self, data: bytes | bytearray) -> bytes | bytearray:
        """Feed h11 at most the bytes that a head may have, and return the bytes after the head.

        Whether a head is too long must not depend on how the network has cut it.
        """
        room = self._limits.head_bytes - self._fed
        self._fed += len(data)
        if room:
            part = bytes(data[:room])
            self._head += part
            self._h11.receive_data(part)
        event: Any = self._h11.next_event()
        if type(event) is h11.Request:
            self._fed = 0
            self._begin(event)
            self._head.clear()
        elif len(data) > room:
            raise h11.RemoteProtocolError("the head is too long", error_status_hint=431)
        return data[room:]

    def _begin(self, request: h11.Request) -> None:
        """A head is complete."""
        self._deadline = self._now + self._limits.body
        self._is_head = request.method == b"HEAD"
        # To go through `request.headers` itself costs a call for each field.
        headers = [(name.lower(), value) for name, value in request.headers.raw_items()]
        self._left = body_bytes(headers)
        target = request.target
        if not target.startswith(b"/"):
            target, headers = origin_form(target, headers)
        if target.partition(b"?")[0] not in self._paths:
            response = self._document(request.method, target) or self._endpoint.refusal(
                404, "nothing is served at this path", method=request.method, headers=headers
            )
            self._respond(response, closes=not self._is_short())
            self._finish()
            return
        exchange = self._endpoint.exchange(
            request.method, target, headers, context=self._context, now=self._now
        )
        self._exchange = exchange
        if self._authenticates and exchange.needs_principal:
            self._awaiting = head_of(request)
        else:
            self._go_on_with(exchange)

    def _document(self, method: bytes, target: bytes) -> Response | None:
        """The response to a request for something else than MCP; None: there is none."""
        if self._documents is None:
            return None
        return self._documents(method.decode("ascii"), target.decode("latin-1"))

    def _go_on_with(self, exchange: ServerExchange) -> None:
        """The body is wanted, if the head is not refused."""
        if not exchange.refused and self._h11.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    def _read_events(self) -> None:
        """Take the body events that h11 has parsed."""
        next_event, pieces = self._h11.next_event, self._pieces
        while True:
            event: Any = next_event()
            if type(event) is h11.Data:
                pieces.append(bytes(event.data))
                self._left -= len(event.data)
                continue
            # What one read has brought is joined: a body may come in chunks of a byte.
            exchange = self._exchange
            if pieces:
                if exchange is not None:
                    exchange.receive_data(b"".join(pieces), now=self._now)
                pieces.clear()
            if type(event) is h11.EndOfMessage:
                self._end_body(exchange)
            return

    def _end_body(self, exchange: ServerExchange | None) -> None:
        self._deadline = math.inf
        rest = bytes(self._h11.trailing_data[0])
        if exchange is not None:
            self._note_pipelined(rest)
            exchange.receive_end(at=time.time(), now=self._now)
            return
        # The response went out before, so what follows is no pipelined request, but the next one.
        self._finish()
        if rest:
            self.receive_data(rest, now=self._now)

    def _note_pipelined(self, data: bytes | bytearray) -> None:
        if data.strip(_BLANK):
            self._closes = True

    def _is_short(self) -> bool:
        """Whether the rest of a body that is not needed is small enough to be read."""
        if self._h11.their_state is not h11.SEND_BODY:
            return True
        waits = self._h11.they_are_waiting_for_100_continue  # the body may come or not
        return self._left <= self._limits.drained_bytes and not waits

    def _read_origin(self) -> list[tuple[bytes, bytes]] | None:
        """The header `Origin` of a head that is not complete or not valid; None without one."""
        match = _ORIGIN.search(self._head)
        return None if match is None else [(b"origin", bytes(match[1]))]

    def _lose_exchange(self) -> None:
        self._awaiting = None
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.receive_disconnect(now=self._now)

    def _break_off(self, status: int, text: str) -> None:
        """The request cannot be read any further."""
        exchange = self._exchange
        self._lose_exchange()
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            if exchange is not None:
                response = exchange.refusal(status, text)
            else:
                response = self._endpoint.refusal(status, text, headers=self._read_origin())
            self._respond(response, closes=True)
        self._head.clear()
        self._linger()

    # ---------------------------------------------------------------------------------- sending

    def _answered(self, exchange: ServerExchange) -> bool:
        """Write a whole response after which the connection goes on, if there is one.

        h11 would make the same bytes, by three events that take longer than the core's part in a
        request. It does not learn of the response: another one reads the next request.
        """
        if (
            not exchange.ended
            or exchange.is_stream
            or self._closes
            or self._is_head
            or self._h11.their_state is not h11.DONE  # or something speaks against going on
            or self._h11.our_state is not h11.SEND_RESPONSE
        ):
            return False
        self._send_response(exchange)
        self._exchange = None
        self._start_anew()
        return True

    def _take_output(self, exchange: ServerExchange) -> None:
        while (output := exchange.next_output()) is not None:
            match output:
                case SendHead():
                    self._send_head(output.status, output.headers, not self._is_short())
                case SendBody():
                    if not self._is_head:
                        self._send(h11.Data(data=output.data))
                case SendEnd():
                    self._send(h11.EndOfMessage())
                    self._exchange = None
                    self._finish()

    def _finish(self) -> None:
        """The response is complete."""
        is_cut_short = self._h11.their_state is h11.SEND_BODY
        if self._h11.our_state is h11.DONE and not self._closes:
            if not is_cut_short:
                self._start_anew()
        elif is_cut_short or self._h11.trailing_data[0]:
            self._linger()
        else:
            self._close()

    def _start_anew(self) -> None:
        # Whatever blank came behind the request is forgotten: it is no beginning of a head.
        self._h11 = h11.Connection(h11.SERVER, self._limits.head_bytes)
        self._is_head = False
        self._deadline = self._now + self._limits.idle

    def _linger(self) -> None:
        """Closing now would reset the connection, and the response might never be seen."""
        self._state = ConnectionState.LINGERING
        self._deadline = self._now + self._limits.linger

    def _close(self) -> None:
        self._state = ConnectionState.CLOSED
        self._deadline = math.inf
