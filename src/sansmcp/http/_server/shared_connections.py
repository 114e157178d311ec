"""Connections that many clients share: requests that speak for themselves, and nothing in between.

All that outlasts a request would mix up the clients: nothing does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..._connection.events import CancelCause, LimitReached, ProtocolViolation
from ..._connection.handles import IncomingRequest, Listener
from ..._connection.notifications import LISTEN
from ..._rules.conversation import Conversation, Peer
from ..._rules.state_tables import Phase
from ..._spec.modern_methods import MODERN_REVISION
from ..._spec.registry import DIALECTS, GATES
from ..._wire.values import JSONObject, JSONValue, table_key
from .connection import RoutedConnection

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange
    from .reply import Reply

_LISTENERS: Final = 10
"""So many listeners that ask for all that one may have can be served at a time."""


class SharedConnection(RoutedConnection):
    """The route of each request is the reply to its exchange, which bounds what waits there.

    Args:
        opens: It is for one `initialize` outside of any session, which nothing follows.
    """

    __slots__ = ("_opens", "_overflowed")

    def __init__(self, endpoint: ServerEndpoint, *, opens: bool = False, **settings: Any) -> None:
        super().__init__(endpoint, **settings)
        self.core.is_shared = True
        self._opens = opens
        self._overflowed: list[Reply] = []

    def assume(self, revision: str) -> None:
        """Serve clients of a legacy revision, of which nothing else is known."""
        core = self.core
        gates = core.conversation.gates
        core.conversation = Conversation(DIALECTS[revision], Phase.OPERATING)
        core.conversation.gates[core.side] = gates[core.side]
        # What they have declared is not known: nothing that they send can break it.
        core.conversation.gates[core.other] = GATES
        core.peer.revision = revision

    # -------------------------------------------------------------------------------- output

    def queue(self, message: bytes, route: Any) -> None:
        """Write a message to the reply of its request."""
        core = self.core
        if route.held is not None and route.closing:
            route.release_held()  # nothing comes after the answer
        if route._unsent + len(message) > core.config.max_unsent_bytes:
            if core.is_refused(message, "a message"):
                self._finish_without(route)
            else:
                self._overflowed.append(route)
                core.needs_settle = True
        elif not route.deliver(message):
            self._lost(route)

    def settle(self) -> bool:
        """End the requests of clients that do not read."""
        overflowed, self._overflowed = self._overflowed, []
        for reply in dict.fromkeys(overflowed):
            text = f"the client does not read: {reply._unsent} bytes wait for it"
            self.core.events.append(ProtocolViolation(rule="OWN-012", text=text, fatal=True))
            reply.drop()
            self.cancel_route(reply, CancelCause.FAILED)
            if not reply.over:  # it was its answer that was too much
                reply.finish(503, reply.request_id)
        return super().settle() and not overflowed

    def is_congested(self, route: Any) -> bool:
        """Whether output that may be dropped is to be dropped, on this reply."""
        return route._unsent > self.core.config.soft_unsent_bytes or not route.takes()

    def holds_changes(self) -> bool:
        """Each listener has an exchange of its own: none waits for another."""
        return False

    def notify_listener(self, listener: Listener, message: bytes) -> bool:
        """Send a change, or keep it until the client has read: the same change once."""
        route: Any = listener._request._route
        reply: Reply = route
        config = self.core.config
        if reply._unsent <= config.soft_unsent_bytes:
            return super().notify_listener(listener, message)
        held = reply.held = {} if reply.held is None else reply.held
        if message not in held and len(held) >= config.max_held_changes:
            text = f"{len(held)} changes wait for {listener!r}, which is the limit"
            self.core.events.append(LimitReached(rule="OWN-010", text=text))
            return False
        held[message] = None
        return True

    def ends_with_cancelled(self, listener: Listener) -> bool:
        """The end of its stream says so, with the result before it."""
        return False

    def has_room_for(self, wanted: int, taken: int) -> bool:
        """The limit is that of one client; all together may have a multiple of it."""
        limit = self.core.config.max_subscriptions
        return wanted <= limit and taken + wanted <= limit * _LISTENERS

    def refusal_to_listen(self) -> str | None:
        """A server without streams serves no subscription."""
        if self.endpoint._serves_streams:
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
        whole = self.endpoint._whole_connection
        if self is whole:
            return super().send_log(level, data, logger, meta, request)
        return whole.send_log(level, data, logger, meta, None)

    # -------------------------------------------------------------------------------- ending

    def request_answered(self, request: IncomingRequest) -> None:
        """A connection for one `initialize` is over with its answer."""
        super().request_answered(request)
        if self._opens:
            self.endpoint._openings.pop(self, None)

    def cancel_route(self, reply: Reply, cause: CancelCause) -> None:
        """The exchange is over, and with it the requests that it brought.

        Keeps SSE-010.
        """
        given: Any = reply.id
        ids: tuple[Any, ...] = given if given.__class__ is tuple else (given,)
        for raw in ids:
            id = table_key(raw)
            request = None if id is None else self.core.requests.get((reply, id))
            if request is not None:
                self.machine.incoming.cancel(request, cause)

    def _peer_of(self, exchange: ServerExchange) -> Peer:
        """A peer of its own: nothing is known of it but what came with this message."""
        peer = Peer()
        peer.revision = self.core.peer.revision or MODERN_REVISION
        peer.principal, peer.principal_key = exchange.principal, exchange.principal_key
        return peer
