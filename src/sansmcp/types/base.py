"""The base definitions of requests, notifications and results."""

from typing import Annotated, Required, TypeAlias, TypedDict

from ._json import (
    CacheScope,
    Cursor,
    JSONObject,
    LoggingLevel,
    ProgressToken,
    RequestId,
    ResultType,
)
from ._marks import As, RequiredIn, Since
from ._parts import RequestMessage
from .capabilities import ClientCapabilities, Implementation

# ---------------------------------------------------------------------------------- `_meta`

RequestMetaObject = TypedDict(
    "RequestMetaObject",
    {
        "progressToken": ProgressToken,
        "io.modelcontextprotocol/protocolVersion": Annotated[
            str, Since("2026-07-28"), RequiredIn("2026-07-28")
        ],
        "io.modelcontextprotocol/clientCapabilities": Annotated[
            ClientCapabilities, Since("2026-07-28"), RequiredIn("2026-07-28")
        ],
        "io.modelcontextprotocol/clientInfo": Annotated[Implementation, Since("2026-07-28")],
        "io.modelcontextprotocol/logLevel": Annotated[LoggingLevel, Since("2026-07-28")],
    },
    total=False,
)
"""The keys that the protocol defines for the `_meta` of a request."""

NotificationMetaObject = TypedDict(
    "NotificationMetaObject",
    {"io.modelcontextprotocol/subscriptionId": Annotated[RequestId, Since("2026-07-28")]},
    total=False,
)
"""The keys that the protocol defines for the `_meta` of a notification."""

ResultMetaObject = TypedDict(
    "ResultMetaObject",
    {"io.modelcontextprotocol/serverInfo": Annotated[Implementation, Since("2026-07-28")]},
    total=False,
)
"""The keys that the protocol defines for the `_meta` of a result."""


# --------------------------------------------------------------------------------- requests


class RequestParams(TypedDict, total=False):
    """The params of any request."""

    _meta: Annotated[JSONObject, As(RequestMetaObject), RequiredIn("2026-07-28")]


class Request(TypedDict, total=False):
    """Any request, without the members of JSON-RPC."""

    method: Required[str]
    params: Annotated[JSONObject, As(RequestParams, until="2025-06-18")]


class PaginatedRequestParams(RequestParams, total=False):
    """The params of a request for one page of a listing."""

    cursor: Cursor
    """The position of the page; absent for the first page."""


class PaginatedRequest(RequestMessage, total=False):
    """Any request for one page of a listing."""

    method: Required[str]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


# ---------------------------------------------------------------------------- notifications


class NotificationParams(TypedDict, total=False):
    """The params of any notification."""

    _meta: Annotated[JSONObject, As(NotificationMetaObject)]


class Notification(TypedDict, total=False):
    """Any notification, without the members of JSON-RPC."""

    method: Required[str]
    params: Annotated[JSONObject, As(NotificationParams, until="2025-06-18")]


# ---------------------------------------------------------------------------------- results


class Result(TypedDict, total=False):
    """Any result."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]
    resultType: Annotated[ResultType, RequiredIn("2026-07-28")]


EmptyResult: TypeAlias = Result
"""A result without members of its own: the request has succeeded."""


class PaginatedResult(Result, total=False):
    """Any result with one page of a listing."""

    nextCursor: Cursor
    """The position of the next page; absent on the last page."""


@Since("2026-07-28")
class CacheableResult(Result, total=False):
    """Any result that may be kept in a cache."""

    ttlMs: Required[int]
    """Milliseconds for which the result may be kept; 0: do not keep it."""
    cacheScope: Required[CacheScope]
