"""Connections that many clients share: each request is served by itself.

There is no state that outlasts a request, since it would mix up the clients. Each request has a
route of its own, the `PostResponse`.
"""

from __future__ import annotations

from typing import Any, Final

from ..._connection.core import Core
from ..._connection.events import CancelCause, LimitReached, ProtocolViolation
from ..._connection.handles import IncomingRequest, Listener, route_of
from ..._connection.notifications import LISTEN
from ..._rules.conversation import Conversation, Peer
from ..._rules.state_tables import Phase
from ..._spec.modern_methods import MODERN_REVISION
from ..._spec.registry import DIALECTS, GATES
from ..._wire.values import JSONObject, JSONValue, RequestId, table_key
from .._headers import Headers
from .._sse import encode_event
from .core import ServerEndpointCore
from .exchange import ServerExchangeCore
from .routed_transport import RoutedTransport

_LISTENERS: Final = 10
"""So many listeners that ask for all that one client may have can be served at a time."""


class PostResponse:
    """The response to one POST outside of any session. No client can come back for its messages.

    Attributes:
        closing: Whether the next message is the last one.
        transport: The transport that the requests of the POST belong to.
        context: The context that the exchange was given.
        exchange: The exchange; None when it is over, or its client is gone.
        held: Changes that wait for room, as messages, each once; None: there were none yet.
        id: The id of the request, as it came; of the requests in a batch, a tuple of all.
        is_batch: Whether the POST has a batch.
        more: Headers of the response beside the usual ones, where it is no stream.
        over: Whether nothing more goes out on it.
        principal: Who sent the request.
        principal_key: A string that stands for the principal in a seal.
        request_id: The id of the request whose response is the last message; None for a batch.
        status: The status of the response, where it is no stream.
        unsent: Bytes that wait to be taken off the exchange.
    """

    __slots__ = (
        "closing",
        "context",
        "exchange",
        "held",
        "id",
        "is_batch",
        "more",
        "over",
        "principal",
        "principal_key",
        "request_id",
        "status",
        "transport",
        "unsent",
    )

    def __init__(
        self,
        exchange: ServerExchangeCore,
        transport: SharedTransport,
        id: Any,
        *,
        is_batch: bool = False,
    ) -> None:
        self.transport: SharedTransport = transport
        self.exchange: ServerExchangeCore | None = exchange
        self.principal: Any = exchange.principal
        self.principal_key: str | None = exchange.principal_key
        self.context: Any = exchange.context
        self.id: Any = id
        self.is_batch: bool = is_batch
        self.request_id: RequestId | None = None
        self.status: int = 200
        self.more: Headers = ()
        self.closing: bool = False
        self.over: bool = False
        self.held: dict[bytes, None] | None = None
        self.unsent: int = 0
        exchange.route = exchange.ledger = self

    def takes(self) -> bool:
        """Whether a message before the last one would arrive."""
        return self.exchange is not None and self.exchange.takes_stream

    def deliver(self, message: bytes) -> bool:
        """Send one message; False: it is lost.

        Keeps SUBS-018: the acknowledgement of a subscription is not the last message of its
        response, so it starts a stream.
        """
        exchange = self.exchange
        if exchange is None:
            return False
        if self.closing and not exchange.is_stream and (exchange.json_first or self.status >= 400):
            self.over = True
            self.exchange = exchange.ledger = None
            exchange.answer(self.status, message, self.more)
            return True
        if not exchange.takes_stream:
            return False
        if not exchange.is_stream:
            exchange.start_stream()
        exchange.write(encode_event(message))
        if self.closing:
            self.finish()
        return True

    def start(self) -> None:
        """Turn the response into a stream."""
        assert self.exchange is not None
        self.exchange.start_stream()

    def taken(self, size: int) -> None:
        """So many bytes were taken off the exchange: changes that waited for room follow."""
        self.unsent -= size
        if self.held is not None and self.unsent <= self.transport.core.config.soft_unsent_bytes:
            self.release_held()

    def waits(self, size: int) -> None:
        """So many bytes wait to be taken off the exchange."""
        self.unsent += size

    def release_held(self) -> None:
        """Write the changes that waited for room; they go before the last message at the latest."""
        exchange, held, self.held = self.exchange, self.held, None
        if exchange is not None and exchange.takes_stream:
            for message in held or ():
                exchange.write(encode_event(message))

    # -------------------------------------------------------------------------------- ending

    def refuse(self, status: int, body: bytes) -> None:
        """Answer with an error that is no message of the conversation."""
        assert self.exchange is not None  # its message has just come
        self.exchange.answer(status, body)
        self.finish()

    def finish(self, status: int = 200, id: RequestId | None = None) -> None:
        """End the exchange. An error status names the request with this id."""
        self.over = True
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.end(status, id)

    def drop(self) -> None:
        """Forget the output that waits: no one will read it."""
        assert self.exchange is not None  # nothing waits for a client that is gone
        self.exchange.drop()

    def disconnected(self) -> None:
        """The client is gone, which cancels a request of 2026-07-28."""
        self.exchange = None
        transport = self.transport
        if transport.is_modern:
            transport.core.now = transport.endpoint.now
            transport.cancel_route(self, CancelCause.PEER)

    def answer_lost(self) -> None:
        """The answer was complete, and was never taken."""
        self.transport.report_undelivered(is_answer=True)


