"""Async handlers on trio: each in a task and a cancel scope of its own."""

from __future__ import annotations

from collections.abc import Awaitable

import trio

from sansmcp import IncomingRequest, JSONObject

from . import _async_serving
from ._async_serving import Result
from ._call import RequireInput, answer, answer_failure

__all__ = ["Result", "Serving"]


class Serving(_async_serving.Serving):
    """The slot `data` of a request holds the cancel scope of its handler, where that is async."""

    def cancel(self, request: IncomingRequest) -> None:
        """Cancel the handler of a request that is no longer open, if it still runs."""
        if isinstance(request.data, trio.CancelScope):
            request.data.cancel()

    def _start(
        self,
        request: IncomingRequest,
        awaitable: Awaitable[JSONObject | RequireInput],
        tasks: trio.Nursery,
    ) -> None:
        scope = request.data = trio.CancelScope()
        # With a name of ours, trio does not put one together.
        tasks.start_soon(self._finish, request, awaitable, scope, name=request.method)

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
