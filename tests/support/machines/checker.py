"""Checks every call of one side of a conversation against the promises of the library.

A `Checker` is the application: it keeps its own books of what it asked and was asked, from events
and from what verbs return, and compares them with what the connection says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sansmcp import (
    LEGACY_REVISIONS,
    IncomingRequest,
    Listener,
    Listing,
    LocalProtocolError,
    OutgoingRequest,
    Subscription,
)
from sansmcp.testing import Handle
from tests.support.machines.books import Books, remove
from tests.support.machines.promises import demand

HandleT = TypeVar("HandleT", bound=Handle)


class Checker(Books):
    """The application of one side.

    Args:
        connection: The connection to use and to check. Requests that began before are known here,
            those of the peer too; listings, subscriptions, pings, the opening, and requests about
            which the server has asked already are not.

    Attributes:
        waiting: What was asked and has not ended, oldest first.
        handling: What the peer asked and has been neither answered nor cancelled, oldest first.
        answered: What was answered, by this side or by the library itself.
        questioned: What was asked and ended with questions of the server, and may be gone on with.
        between_rounds: What was answered with questions that are requests of this side now; it
            comes again, or is refused by the library, or cancelled.
        listeners: The peer's subscriptions that are served, oldest first.
        tasks: What was asked and became a task: it has ended, and its progress may go on.
        closed: Whether the last event came.
    """

    # -------------------------------------------------------------------------------- asking

    def ask(self, send: Callable[[], HandleT]) -> HandleT | LocalProtocolError:
        """Call a verb that sends and returns a handle, whose one ending is waited for.

        Returns:
            The handle, or what the verb raised.
        """
        handle: HandleT | LocalProtocolError = self.attempt(send)
        if not isinstance(handle, LocalProtocolError):
            demand(not self.closed, f"{handle!r} was sent after the last event")
            self.waiting.append(handle)
        return handle

    def cancel(
        self, handle: OutgoingRequest | Listing | Subscription, reason: str | None = None
    ) -> Any:
        """Cancel something; True exactly if it was still waited for.

        Returns:
            What the verb returned, or raised because that must not be cancelled.
        """

        def call() -> bool:
            return self.connection.cancel(handle, reason=reason)

        if not any(handle is other for other in self.waiting):
            return self._lost_race(call)
        done = self.attempt(call)
        demand(done is not False, f"{handle!r} waits, and could not be cancelled")
        return done

    def provide(self, call: OutgoingRequest, send: Callable[[], OutgoingRequest]) -> Any:
        """Call `provide_input`: possible once for each ending with questions, and never else.

        Returns:
            The handle of the next round, or what the verb raised.
        """
        if not any(call is other for other in self.questioned):
            raised = self.attempt(send)
            demand(
                isinstance(raised, LocalProtocolError),
                f"nothing is asked about {call!r}, and it could be gone on with",
            )
            return raised
        renewed = self.ask(send)
        if not isinstance(renewed, LocalProtocolError):
            demand(renewed is not call, "the next round has the handle of the last one")
            remove(self.questioned, call)
        return renewed

    # ----------------------------------------------------------------------------- answering

    def answer(self, request: IncomingRequest, call: Callable[[], bool]) -> Any:
        """Call a verb that answers a request.

        It returns True if the request waits, returns False if it was cancelled, and raises if it
        was answered before; it may also raise, and leave it open, for what is wrong in the answer.

        Returns:
            What the verb returned or raised.
        """
        if any(request is other for other in self.answered):
            raised = self.attempt(call, request)
            demand(
                isinstance(raised, LocalProtocolError),
                f"{request!r} could be answered a second time",
            )
            return raised
        served = [one for one in self.listeners if one.request is request]
        if not served and not any(request is other for other in self.handling):
            return self._lost_race(call, request)
        done = self.attempt(call, request)
        if isinstance(done, LocalProtocolError):
            demand(request.open, f"{request!r} was closed by a call that raised: {done}")
            return done
        demand(done is True, f"{request!r} waits, and could not be answered")
        demand(not request.open, f"{request!r} was answered, and is still open")
        remove(self.listeners if served else self.handling, served[0] if served else request)
        self.answered.append(request)
        return done

    def require_input(self, request: IncomingRequest, call: Callable[[], bool]) -> Any:
        """Call `require_input`, which spends the handle like an answer.

        Returns:
            What the verb returned or raised.
        """
        done = self.answer(request, call)
        if done is True and request.revision in LEGACY_REVISIONS:
            self.between_rounds.append(request)
        return done

    def read_state(self, request: IncomingRequest, call: Callable[[], str | None]) -> Any:
        """Call `read_state`, which refuses a request by itself if the state is not ours.

        Then whoever answers it has lost a race.

        Returns:
            What the verb returned or raised.
        """
        state = self.attempt(call, request)
        if not request.open and remove(self.handling, request):
            demand(state is None, f"a state was read, and {request!r} refused")
        return state

    def acknowledge(self, request: IncomingRequest, call: Callable[[], Listener | None]) -> Any:
        """Call `acknowledge`: a listener for a subscription that waits, None for one that is over.

        Returns:
            What the verb returned or raised.
        """
        was_open = request.open
        waits = any(request is other for other in self.handling)
        listener = self.attempt(call, request)
        if isinstance(listener, LocalProtocolError):
            return listener
        demand((listener is None) != was_open, f"{listener!r} for {request!r}")
        if listener is not None:
            demand(waits, f"{request!r} does not wait, and was acknowledged")
            remove(self.handling, request)
            self.listeners.append(listener)
        return listener

    def end_listener(self, listener: Listener, call: Callable[[], bool]) -> Any:
        """Call `end_listener`: True exactly if the subscription is served.

        Returns:
            What the verb returned or raised.
        """
        if not any(listener is other for other in self.listeners):
            return self._lost_race(call, listener.request)
        done = self.attempt(call)
        demand(done is True, f"{listener!r} is served, and could not be ended")
        demand(not listener.open, f"{listener!r} was ended, and is still open")
        remove(self.listeners, listener)
        self.answered.append(listener.request)
        return done

    def progress(self, request: IncomingRequest, call: Callable[[], bool]) -> Any:
        """Call `send_progress`, with a good number or for a request that waits.

        It returns False if the request is over or has no token; but a request for a task may go
        on after its answer. For one that waits it may also return False, to drop it, or raise for
        a number that is no progress.

        Returns:
            What the verb returned or raised.
        """
        waits = any(request is other for other in self.handling)
        if "task" not in request.params and not (waits and request.progress_token is not None):
            return self._lost_race(call, request)
        return self.attempt(call, request)
