"""Streamable HTTP without I/O, for both sides, and no HTTP library in sight.

Source: MCP 2026-07-28, basic/transports/streamable-http; MCP 2025-11-25, basic/transports.
"""

from ._client.auth_challenges import Challenge
from ._client.endpoint import ClientEndpoint
from ._client.events import (
    AuthorizationRequired,
    ClientHTTPEvent,
    MessageRefused,
    SessionLost,
    StreamUnavailable,
)
from ._client.exchange import ClientExchange, ExchangePurpose
from ._client.urls import Origin
from ._server.endpoint import ServerEndpoint
from ._server.event_log import EventLog, MemoryEventLog
from ._server.events import HTTPEvent, MessageUndelivered, SessionEnd, SessionEnded, SessionStarted
from ._server.exchange import SendBody, SendEnd, SendHead, ServerExchange
from ._server.modern_headers import ToolSchema
from ._server.sessions import OldPaths, Session, Sessions
from ._sse import OverlongEvent, ServerSentEvent, SSEDecoder, encode_comment, encode_event

__all__ = [
    "AuthorizationRequired",
    "Challenge",
    "ClientEndpoint",
    "ClientExchange",
    "ClientHTTPEvent",
    "EventLog",
    "ExchangePurpose",
    "HTTPEvent",
    "MemoryEventLog",
    "MessageRefused",
    "MessageUndelivered",
    "OldPaths",
    "Origin",
    "OverlongEvent",
    "SSEDecoder",
    "SendBody",
    "SendEnd",
    "SendHead",
    "ServerEndpoint",
    "ServerExchange",
    "ServerSentEvent",
    "Session",
    "SessionEnd",
    "SessionEnded",
    "SessionLost",
    "SessionStarted",
    "Sessions",
    "StreamUnavailable",
    "ToolSchema",
    "encode_comment",
    "encode_event",
]
