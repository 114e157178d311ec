"""The messages that open a conversation, and ping."""

from typing import Literal, Required

from ._marks import Since, Until
from ._parts import NotificationMessage, RequestMessage, ResponseMessage
from .base import CacheableResult, NotificationParams, RequestParams, Result
from .capabilities import ClientCapabilities, Implementation, ServerCapabilities


@Until("2025-11-25")
class InitializeRequestParams(RequestParams, total=False):
    """The params of `initialize`: revision, capabilities and info of the client."""

    protocolVersion: Required[str]
    """The newest revision that the client speaks."""
    capabilities: Required[ClientCapabilities]
    clientInfo: Required[Implementation]


@Until("2025-11-25")
class InitializeRequest(RequestMessage, total=False):
    """A request to open the conversation."""

    method: Required[Literal["initialize"]]
    params: Required[InitializeRequestParams]


@Until("2025-11-25")
class InitializeResult(Result, total=False):
    """The result of `initialize`: revision, capabilities and info of the server."""

    protocolVersion: Required[str]
    """The revision of the conversation."""
    capabilities: Required[ServerCapabilities]
    serverInfo: Required[Implementation]
    instructions: str
    """Instructions for the model on how to use the server."""


@Until("2025-11-25")
class InitializedNotification(NotificationMessage, total=False):
    """A notification that the client is ready."""

    method: Required[Literal["notifications/initialized"]]
    params: NotificationParams


@Until("2025-11-25")
class PingRequest(RequestMessage, total=False):
    """A request to show that the other side is alive."""

    method: Required[Literal["ping"]]
    params: RequestParams


@Since("2026-07-28")
class DiscoverRequest(RequestMessage, total=False):
    """A request for the revisions, capabilities and info of the server."""

    method: Required[Literal["server/discover"]]
    params: Required[RequestParams]


@Since("2026-07-28")
class DiscoverResult(CacheableResult, total=False):
    """The revisions and capabilities of the server; its info is in `_meta`."""

    supportedVersions: Required[list[str]]
    capabilities: Required[ServerCapabilities]
    instructions: str
    """Instructions for the model on how to use the server."""


@Since("2026-07-28")
class DiscoverResultResponse(ResponseMessage):
    """The response to `server/discover`."""

    result: DiscoverResult
