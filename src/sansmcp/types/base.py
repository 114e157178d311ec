"""What requests, notifications and results have in common."""

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
"""What the protocol itself puts into the `_meta` of a request."""

NotificationMetaObject = TypedDict(
    "NotificationMetaObject",
    {"io.modelcontextprotocol/subscriptionId": Annotated[RequestId, Since("2026-07-28")]},
    total=False,
)
"""What the protocol itself puts into the `_meta` of a notification."""

ResultMetaObject = TypedDict(
    "ResultMetaObject",
    {"io.modelcontextprotocol/serverInfo": Annotated[Implementation, Since("2026-07-28")]},
    total=False,
)
"""What the protocol itself puts into the `_meta` of a result."""


# --------------------------------------------------------------------------------- requests


class RequestParams(TypedDict, total=False):
    """The params of any request."""

    _meta: Annotated[JSONObject, As(RequestMetaObject), RequiredIn("2026-07-28")]


class Request(TypedDict, total=False):
    """Any request, without what JSON-RPC adds."""

    method: Required[str]
    params: Annotated[JSONObject, As(RequestParams, until="2025-06-18")]


class PaginatedRequestParams(RequestParams, total=False):
    """The params of a request for one page of a listing."""

    cursor: Cursor
    """Where the page begins; without it, the first page."""


class PaginatedRequest(RequestMessage, total=False):
    """Any request for one page of a listing."""

    method: Required[str]
    params: Annotated[PaginatedRequestParams, RequiredIn("2026-07-28")]


# ---------------------------------------------------------------------------- notifications


class NotificationParams(TypedDict, total=False):
    """The params of any notification."""

    _meta: Annotated[JSONObject, As(NotificationMetaObject)]


class Notification(TypedDict, total=False):
    """Any notification, without what JSON-RPC adds."""

    method: Required[str]
    params: Annotated[JSONObject, As(NotificationParams, until="2025-06-18")]


# ---------------------------------------------------------------------------------- results


class Result(TypedDict, total=False):
    """Any result."""

    _meta: Annotated[JSONObject, As(ResultMetaObject)]
    resultType: Annotated[ResultType, RequiredIn("2026-07-28")]


EmptyResult: TypeAlias = Result
"""A result that says no more than that all went well."""


class PaginatedResult(Result, total=False):
    """Any page of a listing."""

    nextCursor: Cursor
    """Where the next page begins; without it, this was the last one."""


@Since("2026-07-28")
class CacheableResult(Result, total=False):
    """Any result that may be kept."""

    ttlMs: Required[int]
    """Milliseconds; 0: do not keep it."""
    cacheScope: Required[CacheScope]
