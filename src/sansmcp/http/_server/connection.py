"""The protocol machine where every request may have a way of its own to its answer.

A session has a machine of its own. All that needs none, modern requests above all, goes through
one machine for many clients: a machine for each of these would cost more than all the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..._connection.events import CancelCause, CloseCause, FailureReason, NotificationReceived
from ..._connection.handles import Batch, IncomingRequest, OutgoingRequest
from ..._connection.incoming import Answering
from ..._connection.machine import Machine
from ..._connection.timers import Timed
from ..._rules.conversation import Peer
from ..._rules.messages import judge_posted_batch
from ..._rules.sending import Breach
from ..._rules.state_tables import RequestState
from ..._spec.errors import ErrorCode
from ..._wire.values import MISSING, JSONObject, RequestId, Side, table_key
from .events import MessageUndelivered, SessionEnd
from .statuses import error_status, refusal_status
from .streams import Stream

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange
    from .sessions import Session

_SUBSCRIBING: Final = ("resources/subscribe", "resources/unsubscribe")
_NO_STREAM: Final = "no stream of the client is open on which {} could be sent"


class HTTPMachine(Machine):
    """What sessions and shared machines have in common: each message goes to its route at once."""

    __slots__ = ("_asking", "_endpoint", "_fault", "_sender", "_undelivered", "_unsendable")

    def __init__(self, endpoint: ServerEndpoint, **settings: Any) -> None:
        super().__init__(
            Side.SERVER, requires=(), wake=None, newline=b"", timers=endpoint._timers, **settings
        )
        events: Any = endpoint._events  # of all machines, and with some that only it has
        self._events = events
        self._endpoint = endpoint
        self._fault: Breach | None = None  # of the message that is being received
        self._asking: OutgoingRequest | None = None  # which is being queued
        self._sender: ServerExchange | None = None  # of what is no request, while it is received
        self._undelivered = False
        self._unsendable: list[OutgoingRequest] = []

    # -------------------------------------------------------------------------------- output

    def _lost(self, route: Any) -> None:
        """Nobody will read a message that was for this route."""
        self._undelivered = self._restless = True
        is_answer = route.closing and not route.over
        if self._asking is None:
            self._endpoint._events.append(
                MessageUndelivered(session=self._peer.session, is_answer=is_answer)
            )
        if is_answer:
            route.finish()

    def _finish_without(self, route: Any) -> None:
        """A message would never fit: where it was the last one of its exchange, that ends."""
        if route.closing and not route.over:
            route.finish(503, route.request_id)

    def _refusal_of(self, request: IncomingRequest, answer: bytes) -> bytes:
        if request._batch is None:
            route: Any = request._route
            route.status = error_status(ErrorCode.INTERNAL_ERROR, request._is_modern)
        return super()._refusal_of(request, answer)

    def _launch(
        self,
        call: OutgoingRequest,
        message: bytes,
        timeout: float | None,
        max_timeout: float | None,
    ) -> None:
        self._asking, self._undelivered = call, False
        super()._launch(call, message, timeout, max_timeout)
        self._asking = None
        if self._undelivered:
            self._undelivered = False
            self._unsendable.append(call)

    def _settle(self) -> bool:
        """End what was found to be over while something else was under way."""
        while self._unsendable:
            calls, self._unsendable = self._unsendable, []
            for call in calls:
                if call.open:
                    text = _NO_STREAM.format(call._method)
                    self._abandon(call, FailureReason.NO_STREAM, text, None)
        self._restless = False
        whole = super()._settle()
        delivered, self._undelivered = not self._undelivered, False
        return whole and delivered

    # ------------------------------------------------------------------------------ answering

    def _forget(self, request: IncomingRequest, state: RequestState) -> None:
        Answering._forget(self, request, state)
        self._endpoint._held.bytes -= request._held_bytes
        if request._batch is None:
            route: Any = request._route
            route.closing = True
            route.request_id = request._id

    def _flush_batch(self, batch: Batch, route: Any) -> None:
        if batch.pending == 0 and batch.complete:
            route.closing = True
        super()._flush_batch(batch, route)

    def _cancel_incoming(
        self,
        request: IncomingRequest,
        cause: CancelCause,
        reason: str | None = None,
        meta: JSONObject | None = None,
    ) -> None:
        super()._cancel_incoming(request, cause, reason, meta)
        route: Any = request._route
        if not route.closing or route.over:
            return
        if cause is CancelCause.PEER or self._is_left():
            route.finish()
        else:  # one id, or for a batch none, since no single request is meant
            route.finish(503, request._id if request._batch is None else None)

    def _is_left(self) -> bool:
        """Whether the client itself has ended the conversation that its requests belong to."""
        return False

    # ------------------------------------------------------------------------------- refusing

    def _report(self, breach: Breach, **about: Any) -> None:
        if not breach.tolerated:
            self._fault = breach
        super()._report(breach, **about)

    def _refuse(self, request: IncomingRequest, code: int, text: str, data: Any = MISSING) -> None:
        self._set_status(request, code)
        super()._refuse(request, code, text, data)

    def _refuse_breach(
        self, request: IncomingRequest, breach: Breach, said: str | None = None
    ) -> None:
        self._set_status(request, breach.code)
        super()._refuse_breach(request, breach, said)

    def _refuse_for_limit(self, request: IncomingRequest) -> None:
        self._set_status(request, ErrorCode.INTERNAL_ERROR)
        super()._refuse_for_limit(request)

    def _set_status(self, request: IncomingRequest, code: int) -> None:
        if request._batch is None:
            route: Any = request._route
            route.status = refusal_status(code, request._is_modern)

    def _refuse_duplicate(self, raw: RequestId, route: Any, batch: Batch | None, rule: str) -> None:
        super()._refuse_duplicate(raw, route, batch, rule)
        if batch is None:
            # Without the id: a client would take it for the answer to the first request.
            body = self._error_bytes(ErrorCode.INVALID_REQUEST, f"the id {raw!r} is in use"[:300])
            route.refuse(400, b'{"jsonrpc":"2.0","error":%b}' % body)

    def _refuse_unreadable(
        self,
        breach: Breach,
        route: Any,
        *,
        excerpt: bytes | None = None,
        raw_id: Any = None,
        batch: Batch | None = None,
    ) -> None:
        if batch is not None:
            super()._refuse_unreadable(breach, route, excerpt=excerpt, raw_id=raw_id, batch=batch)
            return
        self._report(breach, excerpt=excerpt, code=breach.code)
        key = table_key(raw_id)
        id = b"" if key is None or key in self._incoming else b'"id":%b,' % self._encode(raw_id)
        body = self._error_bytes(breach.code, breach.text)
        route.refuse(400, b'{"jsonrpc":"2.0",%b"error":%b}' % (id, body))

    def _receive_batch(self, values: list[Any], route: Any, data: bytes | bytearray) -> None:
        if self._dialect_of_unreadable().has_batches:
            breach = judge_posted_batch(values)
            if breach is not None:
                self._refuse_unreadable(breach, route, excerpt=self._excerpt(data))
                return
        super()._receive_batch(values, route, data)

    # -------------------------------------------------------------------------- notifications

    def _notified(self, method: str, params: JSONObject) -> None:
        assert self._sender is not None
        self._events.append(
            NotificationReceived(
                method=method,
                params=params,
                peer=self._peer_of(self._sender),
                context=self._sender.context,
            )
        )

    def _peer_of(self, _exchange: ServerExchange) -> Peer:
        return self._peer

    # ---------------------------------------------------------------------------------- time

    def _timer_fired(self, subject: Timed) -> None:
        self._now = self._endpoint._now
        super()._timer_fired(subject)
        if self._restless:
            self._settle()


class SessionMachine(HTTPMachine):
    """The machine of one session; each of its requests is the route of its own stream."""

    __slots__ = ("_overflowed", "_session")

    _session: Session  # which sets it
    _unsent: int

    def __init__(self, endpoint: ServerEndpoint, **settings: Any) -> None:
        super().__init__(endpoint, **settings)
        self._overflowed: Any = None  # the route of what was too much
        # What the server says of itself is the same in all sessions: kept once, it is a third less
        # for each of them.
        whole = endpoint._whole_machine
        self._info, self._capabilities = whole._info, whole._capabilities
        self._decoder = whole._decoder
        self._conversation.gates[self._side] = whole._conversation.gates[self._side]

    def _queue(self, message: bytes, route: Any) -> None:
        where = self._session._standalone if route is None else route
        if self._unsent + len(message) > self._config.max_unsent_bytes:
            if self._is_refused(message, "a message"):
                self._finish_without(where)
            else:
                self._overflowing = self._restless = True
                self._overflowed = where
        elif not where.deliver(message):
            self._lost(where)

    def _refusal_of(self, request: IncomingRequest, answer: bytes) -> bytes:
        if request._method == "initialize":
            self._overflowing = self._restless = True  # there is no session without its answer
        return super()._refusal_of(request, answer)

    def _launch(
        self,
        call: OutgoingRequest,
        message: bytes,
        timeout: float | None,
        max_timeout: float | None,
    ) -> None:
        if call._route is None:
            call._route = self._session._standalone  # by which the endpoint finds this machine
        super()._launch(call, message, timeout, max_timeout)

    def _abandon(
        self, call: OutgoingRequest, reason: FailureReason, text: str, message: bytes | None
    ) -> None:
        route: Any = call._route
        if route.over or not route.takes():
            call._route = self._session._standalone  # its cancellation can still arrive there
        super()._abandon(call, reason, text, message)

    def _choked(self, route: Any) -> bool:
        where = self._session._standalone if route is None else route
        return super()._choked(route) or not where.takes()

    def _holds_changes(self) -> bool:
        return super()._choked(None) or self._session._standalone.connected is None

    def _is_left(self) -> bool:
        return self._session._end is SessionEnd.DELETED

    def _taken(self, size: int) -> None:
        """So many bytes were taken off an exchange."""
        self._unsent -= size
        self._release_changes()

    def _release_changes(self) -> None:
        """What waits for a stream, or for room on it, follows as soon as there is some."""
        if self._held and not self._holds_changes():
            self._release_held()
            if self._restless:
                self._settle()

    def _end_overflow(self) -> None:
        routes: list[Any] = [request._route for request in self._incoming.values()]
        routes += [*self._session._standalone.listening, self._overflowed]
        streams = [route for route in routes if isinstance(route, Stream)]
        exchanges = [stream.exchange for stream in streams if stream.exchange is not None]
        self._held.clear()
        for exchange in exchanges:
            exchange._drop()  # before the endings: what these say is to be sent
        super()._end_overflow()
        for stream in streams:
            if not stream.over:  # it was its answer that was too much
                stream.finish(503, stream.request_id)

    def _agree_as_server(self, request: IncomingRequest, revision: str) -> None:
        super()._agree_as_server(request, revision)
        self._session._table.started(self._session, request)

    def _result_accepted(self, request: IncomingRequest, result: JSONObject) -> None:
        super()._result_accepted(request, result)
        uri, table = request._subject, self._session._table
        if request._method in _SUBSCRIBING and isinstance(uri, str):
            (table.file if uri in self._subscriptions else table.unfile)(uri, self)

    def _end_requests(self, cause: CancelCause) -> None:
        for uri in self._subscriptions:
            self._session._table.unfile(uri, self)
        super()._end_requests(cause)

    def _closed(self, cause: CloseCause) -> None:
        self._session._table.over(self._session)

    def _refuse_unreadable(self, breach: Breach, route: Any, **about: Any) -> None:
        if self._session._is_old:
            Machine._refuse_unreadable(self, breach, route, **about)
        else:
            super()._refuse_unreadable(breach, route, **about)

    def _refuse_duplicate(self, raw: RequestId, route: Any, batch: Batch | None, rule: str) -> None:
        if self._session._is_old:
            Machine._refuse_duplicate(self, raw, route, batch, rule)
        else:
            super()._refuse_duplicate(raw, route, batch, rule)
