"""The methods of a client, with arguments and descriptions that are the same in all adapters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from sansmcp import JSONObject

ItemsT = TypeVar("ItemsT")
SubscriptionT = TypeVar("SubscriptionT")
SecondsT = TypeVar("SecondsT")


class ClientBase(ABC, Generic[ItemsT, SubscriptionT, SecondsT]):
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
    def _notify(self, method: str, params: JSONObject | None, meta: JSONObject | None) -> None:
        """Do the work of `notify`."""

    @abstractmethod
    def _ping(self, timeout: float | None) -> SecondsT:
        """Do the work of `ping`."""
