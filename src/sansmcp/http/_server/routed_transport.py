"""The server's end of conversations over HTTP, where every request may have a route of its own.

A session has a transport of its own (`session_transport`). Requests outside of sessions, modern
requests above all, go through one transport that many clients share (`shared_transport`): a
transport for each of them would cost more than all the rest.

Source: MCP 2026-07-28, basic/transports/streamable-http; basic/index, Error Codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..._connection.config import Config
from ..._connection.core import Core
from ..._connection.events import CancelCause, FailureReason, NotificationReceived
from ..._connection.handles import (
    Batch,
    IncomingRequest,
    OutgoingRequest,
    held_bytes_of,
    is_modern,
    route_of,
)
from ..._connection.machine import ServerMachine
from ..._connection.tasks.board import TaskBoard
from ..._connection.transport import Transport
from ..._rules.conversation import Peer
from ..._rules.messages import judge_posted_batch
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode, LocalProtocolError
from ..._wire.values import JSONObject, JSONValue, Missing, RequestId, Side, table_key
from .._headers import Headers
from .core import ServerEndpointCore
from .events import MessageUndelivered
from .exchange import ServerExchangeCore

_NO_STREAM: Final = "no stream of the client is open on which {} could be sent"
_MODERN: Final = {
    ErrorCode.METHOD_NOT_FOUND: 404,
    ErrorCode.PARSE_ERROR: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.INVALID_PARAMS: 400,
    ErrorCode.HEADER_MISMATCH: 400,
    ErrorCode.MISSING_CLIENT_CAPABILITY: 400,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: 400,
}


def _error_status(code: int, is_modern: bool) -> int:
    """The status of an error response of the application.

    Keeps CAP-008, HTTP-023.
    """
    return _MODERN.get(code, 200) if is_modern else 200


def _refusal_status(code: int, is_modern: bool) -> int:
    """The status of an error response by which the library refuses a request.

    A legacy client takes 404 for the end of its session, and any other 4xx for the end of the
    connection. So the error for an unknown method has the status of a result (200).

    Keeps META-011.
    """
    if code == ErrorCode.INTERNAL_ERROR:  # a limit was reached
        return 503
    if is_modern:
        return _MODERN.get(code, 400)
    return 200 if code == ErrorCode.METHOD_NOT_FOUND else 400


class RoutedTransport(Transport):
    """The base class of `SessionTransport` and `SharedTransport`: each message has a route.

    A transport makes the machine that it serves. The machine says what happens to a request, and
    the transport decides what that means for the exchange that the request came on.

    Attributes:
        asking: The request of the server that is being queued; else None.
        endpoint: What all parts of the endpoint share.
        is_modern: Whether the transport serves the clients of 2026-07-28.
        machine: The parts of the transport.
        sender: The exchange of a message that is no request, while the message is received.
    """

    __slots__ = ("_undelivered", "asking", "endpoint", "is_modern", "machine", "sender")

    core: Core  # which sets it

    def __init__(
        self,
        endpoint: ServerEndpointCore,
        *,
        info: JSONObject,
        capabilities: JSONObject | None,
        instructions: str | None,
        revisions: Sequence[str],
        config: Config,
        tasks: TaskBoard | None,
    ) -> None:
        self.endpoint: ServerEndpointCore = endpoint
        core = Core(
            Side.SERVER,
            self,
            info=info,
            capabilities=capabilities,
            revisions=revisions,
            config=config,
            wake=None,
            newline=b"",
            timers=endpoint.timers,
            tasks=None if tasks is None else tasks.settings,
        )
        core.events = endpoint.events
        self.machine: ServerMachine = ServerMachine(core, instructions, tasks)
        self.sender: ServerExchangeCore | None = None
        self.is_modern: bool = False
        self.asking: OutgoingRequest | None = None
        self._undelivered = False

    # -------------------------------------------------------------------------------- output

    def lost(self, route: Any) -> None:
        """No client will read a message that was for this route.

        Keeps OWN-032.
        """
        self._undelivered = self.core.needs_settle = True
        is_answer = route.closing and not route.over
        if self.asking is None:
            self.report_undelivered(is_answer)
        if is_answer:
            route.finish()

    def report_undelivered(self, is_answer: bool) -> None:
        """Report that a message of the server is lost."""
        self.endpoint.events.append(
            MessageUndelivered(session=self.core.peer.session, is_answer=is_answer)
        )

    def finish_without(self, route: Any) -> None:
        """End the exchange of a message that can never be sent, if it was the last message."""
        if route.closing and not route.over:
            route.finish(503, route.request_id)

    def settle(self) -> bool:
        """Nothing is left to do here; the core does the rest."""
        self.core.needs_settle = False
        return True

    def delivered(self) -> bool:
        """Whether each message that the verb queued has found a reader, or waits for one."""
        delivered, self._undelivered = not self._undelivered, False
        return delivered

    def before_send(self, call: OutgoingRequest) -> None:
        """Note that a request is being queued: if a message is lost now, it is this one."""
        self.asking, self._undelivered = call, False

    def after_send(self, call: OutgoingRequest) -> None:
        """A request was queued. Without a reader it ends when the verb is done."""
        self.asking = None
        if self._undelivered:
            self._undelivered = False
            self.lose(call)

    def lose(self, call: OutgoingRequest) -> None:
        """End a request that no client will read, when the verb is done."""
        reason = FailureReason.NO_STREAM
        self.core.fail_later(call, reason, _NO_STREAM.format(call.method))

    def send_log(
        self,
        level: str,
        data: JSONValue,
        logger: str | None,
        meta: JSONObject | None,
        request: IncomingRequest | None,
    ) -> bool:
        """Send a log message to the client; return whether it was queued."""
        return self.machine.notifications.send_log(level, data, logger, meta, request, None)

    def send_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None,
        message: str | None,
        meta: JSONObject | None,
    ) -> bool:
        """Send progress of a request to the client; return whether it was queued."""
        return self.machine.incoming.send_progress(request, progress, total, message, meta, None)

    # ------------------------------------------------------------------------------ answering

    def send_error(
        self,
        request: IncomingRequest,
        code: int,
        message: str,
        data: JSONValue | Missing,
        status: int | None = None,
        more: Headers = (),
    ) -> bool:
        """Answer a request with an error, which has a status; return whether it goes out.

        Args:
            request: The request.
            code: The code.
            message: The message.
            data: The data.
            status: The status of a response that has not begun; None: that of the code.
            more: Headers of such a response beside the usual ones.
        """
        route = route_of(request)
        if request.open and not route.is_batch:
            modern = is_modern(request)
            right = self.machine.messages.modern_code(code, data) if modern else code
            route.status = _error_status(right, modern) if status is None else status
            route.more = more
        try:
            return self.machine.incoming.send_error(request, code, message, data, None)
        except LocalProtocolError:
            route.status, route.more = 200, ()
            raise

    def request_answered(self, request: IncomingRequest) -> None:
        """The next message on the route of a request is its response."""
        self.endpoint.held.bytes -= held_bytes_of(request)
        route = route_of(request)
        if not route.is_batch:
            route.closing = True
            route.request_id = request.id

    def batch_answered(self, batch: Batch, route: Any) -> None:
        """The next message on the route of a batch is its response."""
        route.closing = True

    def response_replaced(self, request: IncomingRequest) -> None:
        """An error goes out instead of a response, with the status of the error."""
        route = route_of(request)
        if not route.is_batch:
            route.status = _error_status(ErrorCode.INTERNAL_ERROR, is_modern(request))

    def request_cancelled(self, request: IncomingRequest, cause: CancelCause) -> None:
        """End the exchange of a cancelled request, with 503 where this server closes."""
        route = route_of(request)
        if not route.closing or route.over:
            return
        if cause is CancelCause.PEER or self.is_left():
            route.finish()
        else:  # the error has the id, or for a batch none, since no single request is meant
            route.finish(503, None if route.is_batch else request.id)

    def is_left(self) -> bool:
        """Whether the client itself has ended the conversation that its requests belong to."""
        return False

    # ------------------------------------------------------------------------------- refusing

    def request_refused(self, request: IncomingRequest, code: int) -> None:
        """Note the status of an error by which the library refuses a request."""
        route = route_of(request)
        if not route.is_batch:
            route.status = _refusal_status(code, is_modern(request))

    def duplicate_refused(self, raw: RequestId, route: Any, batch: Batch | None) -> None:
        """Answer the POST of a duplicate without the id, which would answer the first request."""
        if batch is None:
            text = f"the id {raw!r} is in use"[:300]
            body = self.machine.incoming.error_bytes(ErrorCode.INVALID_REQUEST, text)
            route.refuse(400, b'{"jsonrpc":"2.0","error":%b}' % body)

    def answers_unreadable(
        self, breach: Breach, route: Any, raw_id: Any, batch: Batch | None
    ) -> bool:
        """Answer the POST of an invalid message, with its id if that could be read."""
        if batch is not None:
            return False
        key = table_key(raw_id)
        is_named = key is not None and key not in self.core.requests
        id = b'"id":%b,' % self.core.encode(raw_id) if is_named else b""
        body = self.machine.incoming.error_bytes(breach.code, breach.text)
        route.refuse(400, b'{"jsonrpc":"2.0",%b"error":%b}' % (id, body))
        return True

    def judge_batch(self, values: list[Any]) -> Breach | None:
        """A batch that is POSTed holds requests and notifications, or responses (BATCH-004)."""
        return judge_posted_batch(values)

    # -------------------------------------------------------------------------- notifications

    def deliver_notification(self, method: str, params: JSONObject) -> None:
        """Report a notification with the context of the exchange that brought it."""
        assert self.sender is not None
        self.core.events.append(
            NotificationReceived(
                method=method,
                params=params,
                peer=self.peer_of(self.sender),
                context=self.sender.context,
            )
        )

    def peer_of(self, exchange: ServerExchangeCore) -> Peer:
        """The client that a message of this exchange comes from."""
        return self.core.peer

    # ---------------------------------------------------------------------------------- time

    def before_timer(self) -> None:
        """A timer of the transport is about to fire."""
        self.core.now = self.endpoint.now

    def after_timer(self) -> None:
        """A timer has fired: what it sent may have found no reader."""
        if self.core.needs_settle:
            self.core.settle()
