"""From a request that has come to its handler, and from what that returns to the answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import trio

from sansmcp import IncomingRequest, JSONObject

from ._call import RequireInput, Side, answer, answer_failure

Result: TypeAlias = JSONObject | RequireInput | Awaitable[JSONObject | RequireInput]


class Serving:
    """Has the requests of a peer handled: each is begun, and may be cancelled later.

    The slot `data` of a request holds the cancel scope of its handler, where that is async.

    Args:
        connection: What the answers are sent on.
        handler: Called with what `make_call` has made of a request.
        make_call: Makes what a handler is given.
        until_room: Waits until an answer may be added to the output, where one output is shared
            by all; the answers of plain functions do not wait.
        wake: Called after an answer that came outside of `begin`: there is output.
    """

    def __init__(
        self,
        connection: Side,
        handler: Callable[[Any], Result],
        make_call: Callable[[IncomingRequest], Any],
        *,
        until_room: Callable[[], Awaitable[None]] | None,
        wake: Callable[[], None],
    ) -> None:
        self._connection: Final = connection
        self._handler: Final = handler
        self._make_call: Final = make_call
        self._until_room: Final = until_room
        self._wake: Final = wake

    def begin(self, request: IncomingRequest, tasks: trio.Nursery) -> None:
        """Run a plain function here and now; give an async one its own task and cancel scope."""
        if not request.open:
            return  # it was cancelled before it began
        try:
            result = self._handler(self._make_call(request))
        except Exception as error:
            answer_failure(self._connection, request, error)
            return
        if type(result) is dict or not inspect.isawaitable(result):
            answer(self._connection, request, result)
        else:
            scope = request.data = trio.CancelScope()
            # With a name of ours, trio does not put one together.
            tasks.start_soon(self._finish, request, result, scope, name=request.method)

    def cancel(self, request: IncomingRequest) -> None:
        """Cancel the handler of a request that is no longer open, if it still runs."""
        if isinstance(request.data, trio.CancelScope):
            request.data.cancel()

    async def _finish(
        self,
        request: IncomingRequest,
        awaitable: Awaitable[JSONObject | RequireInput],
        scope: trio.CancelScope,
    ) -> None:
        with scope:
            try:
                result = await awaitable
            except Exception as error:
                answer_failure(self._connection, request, error)
            else:
                if self._until_room is not None:
                    await self._until_room()
                answer(self._connection, request, result)
            self._wake()
