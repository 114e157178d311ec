"""The steps of a connection in which transports differ, such as queueing a message.

`Transport` has the default behaviour: one stream for all messages. The transport of connections on
bytes is `connection.ByteStreamTransport`. The transports of HTTP, where each message has its own
route, are in `sansmcp.http`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol

from .._rules.sending import Breach
from .._wire.framing import excerpt_of
from .._wire.values import JSONObject, RequestId
from .events import CancelCause, CloseCause, ConnectionClosed, FailureCause, NotificationReceived
from .handles import Batch, IncomingRequest, Listener, OutgoingRequest, Route, Start

if TYPE_CHECKING:
    from .core import Core


class Transport(Protocol):
    """The steps that a connection leaves to its transport.

    The parts of a connection call these methods and never ask which transport they have. Each
    method has a default, which fits one stream for all messages: a transport that names this
    protocol as its base defines only the steps in which it differs.

    Attributes:
        core: The core of the connection, which sets this attribute.
    """

    __slots__ = ("core",)

    core: Core

    # -------------------------------------------------------------------------------------- output

    def queue(self, message: bytes, route: Route | None) -> None:
        """Queue one encoded message, newline included, for `route`.

        If the output would go over its hard limit, the message is dropped and `Core.overflowing`
        is set: the connection ends when the current verb, or the current message of the peer, is
        done. A message that is larger than the limit by itself is dropped alone.
        """
        core = self.core
        unsent = core.unsent + len(message)
        if unsent > core.config.max_unsent_bytes:
            if not core.is_refused(message, "a message"):
                core.overflowing = core.needs_settle = True
            return
        core.unsent = unsent
        core.output.append((message, route))

    def queue_initialized(self, message: bytes) -> None:
        """Queue `notifications/initialized`."""
        self.queue(message, None)

    def is_congested(self, route: Route | None) -> bool:
        """Whether `route` has so much unsent output that progress and logs are dropped.

        Keeps OWN-011.
        """
        core = self.core
        return core.unsent > core.config.soft_unsent_bytes

    def holds_changes(self) -> bool:
        """Whether published changes are held back until the transport has taken output.

        Keeps OWN-011.
        """
        return self.is_congested(None)

    def settle(self) -> bool:
        """End what has failed during a verb; return whether all its messages were sent."""
        return True

    def delivered(self) -> bool:
        """Whether each message of the verb has a stream, or waits for one."""
        return True

    def overflow_begins(self) -> None:
        """React to output over the hard limit; the connection ends after this call."""
        return

    def overflow_ended(self) -> None:
        """React to the end of the connection that output over the hard limit has caused."""
        return

    def excerpt(self, data: bytes | bytearray, over: int | None) -> bytes:
        """The start of a bad message, for an event (see `Core.excerpt`)."""
        return excerpt_of(data, over=over)

    # ---------------------------------------------------------------------------------------- time

    def before_timer(self) -> None:
        """Prepare for a part that is about to handle a deadline."""
        return

    def after_timer(self) -> None:
        """React to a deadline that a part has handled."""
        return

    # --------------------------------------------------------------------------- outgoing requests

    def before_send(self, call: OutgoingRequest) -> None:
        """Choose a route for a request that is about to be queued."""
        return

    def after_send(self, call: OutgoingRequest) -> None:
        """React to a request that was queued."""
        return

    def cancellation(self, call: OutgoingRequest, message: bytes | None) -> bytes | None:
        """The cancellation to send for a request; None if none is sent."""
        return message

    def request_abandoned(self, call: OutgoingRequest) -> None:
        """React to a request that ended without a response."""
        return

    def request_concluded(self, call: OutgoingRequest) -> None:
        """React to a request that has left the tables; its ending follows."""
        return

    def was_not_run(self, call: OutgoingRequest) -> bool:
        """Whether the peer has certainly not run a request that ends without a response."""
        return False

    def takes_response(self, message: JSONObject) -> bool:
        """Whether the connection handles a response; False: the transport has handled it."""
        return True

    def status_of(self, call: OutgoingRequest) -> tuple[int | None, float | None]:
        """The HTTP status of an error response, and the seconds in its `Retry-After`."""
        return None, None

    def loss_text(self, call: OutgoingRequest) -> str:
        """The reason, in one sentence, why a request was lost when the connection ended."""
        return f"the connection ended before {call._method} was answered"

    def result_cached(self, method: str, result: JSONObject) -> None:
        """React to a result from the cache, which the application gets afterwards."""
        return

    # --------------------------------------------------------------------------- incoming requests

    def request_answered(self, request: IncomingRequest) -> None:
        """React to a request that has left the table; its response, if any, follows."""
        return

    def batch_answered(self, batch: Batch, route: Route | None) -> None:
        """React to the end of the last request of a batch; the responses follow."""
        return

    def request_cancelled(self, request: IncomingRequest, cause: CancelCause) -> None:
        """React to a request that was cancelled: it gets no response."""
        return

    def request_refused(self, request: IncomingRequest, code: int) -> None:
        """React to a request that the library is about to answer with an error."""
        return

    def response_replaced(self, request: IncomingRequest) -> None:
        """React to a response that is too large: the error -32603 is sent in its place."""
        return

    def duplicate_refused(self, raw: RequestId, route: Route | None, batch: Batch | None) -> None:
        """React to a second request with the id of an open one. No response may name that id."""
        return

    def answers_unreadable(
        self, breach: Breach, route: Route | None, raw_id: Any, batch: Batch | None
    ) -> bool:
        """Whether the transport itself has answered an unreadable message."""
        return False

    def judge_batch(self, values: list[Any]) -> Breach | None:
        """Return the breach if this transport does not take a batch; else None."""
        return None

    # ------------------------------------------------------------------------------- notifications

    def deliver_notification(self, method: str, params: JSONObject) -> None:
        """Deliver a notification of the peer to the application, as an event."""
        core = self.core
        core.events.append(NotificationReceived(method=method, params=params, peer=core.peer))

    def notify_listener(self, listener: Listener, message: bytes) -> bool:
        """Send a change to a listener; return whether the message was queued or held."""
        self.queue(message, listener._request._route)
        return True

    def ends_with_cancelled(self, listener: Listener) -> bool:
        """Whether `notifications/cancelled` follows the result of a subscription (SUBS-013)."""
        return True

    def has_room_for(self, wanted: int, taken: int) -> bool:
        """Whether the limit allows `wanted` more subscriptions beside `taken` existing ones."""
        return taken + wanted <= self.core.config.max_subscriptions

    def refusal_to_listen(self) -> str | None:
        """The reason why `subscriptions/listen` is refused; None if it is served."""
        return None

    def subscribed(self, uri: str) -> None:
        """React to a subscription of the peer to a resource (`resources/subscribe`)."""
        return

    def unsubscribed(self, uris: Collection[str]) -> None:
        """React to the end of the peer's subscriptions to these resources."""
        return

    # --------------------------------------------------------------------------------------- tasks

    def anonymous_owner(self) -> str:
        """The owner of the tasks of a peer without a principal."""
        return ""

    def became_task(self, call: OutgoingRequest) -> None:
        """React to a request whose response is a task; its ending comes later."""
        return

    def reaches_peer(self) -> bool:
        """Whether a message that belongs to no request of the peer arrives now."""
        return True

    # -------------------------------------------------------------------------- opening and ending

    def server_agreed(self, request: IncomingRequest) -> None:
        """React to a server that accepts `initialize`; its response follows."""
        return

    def client_agreed(self) -> None:
        """React to a client that has accepted the server's response to `initialize`."""
        return

    def initialize_refused(self) -> None:
        """React to a server that has answered `initialize` with an error."""
        return

    def start_failed(
        self, start: Start, cause: FailureCause, text: str
    ) -> tuple[int | None, float | None]:
        """React to a failed start; return status and `Retry-After` of the HTTP response, if any."""
        return None, None

    def keeps_open(self, cause: CloseCause) -> bool:
        """Whether the connection stays open in spite of this cause."""
        return False

    def closed(self, cause: CloseCause) -> None:
        """Report the end of the connection; every open request has had its ending."""
        self.core.events.append(ConnectionClosed(cause=cause))
