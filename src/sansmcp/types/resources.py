"""Resources: what a server lets others read."""

from typing import Annotated, Literal, Required

from ._json import MetaObject
from ._marks import RequiredIn, Since, Until
from ._parts import CachingHints, NotificationMessage, RequestMessage, ResponseMessage
from .base import (
    NotificationParams,
    PaginatedRequestParams,
    PaginatedResult,
    RequestParams,
    Result,
)
from .capabilities import BaseMetadata, Icons
from .content import Annotations, BlobResourceContents, Resource, TextResourceContents
from .input_required import InputRequiredResult, RetryMembers


class ResourceTemplate(BaseMetadata, Icons, total=False):
    """Resources whose URIs have gaps to fill in."""

    uriTemplate: Required[str]
    """In the format of RFC 6570."""
    description: str
    mimeType: str
    annotations: Annotations
    _meta: Annotated[MetaObject, Since("2025-06-18")]


# ---------------------------------------------------------------------------------- listing


class ListResourcesRequest(RequestMessage, total=False):
    """Asks for one page of the resources."""

    method: Required[Literal["resources/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListResourcesResult(PaginatedResult, CachingHints, total=False):
    """One page of the resources."""

    resources: Required[list[Resource]]


@Since("2026-07-28")
class ListResourcesResultResponse(ResponseMessage):
    """The answer with one page of the resources."""

    result: ListResourcesResult


class ListResourceTemplatesRequest(RequestMessage, total=False):
    """Asks for one page of the templates."""

    method: Required[Literal["resources/templates/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListResourceTemplatesResult(PaginatedResult, CachingHints, total=False):
    """One page of the templates."""

    resourceTemplates: Required[list[ResourceTemplate]]


@Since("2026-07-28")
class ListResourceTemplatesResultResponse(ResponseMessage):
    """The answer with one page of the templates."""

    result: ListResourceTemplatesResult


class ResourceListChangedNotification(NotificationMessage, total=False):
    """Tells that the list of resources, or of templates, has changed."""

    method: Required[Literal["notifications/resources/list_changed"]]
    params: NotificationParams


# ---------------------------------------------------------------------------------- reading


@Since("2025-11-25")
class ResourceRequestParams(RequestParams, total=False):
    """The params of any request about one resource."""

    uri: Required[str]


class ReadResourceRequestParams(ResourceRequestParams, RetryMembers, total=False):
    """What to read."""


class ReadResourceRequest(RequestMessage, total=False):
    """Reads a resource."""

    method: Required[Literal["resources/read"]]
    params: Required[ReadResourceRequestParams]


class ReadResourceResult(Result, CachingHints, total=False):
    """What a resource holds, and perhaps those below it."""

    contents: Required[list[TextResourceContents | BlobResourceContents]]


@Since("2026-07-28")
class ReadResourceResultResponse(ResponseMessage):
    """The answer to a read: what the resource holds, or questions."""

    result: ReadResourceResult | InputRequiredResult


# ------------------------------------------------------------------------------ subscribing


@Until("2025-11-25")
class SubscribeRequestParams(ResourceRequestParams, total=False):
    """What to be told of."""


@Until("2025-11-25")
class SubscribeRequest(RequestMessage, total=False):
    """Asks to be told when a resource changes."""

    method: Required[Literal["resources/subscribe"]]
    params: Required[SubscribeRequestParams]


@Until("2025-11-25")
class UnsubscribeRequestParams(ResourceRequestParams, total=False):
    """What to be told of no longer."""


@Until("2025-11-25")
class UnsubscribeRequest(RequestMessage, total=False):
    """Takes a subscription back."""

    method: Required[Literal["resources/unsubscribe"]]
    params: Required[UnsubscribeRequestParams]


class ResourceUpdatedNotificationParams(NotificationParams, total=False):
    """What has changed."""

    uri: Required[str]
    """It may be below the one that was subscribed to."""


class ResourceUpdatedNotification(NotificationMessage, total=False):
    """Tells that a resource has changed."""

    method: Required[Literal["notifications/resources/updated"]]
    params: Required[ResourceUpdatedNotificationParams]
