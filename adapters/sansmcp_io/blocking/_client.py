"""What an application holds of a connection to a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sansmcp import JSONObject, JSONValue, Peer

from .._common.call import is_async
from .._common.requests import RequestArguments
from ._call import Call
from ._mailbox import Changes
from ._requests import RequestSender
from ._session import Result

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
else:
    from .._common.requests import Requester

RequestHandler: TypeAlias = Callable[[Call], Result]
"""Serves a server's requests (`sampling/createMessage`, `roots/list`, ...), like `Handler`.

It answers what a server of 2026-07-28 asks about a request of the client, too. What it raises then
comes out of `Client.request` as `McpError`.
"""


def check_plain(*handlers: object) -> None:
    """An async function would be called, and nobody would run what it returns."""
    for handler in handlers:
        if is_async(handler):
            raise TypeError(f"{handler!r} is async: there is no loop here to run it")


class Sessions(Protocol):
    """Where a client finds the session that it is to use: a new one may take its place."""

    @property
    def session(self) -> RequestSender:
        """The one that is there, whether it has ended or not."""
        ...

    def live(self) -> RequestSender:
        """One that requests can be sent on, if there is any."""
        ...


class Client(Requester):
    """An open connection to a server. Its methods may be used by any number of threads at once.

    What the server sends is read while a method waits, and `on_request`, `on_notification` and
    `on_progress` are called then, in one of the threads that wait: progress in the thread that
    has asked, notifications one after the other. They may use the client. Between calls nothing
    is read, unless `poll` does so.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @property
    def peer(self) -> Peer:
        """What is known of the server: revision, info, capabilities, instructions."""
        session = self._sessions.session
        with session:
            return session.side.peer

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._sessions.live().request(arguments, None)

    def items(
        self, method: str, params: JSONObject | None = None, *, timeout: float | None = None
    ) -> Iterator[JSONValue]:
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
        return self._sessions.live().items(method, params, timeout)

    def listen(
        self,
        notifications: JSONObject,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
    ) -> AbstractContextManager[Changes]:
        """Subscribe to changes for as long as the block lasts.

        `with client.listen({"toolsListChanged": True}) as changes:`, and in it
        `for method, params in changes:`. The iteration ends when the server ends the
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
        return self._sessions.live().listen(notifications, meta, timeout)

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send a notification. Over HTTP this waits until the server has it, a second at most.

        Raises:
            ConnectionLost: The connection has ended.
            sansmcp.LocalProtocolError: It would break the protocol. It was not sent.
        """
        self._sessions.session.notify(method, params, meta)

    def ping(self, *, timeout: float | None = None) -> float:
        """Ping the server, and return the seconds that its answer took.

        Raises:
            RequestTimeout, ConnectionLost: As `request`.
        """
        return self._sessions.live().ping(timeout)

    def poll(self, timeout: float = 0.0) -> bool:
        """Handle what the server has sent between calls; what the handlers do takes its time.

        Args:
            timeout: Seconds to wait for something to handle, if nothing has come yet.

        Returns:
            Whether there was anything: a request, a notification, a change.

        Raises:
            ConnectionLost: The connection has ended.
        """
        return self._sessions.session.poll(timeout)
