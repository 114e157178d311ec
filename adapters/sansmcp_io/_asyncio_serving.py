"""From a request that has come to its handler, and from what that returns to the answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from sansmcp import IncomingRequest, JSONObject

from ._asyncio_tasks import Tasks
from ._call import RequireInput, Side, answer, answer_failure

Result: TypeAlias = JSONObject | RequireInput | Awaitable[JSONObject | RequireInput]


class Serving:
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

    def begin(self, request: IncomingRequest, tasks: Tasks) -> None:
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
            request.data = tasks.start_soon(self._finish, request, result, name=request.method)

    def cancel(self, request: IncomingRequest) -> None:
        if isinstance(request.data, asyncio.Task):
            request.data.cancel()

    async def _finish(
        self, request: IncomingRequest, awaitable: Awaitable[JSONObject | RequireInput]
    ) -> None:
        try:
            result = await awaitable
        except Exception as error:
            answer_failure(self._connection, request, error)
        else:
            if self._until_room is not None:
                await self._until_room()
            answer(self._connection, request, result)
        self._wake()
