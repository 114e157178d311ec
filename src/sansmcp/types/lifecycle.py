"""Opening a conversation, and keeping it alive."""

from typing import Literal, Required

from ._marks import Since, Until
from ._parts import NotificationMessage, RequestMessage, ResponseMessage
from .base import CacheableResult, NotificationParams, RequestParams, Result
from .capabilities import ClientCapabilities, Implementation, ServerCapabilities


@Until("2025-11-25")
class InitializeRequestParams(RequestParams, total=False):
    """What the client is, speaks, and can do."""

    protocolVersion: Required[str]
    """The newest revision that it speaks."""
    capabilities: Required[ClientCapabilities]
    clientInfo: Required[Implementation]


@Until("2025-11-25")
class InitializeRequest(RequestMessage, total=False):
    """Opens the conversation."""

    method: Required[Literal["initialize"]]
    params: Required[InitializeRequestParams]


@Until("2025-11-25")
class InitializeResult(Result, total=False):
    """What the server is, speaks, and offers."""

    protocolVersion: Required[str]
    """The revision that both will speak."""
    capabilities: Required[ServerCapabilities]
    serverInfo: Required[Implementation]
    instructions: str
    """How to use the server, for the model."""


@Until("2025-11-25")
class InitializedNotification(NotificationMessage, total=False):
    """Tells that the client is ready."""

    method: Required[Literal["notifications/initialized"]]
    params: NotificationParams


@Until("2025-11-25")
class PingRequest(RequestMessage, total=False):
    """Asks whether the other side is there."""

    method: Required[Literal["ping"]]
    params: RequestParams


@Since("2026-07-28")
class DiscoverRequest(RequestMessage, total=False):
    """Asks what the server is, speaks, and offers."""

    method: Required[Literal["server/discover"]]
    params: Required[RequestParams]


@Since("2026-07-28")
class DiscoverResult(CacheableResult, total=False):
    """What the server speaks and offers; what it is stands in `_meta`."""

    supportedVersions: Required[list[str]]
    capabilities: Required[ServerCapabilities]
    instructions: str
    """How to use the server, for the model."""


@Since("2026-07-28")
class DiscoverResultResponse(ResponseMessage):
    """The answer to `server/discover`."""

    result: DiscoverResult
