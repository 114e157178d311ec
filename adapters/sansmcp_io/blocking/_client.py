"""The client that applications use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sansmcp import JSONObject, JSONValue, Peer

from .._common.call import is_async
from .._common.requests import RequestArguments
from ._call import Call
from ._client_tasks import ClientTask
from ._dispatch import Result
from ._mailbox import Changes
from ._requests import RequestSender

if TYPE_CHECKING:
    from .._common.typed_requests import BlockingRequests as Requester
    from .._common.typed_requests import TaskRequests as ClientBase
else:
    from .._common.client import ClientBase
    from .._common.requests import Requester

RequestHandler: TypeAlias = Callable[[Call], Result]
"""Serves a server's requests (`sampling/createMessage`, `roots/list`, ...), like `Handler`.

It also answers questions that a server of 2026-07-28 asks about a request of the client. What it
raises then is raised by `Client.request` as `McpError`.
"""


def check_plain(*handlers: object) -> None:
    """Refuse async functions: there is no loop to run them."""
    for handler in handlers:
        if is_async(handler):
            raise TypeError(f"{handler!r} is async: there is no loop here to run it")


class SessionSource(Protocol):
    """Gives a client its session, which a new one may replace."""

    @property
    def session(self) -> RequestSender:
        """The current session, whether it has ended or not."""
        ...

    def live(self) -> RequestSender:
        """Return a session for a request; a process that has ended is started again."""
        ...


class Client(
    ClientBase[Iterator[JSONValue], AbstractContextManager[Changes], float, ClientTask], Requester
):
    """An open connection to a server. Its methods may be used by any number of threads at once.

    What the server sends is read while a method waits, and `on_request`, `on_notification` and
    `on_progress` are called then, in one of the threads that wait: progress in the thread that
    has asked, notifications one after the other. They may use the client. Between calls nothing
    is read, unless `poll` does so.
    """

    def __init__(self, source: SessionSource) -> None:
        self._source = source

    @property
    def peer(self) -> Peer:
        """The server, as far as it is known: revision, info, capabilities, instructions."""
        session = self._source.session
        with session:
            return session.side.peer

    def _send_request(self, arguments: RequestArguments) -> JSONObject:
        return self._source.live().request(arguments, None)

    def _start_task(self, arguments: RequestArguments) -> ClientTask:
        return self._source.live().start_task(arguments)

    def _resume_task(
        self, task_id: str, method: str, timeout: float | None, max_timeout: float | None
    ) -> ClientTask:
        return self._source.live().resume_task(task_id, method, timeout, max_timeout)

    def _items(
        self, method: str, params: JSONObject | None, timeout: float | None
    ) -> Iterator[JSONValue]:
        return self._source.live().items(method, params, timeout)

    def _listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> AbstractContextManager[Changes]:
        return self._source.live().listen(notifications, meta, timeout)

    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        self._source.session.notify(method, params, meta)

    def _ping(self, timeout: float | None) -> float:
        return self._source.live().ping(timeout)

    def poll(self, timeout: float = 0.0) -> bool:
        """Handle the messages that the server has sent between calls, and wait for the handlers.

        Args:
            timeout: Seconds to wait for something to handle, if nothing has come yet.

        Returns:
            Whether there was anything: a request, a notification, a change.

        Raises:
            ConnectionLost: The connection has ended.
        """
        return self._source.session.poll(timeout)
