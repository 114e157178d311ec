"""Members that several definitions share, and that have no name in the schema."""

from typing import Annotated, Required, TypedDict

from ._json import CacheScope, JSONRPCVersion, RequestId
from ._marks import RequiredIn, Since


class RequestMessage(TypedDict, total=False):
    """The members of JSON-RPC in a request. Older schemas have them in `JSONRPCRequest` only."""

    jsonrpc: Annotated[JSONRPCVersion, Since("2025-11-25"), RequiredIn("2025-11-25", "2026-07-28")]
    id: Annotated[RequestId, Since("2025-11-25"), RequiredIn("2025-11-25", "2026-07-28")]


class NotificationMessage(TypedDict, total=False):
    """The members of JSON-RPC in a notification; older schemas have `JSONRPCNotification`."""

    jsonrpc: Annotated[JSONRPCVersion, Since("2025-11-25"), RequiredIn("2025-11-25", "2026-07-28")]


class ResponseMessage(TypedDict):
    """The members of JSON-RPC in a response with a result."""

    jsonrpc: JSONRPCVersion
    id: RequestId


class ErrorMessage(TypedDict, total=False):
    """The members of JSON-RPC in an error response that only newer revisions define."""

    jsonrpc: Required[JSONRPCVersion]
    id: RequestId
    """The id; absent if the request could not be read."""


class CachingHints(TypedDict, total=False):
    """The caching hints of a result: for how long and for whom it may be kept."""

    ttlMs: Annotated[int, Since("2026-07-28"), RequiredIn("2026-07-28")]
    """Milliseconds for which the result may be kept; 0: do not keep it."""
    cacheScope: Annotated[CacheScope, Since("2026-07-28"), RequiredIn("2026-07-28")]
