"""The Model Context Protocol without I/O.

A connection object takes bytes, messages and the time, and gives back events and bytes. It owns
what is hard to get right and touches no socket, file, clock, thread or event loop.
"""

from ._changes import (
    Change,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from ._client import ClientConnection
from ._codec import Codec, CodecError, MsgspecCodec, StandardCodec
from ._config import Config
from ._cursors import decode_cursor, encode_cursor, paginate
from ._errors import ErrorCode, InvalidCursor, LocalProtocolError
from ._events import (
    CancelCause,
    CloseCause,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    FailureCause,
    FailureReason,
    LimitReached,
    ListingEnd,
    ListingEnded,
    MessageIgnored,
    NotificationReceived,
    PageReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from ._handles import IncomingRequest, Listing, OutgoingRequest, Peer, Ping, Start
from ._lifecycle import Phase, RequestState, State
from ._registry import ALL_REVISIONS, LEGACY_REVISIONS, LOG_LEVELS
from ._server import ServerConnection
from ._values import MISSING, JSONObject, JSONValue, Missing, ProgressToken, RequestId, Side

__all__ = [
    "ALL_REVISIONS",
    "LEGACY_REVISIONS",
    "LOG_LEVELS",
    "MISSING",
    "CancelCause",
    "Change",
    "ClientConnection",
    "CloseCause",
    "Codec",
    "CodecError",
    "Config",
    "ConnectionClosed",
    "ConnectionFailed",
    "ErrorCode",
    "ErrorReceived",
    "ErrorWithoutIdReceived",
    "Event",
    "FailureCause",
    "FailureReason",
    "IncomingRequest",
    "InvalidCursor",
    "JSONObject",
    "JSONValue",
    "LimitReached",
    "Listing",
    "ListingEnd",
    "ListingEnded",
    "LocalProtocolError",
    "MessageIgnored",
    "Missing",
    "MsgspecCodec",
    "NotificationReceived",
    "OutgoingRequest",
    "PageReceived",
    "Peer",
    "Phase",
    "Ping",
    "PingEnded",
    "ProgressReceived",
    "ProgressToken",
    "PromptsListChanged",
    "ProtocolViolation",
    "Ready",
    "RequestAnswered",
    "RequestCancelled",
    "RequestFailed",
    "RequestId",
    "RequestReceived",
    "RequestState",
    "ResourceUpdated",
    "ResourcesListChanged",
    "ResponseReceived",
    "ServerConnection",
    "Side",
    "StandardCodec",
    "Start",
    "State",
    "ToolsListChanged",
    "decode_cursor",
    "encode_cursor",
    "paginate",
]
