"""The methods of a client, with arguments and descriptions that are the same in all adapters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from sansmcp import JSONObject

from .call import ProgressHandler
from .requests import RequestArguments

ItemsT = TypeVar("ItemsT")
SubscriptionT = TypeVar("SubscriptionT")
SecondsT = TypeVar("SecondsT")
TaskT = TypeVar("TaskT")


class ClientBase(ABC, Generic[ItemsT, SubscriptionT, SecondsT, TaskT]):
    """The methods of a client. Type variables are the forms that their results have on a loop."""

    def items(
        self, method: str, params: JSONObject | None = None, *, timeout: float | None = None
    ) -> ItemsT:
        """Iterate over a listing (`tools/list` and the like), page after page.

        The next page is requested when all items of the page before were taken.

        Args:
            method: A method that is paginated.
            params: The params of each page, without the cursor.
            timeout: Seconds allowed for each page, as for `request`, and as many for the time that
                the request waits for others to be sent.

        Raises:
            PeerError, RequestTimeout, ConnectionLost, sansmcp.LocalProtocolError: As `request`.
            InvalidAnswer: A page is not valid, or the listing does not end.
        """
        return self._items(method, params, timeout)

    def listen(
        self,
        notifications: JSONObject,
        *,
        meta: JSONObject | None = None,
        timeout: float | None = None,
    ) -> SubscriptionT:
        """Subscribe to changes for as long as the block lasts.

        `with client.listen({"toolsListChanged": True}) as changes:`, and in it
        `for method, params in changes:`; on a loop, `async with` and `async for`. The iteration
        ends when the server ends the subscription. Subscriptions exist from revision 2026-07-28 on.
        Before, `resources/subscribe` is a request, and changes come to `on_notification`.

        Args:
            notifications: The `SubscriptionFilter`.
            meta: Merged into `params._meta`.
            timeout: Seconds that the server has to acknowledge the subscription, with the time that
                the request waits for others to be sent, as for `request`.

        Raises:
            PeerError, RequestTimeout, ConnectionLost, sansmcp.LocalProtocolError: As `request`;
                the iteration raises them, too.
        """
        return self._listen(notifications, meta, timeout)

    def start_task(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        task: bool | float = True,
        meta: JSONObject | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
        log_level: str | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> TaskT:
        """Send a request that the server may answer with a task, and wait for that answer.

        The task is followed until its end, or until the handle that this returns is dropped: then
        it goes on at the server, and is not followed. If the server answers without a task, the
        handle has the result.

        Args:
            method: The method name. In 2026-07-28 only `tools/call` becomes a task.
            params: The params object.
            task: As for `request`.
            meta: Merged into `params._meta`.
            timeout: As for `request`.
            max_timeout: Seconds until the end of the task; then it is cancelled.
            log_level: As for `request`.
            on_progress: As for `request`. If it raises, the task is cancelled, and the `result` of
                the handle raises that.

        Raises:
            PeerError, McpError, RequestTimeout, RequestRefused, ConnectionLost, InvalidAnswer,
            sansmcp.LocalProtocolError, TypeError: As `request`, until there is a task.
        """
        return self._start_task(
            RequestArguments(
                method, params, meta, timeout, max_timeout, log_level, on_progress, task
            )
        )

    def resume_task(
        self,
        task_id: str,
        method: str = "tools/call",
        *,
        timeout: float | None = None,
        max_timeout: float | None = None,
    ) -> TaskT:
        """Follow a task that another connection or process has started.

        Args:
            task_id: The `id` of its handle there.
            method: The method of its request.
            timeout: Seconds allowed without a response to a poll, as for `request`.
            max_timeout: Seconds until the end of the task, from now on; then it is cancelled.

        Returns:
            A handle as that of `start_task`, once the server has told of the task.

        Raises:
            TaskLost: The server does not have the task.
            RequestTimeout, RequestRefused, ConnectionLost: As `request`.
            sansmcp.LocalProtocolError: The server has no tasks, or this connection follows the task
                already.
        """
        return self._resume_task(task_id, method, timeout, max_timeout)

    def notify(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None
    ) -> None:
        """Send a notification.

        On a loop this never blocks. Without one, over HTTP, it waits until the server has received
        the notification, for at most a second.

        Raises:
            ConnectionLost: The connection has ended.
            sansmcp.LocalProtocolError: It would break the protocol. It was not sent.
        """
        self._notify(method, params, meta)

    def ping(self, *, timeout: float | None = None) -> SecondsT:
        """Ping the server, and return the seconds that its response took.

        Raises:
            RequestTimeout, ConnectionLost: As `request`.
        """
        return self._ping(timeout)

    # ------------------------------------------------------------------- what each kind does

    @abstractmethod
    def _items(self, method: str, params: JSONObject | None, timeout: float | None) -> ItemsT:
        """Do the work of `items`."""

    @abstractmethod
    def _listen(
        self, notifications: JSONObject, meta: JSONObject | None, timeout: float | None
    ) -> SubscriptionT:
        """Do the work of `listen`."""

    @abstractmethod
    def _start_task(self, arguments: RequestArguments) -> TaskT:
        """Do the work of `start_task`."""

    @abstractmethod
    def _resume_task(
        self, task_id: str, method: str, timeout: float | None, max_timeout: float | None
    ) -> TaskT:
        """Do the work of `resume_task`."""

    @abstractmethod
    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Do the work of `notify`."""

    @abstractmethod
    def _ping(self, timeout: float | None) -> SecondsT:
        """Do the work of `ping`."""
