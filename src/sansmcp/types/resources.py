"""Resources: data of a server that clients can read."""

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
    """A template for the URIs of resources."""

    uriTemplate: Required[str]
    """A URI template (RFC 6570)."""
    description: str
    mimeType: str
    annotations: Annotations
    _meta: Annotated[MetaObject, Since("2025-06-18")]


# ---------------------------------------------------------------------------------- listing


class ListResourcesRequest(RequestMessage, total=False):
    """A request for one page of the resources."""

    method: Required[Literal["resources/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListResourcesResult(PaginatedResult, CachingHints, total=False):
    """One page of the resources."""

    resources: Required[list[Resource]]


@Since("2026-07-28")
class ListResourcesResultResponse(ResponseMessage):
    """The response with one page of the resources."""

    result: ListResourcesResult


class ListResourceTemplatesRequest(RequestMessage, total=False):
    """A request for one page of the templates."""

    method: Required[Literal["resources/templates/list"]]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


class ListResourceTemplatesResult(PaginatedResult, CachingHints, total=False):
    """One page of the templates."""

    resourceTemplates: Required[list[ResourceTemplate]]


@Since("2026-07-28")
class ListResourceTemplatesResultResponse(ResponseMessage):
    """The response with one page of the templates."""

    result: ListResourceTemplatesResult


class ResourceListChangedNotification(NotificationMessage, total=False):
    """A notification that the list of resources, or of templates, has changed."""

    method: Required[Literal["notifications/resources/list_changed"]]
    params: NotificationParams


# ---------------------------------------------------------------------------------- reading


@Since("2025-11-25")
class ResourceRequestParams(RequestParams, total=False):
    """The params of any request about one resource."""

    uri: Required[str]


class ReadResourceRequestParams(ResourceRequestParams, RetryMembers, total=False):
    """The params of `resources/read`."""


class ReadResourceRequest(RequestMessage, total=False):
    """A request to read a resource."""

    method: Required[Literal["resources/read"]]
    params: Required[ReadResourceRequestParams]


class ReadResourceResult(Result, CachingHints, total=False):
    """The contents of a resource, and perhaps of its parts."""

    contents: Required[list[TextResourceContents | BlobResourceContents]]


@Since("2026-07-28")
class ReadResourceResultResponse(ResponseMessage):
    """The response to `resources/read`: the contents, or questions."""

    result: ReadResourceResult | InputRequiredResult


# ------------------------------------------------------------------------------ subscribing


@Until("2025-11-25")
class SubscribeRequestParams(ResourceRequestParams, total=False):
    """The params of `resources/subscribe`."""


@Until("2025-11-25")
class SubscribeRequest(RequestMessage, total=False):
    """A request for notifications when a resource changes."""

    method: Required[Literal["resources/subscribe"]]
    params: Required[SubscribeRequestParams]


@Until("2025-11-25")
class UnsubscribeRequestParams(ResourceRequestParams, total=False):
    """The params of `resources/unsubscribe`."""


@Until("2025-11-25")
class UnsubscribeRequest(RequestMessage, total=False):
    """A request to end a subscription to a resource."""

    method: Required[Literal["resources/unsubscribe"]]
    params: Required[UnsubscribeRequestParams]


class ResourceUpdatedNotificationParams(NotificationParams, total=False):
    """The params of a notification about a changed resource."""

    uri: Required[str]
    """The URI of the resource, which may be a part of the subscribed one."""


class ResourceUpdatedNotification(NotificationMessage, total=False):
    """A notification that a resource has changed."""

    method: Required[Literal["notifications/resources/updated"]]
    params: Required[ResourceUpdatedNotificationParams]
