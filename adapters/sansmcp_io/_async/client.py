"""What an application has of a connection to a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sansmcp import JSONObject, JSONValue, Peer, State

from .._common.requests import RequestArguments
from .call import Call
from .handlers import Result
from .mailbox import Changes
from .requests import RequestSender
from .restart import Restarter

if TYPE_CHECKING:
    from .._common.typed_requests import AsyncRequests as Requester
else:
    from .._common.requests import Requester

SessionT = TypeVar("SessionT", bound=RequestSender)

RequestHandler: TypeAlias = Callable[[Call], Result]
"""Serves a server's requests (`sampling/createMessage`, `roots/list`, ...), like `Handler`.

It answers what a server of 2026-07-28 asks about a request of the client, too. What it raises then
comes out of `Client.request` as `McpError`, and what it runs is cancelled when the connection ends.
"""


class Client(Requester):
    """An open connection to a server. Its methods may be used by any number of tasks at once."""

    def __init__(self, session: RequestSender, restarter: Restarter | None = None) -> None:
        self._session = session
        self._restarter = restarter

    async def _live(self) -> RequestSender:
        """The session that requests go to."""
        if self._restarter is not None and self._session.side.state is not State.OPEN:
            self._session = await self._restarter.live()
        return self._session

    @property
    def peer(self) -> Peer:
        """What is known of the server: revision, info, capabilities, instructions."""
        return self._session.side.peer

    async def _send_request(self, arguments: RequestArguments) -> JSONObject:
        session = await self._live()
        return await session.request(arguments, None)

    async def items(
        self, method: str, params: JSONObject | None = None, *, timeout: float | None = None
    ) -> AsyncGenerator[JSONValue, None]:
        """Iterate over a listing (`tools/list` and the like), page after page.

        The next page is asked for when the items of the one before were taken.

        Args:
            method: A method that is paginated.
            params: The params of each page but for the cursor.
            timeout: Seconds allowed for each page, as for `request`, and as many for the time that
                it waits for others to be sent.

        Raises:
            PeerError, RequestTimeout, ConnectionLost, sansmcp.LocalProtocolError: As `request`.
            InvalidAnswer: A page is not valid, or the listing does not end.
        """
        session = await self._live()
        async with aclosing(session.items(method, params, timeout)) as items:
            async for item in items:
                yield item

    @asynccontextmanager
    async def listen(
        self,
        notifications: JSONObject,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[Changes, None]:
        """Subscribe to changes for as long as the block lasts.

        `async with client.listen({"toolsListChanged": True}) as changes:`, and in it
        `async for method, params in changes:`. The iteration ends when the server ends the
        subscription. Revision 2026-07-28 has it; before, `resources/subscribe` is a request, and
        changes come to `on_notification`.

        Args:
            notifications: The `SubscriptionFilter`.
            meta: Merged into `params._meta`.
            timeout: Seconds that the server has to acknowledge it, with the time that it waits for
                others to be sent, as for `request`.

        Raises:
            PeerError, RequestTimeout, ConnectionLost, sansmcp.LocalProtocolError: As `request`;
                the iteration, too.
        """
        session = await self._live()
        async with session.listen(notifications, meta, timeout) as changes:
            yield changes

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send a notification. Never blocks.

        Raises:
            ConnectionLost: The connection has ended.
            sansmcp.LocalProtocolError: It would break the protocol. It was not sent.
        """
        self._session.notify(method, params, meta)

    async def ping(self, *, timeout: float | None = None) -> float:
        """Ping the server, and return the seconds that its answer took.

        Raises:
            RequestTimeout, ConnectionLost: As `request`.
        """
        session = await self._live()
        return await session.ping(timeout)


@asynccontextmanager
async def open_client(
    opening: Callable[[], AbstractAsyncContextManager[SessionT]],
    keep_running: Callable[
        [Callable[[], AbstractAsyncContextManager[SessionT]], int],
        AbstractAsyncContextManager[Restarter],
    ],
    restarts: int,
) -> AsyncGenerator[Client, None]:
    """A client of a server process that is started again after its end, at most `restarts` times.

    Args:
        opening: Starts the process, opens the conversation, and ends both.
        keep_running: Does that again; that of the loop.
        restarts: How often.
    """
    if restarts == 0:
        async with opening() as session:
            yield Client(session)
        return
    async with keep_running(opening, restarts) as restarter:
        yield Client(restarter.session, restarter)
