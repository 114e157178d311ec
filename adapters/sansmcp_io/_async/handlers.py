"""Runs handlers and answers their requests, the same on all loops with `async`."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, Final, TypeAlias

from sansmcp import IncomingRequest, JSONObject

from .._common.call import RequireInput, Side, answer, answer_failure, ends_program

Result: TypeAlias = JSONObject | RequireInput | Awaitable[JSONObject | RequireInput]


class HandlerRunner(ABC):
    """Runs the handlers of requests of a peer, and can cancel them. Each loop has a subclass.

    Args:
        connection: The core object that sends the answers.
        handler: Called with the call of a request.
        make_call: Makes the call of a request.
        clock: Tells the time, in seconds.
        until_room: Waits until an answer may be added to an output that all requests share; the
            answers of plain functions do not wait.
        wake: Called when an answer outside of `begin` has added output.
        end_program: Called with SystemExit or KeyboardInterrupt of a handler, after its request was
            answered; the server raises it.
    """

    def __init__(
        self,
        connection: Side,
        handler: Callable[[Any], Result],
        make_call: Callable[[IncomingRequest], Any],
        *,
        clock: Callable[[], float],
        until_room: Callable[[], Awaitable[None]] | None,
        wake: Callable[[], None],
        end_program: Callable[[IncomingRequest, BaseException], None],
    ) -> None:
        self._connection: Final = connection
        self._handler: Final = handler
        self._make_call: Final = make_call
        self._clock: Final = clock
        self._until_room: Final = until_room
        self._wake: Final = wake
        self._end_program: Final = end_program

    def begin(self, request: IncomingRequest, tasks: Any) -> None:
        """Call the handler; an async handler runs in a task of its own."""
        if request.open:  # otherwise, it was cancelled before this
            # A handler does not see the context variables that another handler has set.
            copy_context().run(self._begin, request, tasks)

    def _begin(self, request: IncomingRequest, tasks: Any) -> None:
        try:
            result = self._handler(self._make_call(request))
        except BaseException as error:
            self._failed(request, error)
            return
        if type(result) is dict or not inspect.isawaitable(result):
            answer(self._connection, request, result, self._clock())
        else:
            self._start(request, result, tasks)

    def _failed(self, request: IncomingRequest, failure: BaseException) -> None:
        """Answer with an error for a handler that has raised an exception."""
        answer_failure(self._connection, request, failure, self._clock())
        if ends_program(failure):
            self._end_program(request, failure)

    @abstractmethod
    def cancel(self, request: IncomingRequest) -> None:
        """Cancel the handler of a request that is no longer open, if it still runs."""

    @abstractmethod
    def _start(
        self,
        request: IncomingRequest,
        awaitable: Awaitable[JSONObject | RequireInput],
        tasks: Any,
    ) -> None:
        """Await the result in a new one of `tasks`, and answer the request."""
