"""Subscriptions of 2026-07-28: an open request to which the server sends changes."""

from typing import Annotated, Literal, Required, TypedDict

from ._json import JSONObject, RequestId, ResultType
from ._marks import As, RequiredIn, Since
from ._parts import NotificationMessage, RequestMessage, ResponseMessage
from .base import NotificationParams, RequestParams
from .capabilities import Implementation


@Since("2026-07-28")
class SubscriptionFilter(TypedDict, total=False):
    """The changes that a client wants to receive."""

    toolsListChanged: bool
    promptsListChanged: bool
    resourcesListChanged: bool
    resourceSubscriptions: list[str]
    """The URIs of resources."""


@Since("2026-07-28")
class SubscriptionsListenRequestParams(RequestParams, total=False):
    """The params of `subscriptions/listen`."""

    notifications: Required[SubscriptionFilter]


@Since("2026-07-28")
class SubscriptionsListenRequest(RequestMessage, total=False):
    """A request for notifications of changes while the request is open."""

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
"""The keys that the protocol defines for the `_meta` of a `SubscriptionsListenResult`."""
Since("2026-07-28")(SubscriptionsListenResultMetaObject)


@Since("2026-07-28")
class SubscriptionsListenResult(TypedDict, total=False):
    """The result with which a server ends a subscription."""

    _meta: Annotated[JSONObject, As(SubscriptionsListenResultMetaObject), RequiredIn("2026-07-28")]
    resultType: Annotated[ResultType, RequiredIn("2026-07-28")]


@Since("2026-07-28")
class SubscriptionsListenResultResponse(ResponseMessage):
    """The response that ends a subscription."""

    result: SubscriptionsListenResult


@Since("2026-07-28")
class SubscriptionsAcknowledgedNotificationParams(NotificationParams, total=False):
    """The part of the filter that the server serves."""

    notifications: Required[SubscriptionFilter]


@Since("2026-07-28")
class SubscriptionsAcknowledgedNotification(NotificationMessage, total=False):
    """A notification that the server has accepted a subscription: its first message."""

    method: Required[Literal["notifications/subscriptions/acknowledged"]]
    params: Required[SubscriptionsAcknowledgedNotificationParams]