class SharedTransport(RoutedTransport):
    """A transport of many clients. The route of each request is its `PostResponse`.

    Args:
        endpoint: What all parts of the endpoint share.
        whole: The transport that judges log messages for all shared ones; None: itself.
        streams: Whether there are streams that stay open.
        openings: The transports that each serve one `initialize` outside of any session, until it
            is answered; None: this transport is none of them.
        settings: As for `RoutedTransport`.
    """

    __slots__ = ("_openings", "_overflowed", "_streams", "_whole")

    def __init__(
        self,
        endpoint: ServerEndpointCore,
        *,
        whole: SharedTransport | None = None,
        streams: bool = True,
        openings: dict[SharedTransport, None] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(endpoint, **settings)
        self.core.is_shared = True
        self._whole = whole
        self._streams = streams
        self._openings = openings
        self._overflowed: list[PostResponse] = []

    def assume(self, revision: str) -> None:
        """Serve clients of a legacy revision of which nothing else is known."""
        core: Core = self.core
        gates = core.conversation.gates
        core.conversation = Conversation(DIALECTS[revision], Phase.OPERATING)
        core.conversation.gates[core.side] = gates[core.side]
        # The capabilities that they declared are unknown, so none is missing.
        core.conversation.gates[core.other] = GATES
        core.peer.revision = revision

    # -------------------------------------------------------------------------------- output

    def queue(self, message: bytes, route: Any) -> None:
        """Write a message to the response of its request."""
        core = self.core
        if route.held is not None and route.closing:
            route.release_held()  # nothing comes after the response
        if route.unsent + len(message) > core.config.max_unsent_bytes:
            if core.is_refused(message, "a message"):
                self.finish_without(route)
            else:
                self._overflowed.append(route)
                core.needs_settle = True
        elif not route.deliver(message):
            self.lost(route)

    def reaches_peer(self) -> bool:
        """No: each message goes to the response of a request, and there is no other stream."""
        return False

    def settle(self) -> bool:
        """End the requests of clients that do not read."""
        overflowed, self._overflowed = self._overflowed, []
        for response in dict.fromkeys(overflowed):
            text = f"the client does not read: {response.unsent} bytes wait for it"
            self.core.events.append(ProtocolViolation(rule="OWN-012", text=text, fatal=True))
            response.drop()
            self.cancel_route(response, CancelCause.FAILED)
            if not response.over:  # its response exceeded the limit
                response.finish(503, response.request_id)
        return super().settle() and not overflowed

    def is_congested(self, route: Any) -> bool:
        """Whether output that may be dropped is to be dropped, on this response."""
        return route.unsent > self.core.config.soft_unsent_bytes or not route.takes()

    def holds_changes(self) -> bool:
        """Each listener has an exchange of its own: none waits for another."""
        return False

    def notify_listener(self, listener: Listener, message: bytes) -> bool:
        """Send a change, or keep it until the client has read: the same change once."""
        response: PostResponse = route_of(listener.request)
        config = self.core.config
        if response.unsent <= config.soft_unsent_bytes:
            return super().notify_listener(listener, message)
        held = response.held = {} if response.held is None else response.held
        if message not in held and len(held) >= config.max_held_changes:
            text = f"{len(held)} changes wait for {listener!r}, which is the limit"
            self.core.events.append(LimitReached(rule="OWN-010", text=text))
            return False
        held[message] = None
        return True

    def ends_with_cancelled(self, listener: Listener) -> bool:
        """The end of the stream says so, with the result before it."""
        return False

    def has_room_for(self, wanted: int, taken: int) -> bool:
        """The limit is that of one client; all together may have a multiple of it."""
        limit = self.core.config.max_subscriptions
        return wanted <= limit and taken + wanted <= limit * _LISTENERS

    def refusal_to_listen(self) -> str | None:
        """A server without streams serves no subscription."""
        if self._streams:
            return None
        return f"{LISTEN} is not served here: this server has no streams that stay open"

    def send_log(
        self,
        level: str,
        data: JSONValue,
        logger: str | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
    ) -> bool:
        """Send a log message to the modern client that asked for logs with its request.

        A legacy client without a session is not told of logging, and gets no logs: for it the
        arguments are judged, and nothing is sent.
        """
        if self._whole is None:
            return super().send_log(level, data, logger, meta, request)
        return self._whole.send_log(level, data, logger, meta, None)

    # -------------------------------------------------------------------------------- ending

    def request_answered(self, request: IncomingRequest) -> None:
        """A transport for one `initialize` is over with its response."""
        super().request_answered(request)
        if self._openings is not None:
            self._openings.pop(self, None)

    def cancel_route(self, response: PostResponse, cause: CancelCause) -> None:
        """Cancel the requests that an exchange has brought, since it is over.

        Keeps SSE-010.
        """
        ids: tuple[Any, ...] = response.id if response.id.__class__ is tuple else (response.id,)
        for raw in ids:
            id = table_key(raw)
            request = None if id is None else self.core.requests.get((response, id))
            if request is not None:
                self.machine.incoming.cancel(request, cause)

    def end_all(self) -> None:
        """End everything that is open: the endpoint closes."""
        listeners, incoming = self.machine.listeners, self.machine.incoming
        for listener in listeners.open:
            listeners.end_listener(listener, None)
        for request in list(self.core.requests.values()):
            incoming.cancel(request, CancelCause.CLOSED)

    def peer_of(self, exchange: ServerExchangeCore) -> Peer:
        """A new peer, of which only the facts in this message are known."""
        peer = Peer()
        peer.revision = self.core.peer.revision or MODERN_REVISION
        peer.principal, peer.principal_key = exchange.principal, exchange.principal_key
        return peer
