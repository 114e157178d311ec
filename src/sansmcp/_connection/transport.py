"""How messages leave a connection, and what a transport has to do at some steps of its work.

`Transport` is the protocol with what every transport does by default; `ByteStream` is the transport
of connections on bytes. Those of HTTP, where each message has a route of its own, are in
`sansmcp.http`.
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
    """The steps at which a transport takes part; the defaults are those of one shared stream.

    A connection calls them; it never asks which transport it has.
    """

    __slots__ = ("core",)

    core: Core  # which sets it

    # -------------------------------------------------------------------------------------- output

    def queue(self, message: bytes, route: Route | None) -> None:
        """Put one encoded message (newline included) in line for `route`.

        Over the hard limit it is dropped and only a mark is set: the connection ends when the verb
        or the message that caused it is done. A message that is over the limit by itself is dropped
        alone.
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
        """Put `notifications/initialized` in line."""
        self.queue(message, None)

    def is_congested(self, route: Route | None) -> bool:
        """Whether output that may be dropped is to be dropped, on this way to the peer.

        Keeps OWN-011.
        """
        core = self.core
        return core.unsent > core.config.soft_unsent_bytes

    def holds_changes(self) -> bool:
        """Whether published changes wait, each once, until output has drained.

        Keeps OWN-011.
        """
        return self.is_congested(None)

    def settle(self) -> bool:
        """End what was found to be over during a verb; return whether all of it was sent."""
        return True

    def delivered(self) -> bool:
        """Whether all that the verb queued has found a reader, or waits for one."""
        return True

    def overflow_begins(self) -> None:
        """More output waits than the hard limit allows; everything open is about to end."""
        return

    def overflow_ended(self) -> None:
        """Everything open has ended, because more output waited than the hard limit allows."""
        return

    def excerpt(self, data: bytes | bytearray, over: int | None) -> bytes:
        """The start of a bad message, as events show it."""
        return excerpt_of(data, over=over)

    # ---------------------------------------------------------------------------------------- time

    def before_timer(self) -> None:
        """A deadline has passed, and a part is about to deal with it."""
        return

    def after_timer(self) -> None:
        """A part has dealt with a deadline that has passed."""
        return

    # --------------------------------------------------------------------------- outgoing requests

    def before_send(self, call: OutgoingRequest) -> None:
        """A request is about to be queued: it may need a route."""
        return

    def after_send(self, call: OutgoingRequest) -> None:
        """A request was queued."""
        return

    def cancellation(self, call: OutgoingRequest, message: bytes | None) -> bytes | None:
        """The message that tells the peer of a cancellation; None where nothing is sent."""
        return message

    def request_abandoned(self, call: OutgoingRequest) -> None:
        """A request ended without an answer."""
        return

    def request_concluded(self, call: OutgoingRequest) -> None:
        """A request is out of the tables; its ending follows."""
        return

    def was_not_run(self, call: OutgoingRequest) -> bool:
        """Whether the peer has certainly not run a request that ends without an answer."""
        return False

    def takes_answer(self, message: JSONObject) -> bool:
        """Whether an answer is judged like any other; False: the transport deals with it."""
        return True

    def status_of(self, call: OutgoingRequest) -> tuple[int | None, float | None]:
        """The HTTP status of an error response, and the seconds that the server asks to wait."""
        return None, None

    def loss_text(self, call: OutgoingRequest) -> str:
        """Why a request has no answer when the connection has ended, in one sentence."""
        return f"the connection ended before {call._method} was answered"

    # --------------------------------------------------------------------------- incoming requests

    def request_answered(self, request: IncomingRequest) -> None:
        """A request is out of the table; its answer, if there is one, follows."""
        return

    def batch_answered(self, batch: Batch, route: Route | None) -> None:
        """The last request of a batch has ended; its answers follow."""
        return

    def request_cancelled(self, request: IncomingRequest, cause: CancelCause) -> None:
        """A request was cancelled: it gets no answer."""
        return

    def request_refused(self, request: IncomingRequest, code: int) -> None:
        """A request is about to be answered with an error of the library."""
        return

    def answer_replaced(self, request: IncomingRequest) -> None:
        """An answer is too large; an error (-32603) is about to be sent in its place."""
        return

    def duplicate_refused(self, raw: RequestId, route: Route | None, batch: Batch | None) -> None:
        """A second request with an id in flight was reported. No answer may name that id."""
        return

    def answers_unreadable(
        self, breach: Breach, route: Route | None, raw_id: Any, batch: Batch | None
    ) -> bool:
        """Whether the transport itself has answered what is no message."""
        return False

    def judge_batch(self, values: list[Any]) -> Breach | None:
        """What the transport has against a batch, besides the rules for every batch."""
        return None

    # ------------------------------------------------------------------------------- notifications

    def deliver_notification(self, method: str, params: JSONObject) -> None:
        """Report a notification that the application learns of."""
        core = self.core
        core.events.append(NotificationReceived(method=method, params=params, peer=core.peer))

    def notify_listener(self, listener: Listener, message: bytes) -> bool:
        """Send a change to a listener; return whether the listener is, or will be, told."""
        self.queue(message, listener._request._route)
        return True

    def ends_with_cancelled(self, listener: Listener) -> bool:
        """Whether a cancellation follows the result that ends a subscription (SUBS-013)."""
        return True

    def has_room_for(self, wanted: int, taken: int) -> bool:
        """Whether `wanted` more subscriptions are allowed beside those that are `taken`."""
        return taken + wanted <= self.core.config.max_subscriptions

    def refusal_to_listen(self) -> str | None:
        """Why `subscriptions/listen` is not served; None where it is."""
        return None

    def subscribed(self, uri: str) -> None:
        """The peer has subscribed to a resource (`resources/subscribe`)."""
        return

    def unsubscribed(self, uris: Collection[str]) -> None:
        """The peer is not subscribed to these resources any more."""
        return

    # -------------------------------------------------------------------------- opening and ending

    def server_agreed(self, request: IncomingRequest) -> None:
        """A server has agreed on a revision by its answer to `initialize`, which follows."""
        return

    def client_agreed(self) -> None:
        """A client has agreed on a revision by the answer to `initialize`."""
        return

    def initialize_refused(self) -> None:
        """The server has answered `initialize` with an error."""
        return

    def start_failed(
        self, start: Start, cause: FailureCause, text: str
    ) -> tuple[int | None, float | None]:
        """A start has failed; return HTTP status and wait of the response that refused it."""
        return None, None

    def keeps_open(self, cause: CloseCause) -> bool:
        """Whether the connection goes on although it would end for this cause."""
        return False

    def closed(self, cause: CloseCause) -> None:
        """Report the end of the connection: all that was open has had its ending."""
        self.core.events.append(ConnectionClosed(cause=cause))
