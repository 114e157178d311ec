"""A client and a server of Streamable HTTP, and between them a network that does what a test says.

Nothing here waits: time is a number, and a byte arrives when it is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from sansmcp import LEGACY_REVISIONS, Phase
from sansmcp.http import (
    ClientEndpoint,
    ClientExchange,
    ClientHTTPEvent,
    HTTPEvent,
    SendBody,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    Sessions,
)

from ._pair import CLIENT_CAPABILITIES, CLIENT_INFO, SERVER_CAPABILITIES, SERVER_INFO
from ._plain import plain

EventT = TypeVar("EventT")
_URL: Final = "http://localhost/mcp"


class HTTPExchange:
    """One HTTP request on its way to the server, and its response on its way back.

    Attributes:
        client: The client's exchange.
        server: The server's exchange; None until the head of the request has arrived.
        request: Bytes of the request's body in flight, the next one first. Change them as you like.
        response: Bytes of the response's body in flight, likewise.
        request_held: `HTTPPair.deliver` passes the request over.
        response_held: `HTTPPair.deliver` passes the response over.
    """

    def __init__(self, pair: HTTPPair, client: ClientExchange) -> None:
        self.client: Final = client
        self.server: ServerExchange | None = None
        self.request: bytearray = bytearray(client.body)
        self.response: bytearray = bytearray()
        self.request_held: bool = pair.held
        self.response_held: bool = False
        self._pair = pair
        self._head: SendHead | None = None
        self._has_request_ended = self._has_response_ended = self._is_cut = False
        self._is_over_at_client = self._is_over_at_server = False

    def __repr__(self) -> str:
        return f"<HTTPExchange {self.client.method} {self.client.target}>"

    @property
    def over(self) -> bool:
        """Whether nothing of the exchange arrives any more, at either side."""
        return self._is_over_at_client and self._is_over_at_server

    # ------------------------------------------------------------------------------ the request

    def deliver_request(self, n_bytes: int | None = None) -> bool:
        """Deliver the head of the request, where it has not arrived, and bytes of the body.

        Args:
            n_bytes: How many bytes of the body at most, as one chunk; all by default. The end of
                the request comes with the last of them.

        Returns:
            Whether there was anything.
        """
        if self._has_request_ended or self._is_cut:
            return False
        pair = self._pair
        if self.server is None:
            self.server = pair.server.exchange(
                self.client.method,
                self.client.target,
                [(b"host", self.client.authority.encode()), *self.client.headers],
                principal=pair.principal,
                principal_key=pair.principal_key,
                now=pair.now,
            )
        chunk = _taken(self.request, n_bytes)
        if chunk:
            self.server.receive_data(chunk, now=pair.now)
        if not self.request:
            self._has_request_ended = True
            self.server.receive_end(now=pair.now)
        return True

    # ----------------------------------------------------------------------------- the response

    def collect(self) -> None:
        """Put the output of the server that waits in flight."""
        while (
            self.server is not None
            and not self._is_cut
            and (output := self.server.next_output()) is not None
        ):
            if isinstance(output, SendHead):
                self._head = output
            elif isinstance(output, SendBody):
                self.response += output.data
            else:
                self._has_response_ended = self._is_over_at_server = True

    def deliver_response(self, n_bytes: int | None = None) -> bool:
        """Deliver the head of the response, where it is in flight, and bytes of the body.

        Args:
            n_bytes: How many bytes of the body at most, as one chunk; all by default. The end of
                the response comes with the last of them.

        Returns:
            Whether there was anything.
        """
        if self._is_over_at_client or self._is_cut:
            return False
        self.collect()
        now, head, self._head = self._pair.now, self._head, None
        if head is not None:
            self.client.receive_head(head.status, head.headers, now=now)
        chunk = _taken(self.response, n_bytes)
        if chunk:
            self.client.receive_data(chunk, now=now)
        ends = self._has_response_ended and not self.response
        if ends:
            self._is_over_at_client = True
            self.client.receive_end(now=now)
        return head is not None or bool(chunk) or ends

    # -------------------------------------------------------------------------------- the break

    def cut(
        self, text: str = "the connection was reset", *, client: bool = True, server: bool = True
    ) -> None:
        """Break the connection: what is in flight is lost.

        Args:
            text: What the client is told of it.
            client: Whether the client sees it now. If not, cut again when it does.
            server: Whether the server sees it now.
        """
        self.collect()
        self._is_cut = True
        self.request.clear()
        self.response.clear()
        if server and not self._is_over_at_server:
            self._is_over_at_server = True
            if self.server is not None:
                self.server.receive_disconnect(now=self._pair.now)
        if client and not self._is_over_at_client:
            self._is_over_at_client = True
            self.client.receive_failure(text, now=self._pair.now)

    def _aborted(self) -> None:
        """The client has closed the connection."""
        self._is_over_at_client = True
        self.cut(client=False)


class HTTPPair:
    """A client endpoint, a server endpoint and a network in memory, to drive by hand.

    Args:
        client: The client to use instead of one that declares everything.
        server: The server to use instead of one that declares everything and has sessions.
        revision: The one revision that both of those speak: by default the newest in which either
            side may ask.
        client_revisions: What that client speaks instead, of one era or of both.
        server_revisions: What that server speaks instead.
        connected: Whether to open the conversation at once, and forget the events of it.
        now: The time in seconds, which both sides are told with everything that is delivered.

    Attributes:
        client: The client's endpoint. Call its verbs; the exchanges that it wants are taken from it
            when `exchanges` is looked at, or anything is delivered.
        server: The server's endpoint. Put another one here to start the server again.
        now: The time in seconds.
        held: Whether the requests of exchanges that begin from now on are held
            (`HTTPExchange.request_held`).
        principal: Who the client is, as the server is told with each request.
        principal_key: The string that stands for the principal.

    `copy.deepcopy` makes another pair in the same state.
    """

    def __init__(
        self,
        client: ClientEndpoint | None = None,
        server: ServerEndpoint | None = None,
        *,
        revision: str = LEGACY_REVISIONS[-1],
        client_revisions: Sequence[str] | None = None,
        server_revisions: Sequence[str] | None = None,
        connected: bool = True,
        now: float = 0.0,
    ) -> None:
        spoken = tuple(server_revisions or (revision,))
        has_sessions = any(name in LEGACY_REVISIONS for name in spoken)
        self.client: ClientEndpoint = client or ClientEndpoint(
            _URL,
            info=CLIENT_INFO,
            capabilities=CLIENT_CAPABILITIES,
            revisions=client_revisions or (revision,),
        )
        self.server: ServerEndpoint = server or ServerEndpoint(
            info=SERVER_INFO,
            capabilities=SERVER_CAPABILITIES,
            revisions=spoken,
            sessions=Sessions(new_id=self._new_session_id) if has_sessions else None,
        )
        self.now: float = now
        self.held = False
        self.principal: Any = None
        self.principal_key: str | None = None
        self._n_sessions = 0
        self._exchanges: list[HTTPExchange] = []
        self._client_events: list[ClientHTTPEvent] = []
        self._server_events: list[HTTPEvent] = []
        if connected:
            self.connect()
            self.clear_events()

    def _new_session_id(self) -> str:
        self._n_sessions += 1
        return f"session-{self._n_sessions}"

    def connect(self) -> None:
        """Open the conversation; a client of both eras finds out what the server speaks.

        Raises:
            AssertionError: It did not come to an end, or to no good one.
        """
        self.client.start(now=self.now)
        self.deliver()
        if self.client.phase is not Phase.OPERATING:
            raise AssertionError(
                f"the opening failed: {plain(self.client_events)}, {plain(self.server_events)}"
            )

    # --------------------------------------------------------------------------------- time

    def advance(self, seconds: float) -> None:
        """Let time pass: both sides are told of every deadline on the way, and of the new time.

        Nothing is delivered meanwhile.
        """
        until = self.now + seconds
        while (deadline := self.next_timeout()) is not None and deadline <= until:
            self._tell(deadline)
        self._tell(until)

    def next_timeout(self) -> float | None:
        """The earlier deadline of the two sides; None where neither has one."""
        deadlines = [self.client.next_timeout(), self.server.next_timeout()]
        return min((when for when in deadlines if when is not None), default=None)

    def _tell(self, now: float) -> None:
        self.now = max(self.now, now)
        self.client.handle_timeout(self.now)
        self.server.handle_timeout(self.now)

    # ------------------------------------------------------------------------------ network

    @property
    def exchanges(self) -> list[HTTPExchange]:
        """The exchanges that are not over, those that the client wants to begin now included.

        The list is in the order in which `deliver` serves them; give it another order as you like.
        """
        for aborted in self.client.aborts():
            for exchange in self._exchanges:
                if exchange.client is aborted:
                    exchange._aborted()
        while (begun := self.client.next_exchange()) is not None:
            self._exchanges.append(HTTPExchange(self, begun))
        self._exchanges[:] = [exchange for exchange in self._exchanges if not exchange.over]
        return self._exchanges

    def deliver(self, *, chunk_bytes: int | None = None) -> None:
        """Deliver everything in flight, and what is sent because of it, until nothing moves.

        Args:
            chunk_bytes: Into how large pieces to cut the bodies.
        """
        moved = True
        while moved:
            moved = False
            for exchange in list(self.exchanges):
                if not exchange.request_held and exchange.deliver_request(chunk_bytes):
                    moved = True
                if not exchange.response_held and exchange.deliver_response(chunk_bytes):
                    moved = True

    def exchange_of(self, handle: object) -> HTTPExchange:
        """The exchange that carries a request of the client, by the handle of the request.

        Raises:
            LookupError: None that is not over does.
        """
        for exchange in self.exchanges:
            if exchange.client.request is handle:
                return exchange
        raise LookupError(f"no exchange carries {handle!r}")

    # ------------------------------------------------------------------------------- events

    @property
    def client_events(self) -> list[ClientHTTPEvent]:
        """The client's events since they were last cleared; the list is yours."""
        while (event := self.client.next_event()) is not None:
            self._client_events.append(event)
        return self._client_events

    @property
    def server_events(self) -> list[HTTPEvent]:
        """The server's events since they were last cleared; the list is yours."""
        while (event := self.server.next_event()) is not None:
            self._server_events.append(event)
        return self._server_events

    def clear_events(self) -> None:
        """Forget the events of both sides."""
        self.client_events.clear()
        self.server_events.clear()

    def deliver_one(self, kind: type[EventT]) -> EventT:
        """Deliver everything, and take the one event of this type out of the events of its side.

        Args:
            kind: The type of the event.

        Raises:
            AssertionError: There is none of this type, or more than one.
        """
        self.deliver()
        both: list[list[Any]] = [self.client_events, self.server_events]
        found = [(event, events) for events in both for event in events if isinstance(event, kind)]
        if len(found) != 1:
            raise AssertionError(
                f"{len(found)} events of the type {kind.__name__} instead of one; "
                f"client: {plain(self.client_events)}, server: {plain(self.server_events)}"
            )
        [(event, events)] = found
        events[:] = [other for other in events if other is not event]
        return event


def _taken(data: bytearray, n_bytes: int | None) -> bytes:
    """Take the next bytes in flight, all of them by default."""
    chunk = bytes(data if n_bytes is None else data[:n_bytes])
    del data[: len(chunk)]
    return chunk
