"""The client that applications use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from sansmcp import JSONObject, JSONValue, Peer, State

from .._common.requests import RequestArguments
from .call import Call
from .client_tasks import ClientTask
from .handlers import Result
from .mailbox import Changes
from .requests import RequestSender
from .restart import Opening, Restarter, SessionT

if TYPE_CHECKING:
    from .._common.typed_requests import AsyncRequests as Requester
    from .._common.typed_requests import TaskRequests as ClientBase
else:
    from .._common.client import ClientBase
    from .._common.requests import Requester


RequestHandler: TypeAlias = Callable[[Call], Result]
"""Serves a server's requests (`sampling/createMessage`, `roots/list`, ...), like `Handler`.

It also answers questions that a server of 2026-07-28 asks about a request of the client. What it
raises then is raised by `Client.request` as `McpError`, and it is cancelled when the connection
ends.
"""


class Client(
    ClientBase[
        AsyncGenerator[JSONValue, None],
        AbstractAsyncContextManager[Changes],
        Coroutine[Any, Any, float],
        Coroutine[Any, Any, ClientTask],
    ],
    Requester,
):
    """An open connection to a server. Its methods may be used by any number of tasks at once."""

    def __init__(self, session: RequestSender, restarter: Restarter | None = None) -> None:
        self._session = session
        self._restarter = restarter

    async def _live(self) -> RequestSender:
        """Return the session for a request; a process that has ended is started again."""
        if self._restarter is not None and self._session.side.state is not State.OPEN:
            self._session = await self._restarter.live()
        return self._session

    @property
    def peer(self) -> Peer:
        """The server, as far as it is known: revision, info, capabilities, instructions."""
        return self._session.side.peer

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        session = await self._live()
        return await session.request(arguments, None)

    async def _start_task(self, arguments: RequestArguments) -> ClientTask:
        session = await self._live()
        return await session.start_task(arguments)

    async def _resume_task(
        self, task_id: str, method: str, timeout: float | None, max_timeout: float | None
    ) -> ClientTask:
        session = await self._live()
        return await session.resume_task(task_id, method, timeout, max_timeout)

    async def _items(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[JSONValue, None]:
        session = await self._live()
        async with aclosing(session.items(method, params, timeout)) as items:
            async for item in items:
                yield item

    @asynccontextmanager
    async def _listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> AsyncGenerator[Changes, None]:
        session = await self._live()
        async with session.listen(notifications, meta, timeout) as changes:
            yield changes

    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        self._session.notify(method, params, meta)

    async def _ping(self, timeout: float | None) -> float:
        session = await self._live()
        return await session.ping(timeout)


@asynccontextmanager
async def open_client(
    opening: Opening[SessionT],
    keep_running: Callable[[Opening[SessionT], int], AbstractAsyncContextManager[Restarter]],
    restarts: int,
) -> AsyncGenerator[Client, None]:
    """A client of a server process that is started again after its end, at most `restarts` times.

    Args:
        opening: Starts the process and opens the conversation.
        keep_running: Starts it again; each loop has its own.
        restarts: How often that is done.

    Raises:
        Exception: The exception of `opening`, if the first start fails.
    """
    if restarts == 0:
        async with opening() as session:
            yield Client(session)
        return
    async with keep_running(opening, restarts) as restarter:
        yield Client(restarter.session, restarter)
