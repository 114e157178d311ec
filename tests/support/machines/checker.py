"""Checks every call of one side of a conversation against the promises of the library.

A `Checker` is the application. It records the requests of both sides, from events and from the
results of verbs, and compares the record with the connection.
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
    Task,
)
from sansmcp.testing import Handle
from tests.support.machines.books import Books, remove
from tests.support.machines.promises import demand

HandleT = TypeVar("HandleT", bound=Handle)


class Checker(Books):
    """The application of one side.

    Args:
        connection: The connection to use and to check. Open requests of both sides are known from
            the beginning. Unknown are open listings, subscriptions, pings and openings, and
            requests about which the server has already asked questions.

    Attributes:
        waiting: What this side has sent and what has not ended, oldest first.
        handling: Requests of the peer that are neither answered nor cancelled, oldest first.
        answered: Requests of the peer that this side or the library has answered.
        questioned: Requests of this side that ended with questions, and can have another round.
        between_rounds: Requests of the peer that were answered with questions, where these are
            requests of this side. Such a request arrives again, is refused, or is cancelled.
        listeners: The subscriptions of the peer that are served, oldest first.
        tasks: Requests of this side that became tasks: they have ended, but may have progress.
        closed: Whether the last event was taken.
    """

    # -------------------------------------------------------------------------------- asking

    def ask(self, send: Callable[[], HandleT]) -> HandleT | LocalProtocolError:
        """Call a verb that sends, and record the handle that it returns until its ending.

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
        """Cancel a handle; the result must be True exactly if it has not ended.

        Returns:
            What the verb returned, or raised since this handle must not be cancelled.
        """

        def call() -> bool:
            return self.connection.cancel(handle, reason=reason)

        if not any(handle is other for other in self.waiting):
            return self._lost_race(call)
        done = self.attempt(call)
        demand(done is not False, f"{handle!r} is open, but could not be cancelled")
        return done

    def provide(self, call: OutgoingRequest, send: Callable[[], OutgoingRequest]) -> Any:
        """Call `provide_input`, which must succeed exactly once for each ending with questions.

        Returns:
            The handle of the next round, or what the verb raised.
        """
        if not any(call is other for other in self.questioned):
            raised = self.attempt(send)
            demand(
                isinstance(raised, LocalProtocolError),
                f"{call!r} has no open questions, but `provide_input` did not raise",
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

        It must return True if the request is open, return False if it was cancelled, and raise if
        it was answered before. For an invalid answer it may also raise, and leave the request open.

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
        demand(done is True, f"{request!r} is open, but could not be answered")
        demand(not request.open, f"{request!r} was answered, and is still open")
        remove(self.listeners if served else self.handling, served[0] if served else request)
        self.answered.append(request)
        return done

    def require_input(self, request: IncomingRequest, call: Callable[[], bool]) -> Any:
        """Call `require_input`, after which the handle is answered.

        Returns:
            What the verb returned or raised.
        """
        done = self.answer(request, call)
        if done is True and request.revision in LEGACY_REVISIONS:
            self.between_rounds.append(request)
        return done

    def read_state(self, request: IncomingRequest, call: Callable[[], str | None]) -> Any:
        """Call `read_state`, which refuses a request if its state was not sealed by this side.

        After that, an answer to the request has lost a race.

        Returns:
            What the verb returned or raised.
        """
        state = self.attempt(call, request)
        if not request.open and remove(self.handling, request):
            demand(state is None, f"a state was returned, but {request!r} was refused")
        return state

    def create_task(self, request: IncomingRequest, call: Callable[[], Task | None]) -> Any:
        """Call `create_task`: it must return a task for an open request, or else None.

        Returns:
            What the verb returned or raised.
        """
        was_open = request.open
        task = self.attempt(call, request)
        if isinstance(task, LocalProtocolError):
            return task
        demand((task is None) != was_open, f"{task!r} for {request!r}")
        if task is not None:
            remove(self.handling, request)
            self.answered.append(request)
        return task

    def change_task(self, task: Task, call: Callable[[], bool]) -> Any:
        """Call a verb on a task, which must return False and change nothing after its end.

        Returns:
            What the verb returned or raised.
        """
        return self.attempt(call) if task.open else self._lost_race(call)

    def acknowledge(self, request: IncomingRequest, call: Callable[[], Listener | None]) -> Any:
        """Call `acknowledge`: it must return a listener for an open subscription, or else None.

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
            demand(waits, f"{request!r} is not open, but was acknowledged")
            remove(self.handling, request)
            self.listeners.append(listener)
        return listener

    def end_listener(self, listener: Listener, call: Callable[[], bool]) -> Any:
        """Call `end_listener`: the result must be True exactly if the subscription is served.

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
        """Call `send_progress`, with a valid number or for a request that is open.

        It must return False if the request has ended or has no token, except that a request that
        became a task may have progress after its answer. For an open request it may also return
        False, since the progress is dropped, or raise, since the number is no valid progress.

        Returns:
            What the verb returned or raised.
        """
        waits = any(request is other for other in self.handling)
        if "task" not in request.params and not (waits and request.progress_token is not None):
            return self._lost_race(call, request)
        return self.attempt(call, request)
