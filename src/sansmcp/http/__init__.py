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
from ._server.events import (
    CredentialsReceived,
    EventToStore,
    HTTPEvent,
    LookupEnded,
    MessageUndelivered,
    Question,
    RelayEnded,
    ReplayWanted,
    SessionEnd,
    SessionEnded,
    SessionRequested,
    SessionStarted,
    SessionWanted,
    ToolSchemaWanted,
)
from ._server.exchange import LookupEnd, SendBody, SendEnd, SendHead, ServerExchange
from ._server.modern_headers import ToolSchema
from ._server.relay import CarriedRequest
from ._server.sessions import OldPaths, Session, Sessions
from ._sse import OverlongEvent, ServerSentEvent, SSEDecoder, encode_comment, encode_event

__all__ = [
    "AuthorizationRequired",
    "CarriedRequest",
    "Challenge",
    "ClientEndpoint",
    "ClientExchange",
    "ClientHTTPEvent",
    "CredentialsReceived",
    "EventLog",
    "EventToStore",
    "ExchangePurpose",
    "HTTPEvent",
    "LookupEnd",
    "LookupEnded",
    "MemoryEventLog",
    "MessageRefused",
    "MessageUndelivered",
    "OldPaths",
    "Origin",
    "OverlongEvent",
    "Question",
    "RelayEnded",
    "ReplayWanted",
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
    "SessionRequested",
    "SessionStarted",
    "SessionWanted",
    "Sessions",
    "StreamUnavailable",
    "ToolSchema",
    "ToolSchemaWanted",
    "encode_comment",
    "encode_event",
]
