"""Subscriptions: since 2026-07-28, one long request brings the changes that it asks for."""

from typing import Annotated, Literal, Required, TypedDict

from ._json import JSONObject, RequestId, ResultType
from ._marks import As, RequiredIn, Since
from ._parts import NotificationMessage, RequestMessage, ResponseMessage
from .base import NotificationParams, RequestParams
from .capabilities import Implementation


@Since("2026-07-28")
class SubscriptionFilter(TypedDict, total=False):
    """Which changes to be told of."""

    toolsListChanged: bool
    promptsListChanged: bool
    resourcesListChanged: bool
    resourceSubscriptions: list[str]
    """URIs."""


@Since("2026-07-28")
class SubscriptionsListenRequestParams(RequestParams, total=False):
    """Which changes to be told of."""

    notifications: Required[SubscriptionFilter]


@Since("2026-07-28")
class SubscriptionsListenRequest(RequestMessage, total=False):
    """Asks to be told of changes for as long as the request is open."""

    method: Required[Literal["subscriptions/listen"]]
    params: Required[SubscriptionsListenRequestParams]


SubscriptionsListenResultMetaObject = TypedDict(
    "SubscriptionsListenResultMetaObject",
    {
        "io.modelcontextprotocol/serverInfo": Implementation,
        "io.modelcontextprotocol/subscriptionId": Annotated[RequestId, RequiredIn("2026-07-28")],
    },
    total=False,
)
"""What the protocol itself puts into the `_meta` of that result."""
Since("2026-07-28")(SubscriptionsListenResultMetaObject)


@Since("2026-07-28")
class SubscriptionsListenResult(TypedDict, total=False):
    """The server has ended the subscription."""

    _meta: Annotated[JSONObject, As(SubscriptionsListenResultMetaObject), RequiredIn("2026-07-28")]
    resultType: Annotated[ResultType, RequiredIn("2026-07-28")]


@Since("2026-07-28")
class SubscriptionsListenResultResponse(ResponseMessage):
    """The answer that ends a subscription."""

    result: SubscriptionsListenResult


@Since("2026-07-28")
class SubscriptionsAcknowledgedNotificationParams(NotificationParams, total=False):
    """Which of the changes asked for will be told of."""

    notifications: Required[SubscriptionFilter]


@Since("2026-07-28")
class SubscriptionsAcknowledgedNotification(NotificationMessage, total=False):
    """The first message of every subscription."""

    method: Required[Literal["notifications/subscriptions/acknowledged"]]
    params: Required[SubscriptionsAcknowledgedNotificationParams]
