"""Parts that several definitions are built from, and that have no name in the schema."""

from typing import Annotated, Required, TypedDict

from ._json import CacheScope, JSONRPCVersion, RequestId
from ._marks import RequiredIn, Since


class RequestMessage(TypedDict, total=False):
    """What JSON-RPC adds to a request. The older schemas leave it to `JSONRPCRequest`."""

    jsonrpc: Annotated[JSONRPCVersion, Since("2025-11-25"), RequiredIn("2025-11-25", "2026-07-28")]
    id: Annotated[RequestId, Since("2025-11-25"), RequiredIn("2025-11-25", "2026-07-28")]


class NotificationMessage(TypedDict, total=False):
    """What JSON-RPC adds to a notification, likewise."""

    jsonrpc: Annotated[JSONRPCVersion, Since("2025-11-25"), RequiredIn("2025-11-25", "2026-07-28")]


class ResponseMessage(TypedDict):
    """What JSON-RPC adds to a result."""

    jsonrpc: JSONRPCVersion
    id: RequestId


class ErrorMessage(TypedDict, total=False):
    """What JSON-RPC adds to an error that only newer revisions have."""

    jsonrpc: Required[JSONRPCVersion]
    id: RequestId
    """Absent where the request could not be read."""


class CachingHints(TypedDict, total=False):
    """How long a result may be kept, and for whom."""

    ttlMs: Annotated[int, Since("2026-07-28"), RequiredIn("2026-07-28")]
    """Milliseconds; 0: do not keep it."""
    cacheScope: Annotated[CacheScope, Since("2026-07-28"), RequiredIn("2026-07-28")]
