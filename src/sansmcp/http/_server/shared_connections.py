"""Machines that many clients share: requests that speak for themselves, and nothing in between.

All that outlasts a request would mix up the clients: nothing does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from ..._connection.changes import Change
from ..._connection.events import CancelCause, LimitReached, ProtocolViolation
from ..._connection.handles import IncomingRequest, Listener
from ..._connection.notifications import LISTEN, URI_CHARACTERS
from ..._rules.conversation import Conversation, Peer
from ..._rules.state_tables import Phase, RequestState
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._spec.modern_methods import MODERN_REVISION
from ..._spec.registry import DIALECTS, GATES
from ..._wire.values import JSONObject, JSONValue, table_key
from .connection import HTTPMachine

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange
    from .reply import Reply

_LISTENERS: Final = 10
"""So many listeners that ask for all that one may have can be served at a time."""


def needs_session(method: str, peer: Peer) -> str:
    """Why a legacy client outside of a session is not asked: its answer could not come back."""
    return (
        f"{method} needs a session: a client of revision {peer.revision} cannot be asked by a "
        "server without sessions"
    )


class SharedMachine(HTTPMachine):
    """The route of each request is the reply to its exchange, which bounds what waits there."""

    __slots__ = ("_overflowed",)

    def __init__(self, endpoint: ServerEndpoint, **settings: Any) -> None:
        super().__init__(endpoint, **settings)
        self._by_route = True
        self._overflowed: list[Reply] = []

    def assume(self, revision: str) -> None:
        """Serve clients of a legacy revision, of which nothing else is known."""
        gates = self._conversation.gates
        self._conversation = Conversation(DIALECTS[revision], Phase.OPERATING)
        self._conversation.gates[self._side] = gates[self._side]
        # What they have declared is not known: nothing that they send can break it.
        self._conversation.gates[self._other] = GATES
        self._peer.revision = revision

    # -------------------------------------------------------------------------------- output

    def _queue(self, message: bytes, route: Any) -> None:
        if route.held is not None and route.closing:
            route.release_held()  # nothing comes after the answer
        if route._unsent + len(message) > self._config.max_unsent_bytes:
            if self._is_refused(message, "a message"):
                self._finish_without(route)
            else:
                self._overflowed.append(route)
                self._restless = True
        elif not route.deliver(message):
            self._lost(route)

    def _settle(self) -> bool:
        overflowed, self._overflowed = self._overflowed, []
        for reply in dict.fromkeys(overflowed):
            text = f"the client does not read: {reply._unsent} bytes wait for it"
            self._events.append(ProtocolViolation(rule="OWN-012", text=text, fatal=True))
            reply.drop()
            self._cancel_route(reply, CancelCause.FAILED)
            if not reply.over:  # it was its answer that was too much
                reply.finish(503, reply.request_id)
        return super()._settle() and not overflowed

    def _choked(self, route: Any) -> bool:
        return route._unsent > self._config.soft_unsent_bytes or not route.takes()

    def _is_wanted(self, change: Change) -> bool:
        return False  # outside of a session only listeners are told

    def _holds_changes(self) -> bool:
        return False  # each listener has an exchange of its own

    def _tell_listener(self, listener: Listener, message: bytes) -> bool:
        route: Any = listener._request._route
        reply: Reply = route
        if reply._unsent <= self._config.soft_unsent_bytes:
            return super()._tell_listener(listener, message)
        # The same change is the same message: each waits once.
        held = reply.held = {} if reply.held is None else reply.held
        if message not in held and len(held) >= self._config.max_held_changes:
            text = f"{len(held)} changes wait for {listener!r}, which is the limit"
            self._events.append(LimitReached(rule="OWN-010", text=text))
            return False
        held[message] = None
        return True

    def _say_ended(self, listener: Listener) -> None:
        """The end of its stream says so, with the result before it."""

    # -------------------------------------------------------------------------------- ending

    def _cancel_route(self, reply: Reply, cause: CancelCause) -> None:
        """The exchange is over, and with it the requests that it brought."""
        given: Any = reply.id
        ids: tuple[Any, ...] = given if given.__class__ is tuple else (given,)
        for raw in ids:
            id = table_key(raw)
            request = None if id is None else self._incoming.get((reply, id))
            if request is not None:
                self._cancel_incoming(request, cause)

    # ----------------------------------------------------------------------------- receiving

    def _receive_cancelled(self, params: JSONObject) -> None:
        self._ignore_cancel(
            "OWN-034",
            "a cancellation that was posted: many clients share the ids, so it cancels nothing",
            params.get("requestId"),
        )

    def _peer_of(self, exchange: ServerExchange) -> Peer:
        """A peer of its own: nothing is known of it but what came with this message."""
        peer = Peer()
        peer.revision = self._peer.revision or MODERN_REVISION
        peer.principal, peer.principal_key = exchange.principal, exchange.principal_key
        return peer

    def _handled(self, request: IncomingRequest) -> bool:
        if request._method == LISTEN and not self._endpoint._serves_streams:
            text = f"{LISTEN} is not served here: this server has no streams that stay open"
            self._refuse(request, ErrorCode.METHOD_NOT_FOUND, text)
            return True
        return super()._handled(request)

    # ------------------------------------------------------------- what would outlast a request

    def _checked_questions(
        self, request: IncomingRequest, questions: Mapping[str, JSONObject], state: str | None
    ) -> dict[str, JSONObject]:
        try:
            return super()._checked_questions(request, questions, state)
        except LocalProtocolError as error:
            if error.needed is None or request._is_modern:
                raise
            # What the client has declared is not known here, and would make no difference.
            text = needs_session(next(iter(questions.values()))["method"], request._peer)
            raise LocalProtocolError("STATE-006", text, error.needed) from None

    def _send_log(
        self,
        level: str,
        data: JSONValue,
        logger: str | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
        now: float | None,
    ) -> bool:
        whole = self._endpoint._whole_machine
        if self is whole:
            return super()._send_log(level, data, logger, meta, request, now)
        # A legacy client without a session is not told of logging, and so gets no logs: this
        # judges the arguments, and sends nothing.
        return whole._send_log(level, data, logger, meta, None, now)

    def _result_accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        self._came_to_nothing(request)

    def _keep_token_of_task(self, request: IncomingRequest, result: JSONObject) -> None:
        """There is no way to its client any more, and others may have tasks of this name."""

    def _has_room_for(self, uris: Collection[str]) -> bool:
        limit, wanted = self._config.max_subscriptions, 1 + len(uris)
        return (
            wanted <= limit
            and self._taken_subscriptions() + wanted <= limit * _LISTENERS
            and all(len(uri) <= URI_CHARACTERS for uri in uris)
        )


@final
class OpeningMachine(SharedMachine):
    """For one `initialize` outside of any session, which nothing follows."""

    __slots__ = ()

    def _forget(self, request: IncomingRequest, state: RequestState) -> None:
        super()._forget(request, state)
        self._endpoint._openings.pop(self, None)
