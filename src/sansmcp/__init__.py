"""The Model Context Protocol without I/O.

A connection object takes bytes, messages and the time, and gives back events and bytes. It owns
what is hard to get right and touches no socket, file, clock, thread or event loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._connection.client import ClientConnection
from ._connection.config import Config
from ._connection.cursors import decode_cursor, encode_cursor, paginate
from ._connection.events import (
    CacheHit,
    CancelCause,
    CloseCause,
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    FailureCause,
    FailureReason,
    InputRequired,
    LimitReached,
    ListenerAdded,
    ListenerRemoved,
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
    SubscriptionAcknowledged,
    SubscriptionEnd,
    SubscriptionEnded,
    TaskCancelled,
    TaskEnd,
    TaskInputReceived,
    TaskInputRequired,
    TaskQuestion,
    TasksWanted,
    TaskToStore,
    TaskUpdated,
    TaskWanted,
)
from ._connection.handles import (
    IncomingRequest,
    Listener,
    Listing,
    OutgoingRequest,
    Ping,
    Start,
    Subscription,
    Task,
)
from ._connection.server import ServerConnection
from ._connection.subscriptions.changes import (
    Change,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from ._connection.tasks.records import TaskRecord
from ._connection.tasks.settings import Tasks, TaskSupport
from ._rules.conversation import Peer
from ._rules.state_tables import Phase, RequestState, State, TaskStatus
from ._spec.errors import ErrorCode, InvalidCursor, LocalProtocolError
from ._spec.registry import ALL_REVISIONS, LEGACY_REVISIONS, LOG_LEVELS, MODERN_REVISIONS
from ._wire.codec import Codec, CodecError, MsgspecCodec, StandardCodec
from ._wire.values import MISSING, JSONObject, JSONValue, Missing, ProgressToken, RequestId, Side

if TYPE_CHECKING:
    from ._connection.caching.cache import Cache, CachePartition
    from ._spec.extensions import Extension, ExtensionMethod
    from .observer import (
        AnswerMatched,
        BlindCause,
        BlindSpot,
        CancellationMatched,
        DiscoverySeen,
        HandshakeSeen,
        Level,
        MessageKind,
        MessageSeen,
        Observation,
        Observer,
        RequestUnanswered,
        StreamEnded,
        TaskSeen,
        TextSeen,
        ViolationSeen,
    )

# Imported when one of them is first used: few programs have a cache or extensions, or watch others
# talk.
_LATE = {
    "_connection.caching.cache": ("Cache", "CachePartition"),
    "_spec.extensions": ("Extension", "ExtensionMethod"),
    "observer": (
        "AnswerMatched",
        "BlindCause",
        "BlindSpot",
        "CancellationMatched",
        "DiscoverySeen",
        "HandshakeSeen",
        "Level",
        "MessageKind",
        "MessageSeen",
        "Observation",
        "Observer",
        "RequestUnanswered",
        "StreamEnded",
        "TaskSeen",
        "TextSeen",
        "ViolationSeen",
    ),
}
_MODULES = {name: module for module, names in _LATE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "ALL_REVISIONS",
    "LEGACY_REVISIONS",
    "LOG_LEVELS",
    "MISSING",
    "MODERN_REVISIONS",
    "AnswerMatched",
    "BlindCause",
    "BlindSpot",
    "Cache",
    "CacheHit",
    "CachePartition",
    "CancelCause",
    "CancellationMatched",
    "Change",
    "ClientConnection",
    "CloseCause",
    "Codec",
    "CodecError",
    "Config",
    "ConnectionClosed",
    "ConnectionFailed",
    "DiscoverySeen",
    "ErrorCode",
    "ErrorReceived",
    "ErrorWithoutIdReceived",
    "Event",
    "Extension",
    "ExtensionMethod",
    "FailureCause",
    "FailureReason",
    "HandshakeSeen",
    "IncomingRequest",
    "InputRequired",
    "InvalidCursor",
    "JSONObject",
    "JSONValue",
    "Level",
    "LimitReached",
    "Listener",
    "ListenerAdded",
    "ListenerRemoved",
    "Listing",
    "ListingEnd",
    "ListingEnded",
    "LocalProtocolError",
    "MessageIgnored",
    "MessageKind",
    "MessageSeen",
    "Missing",
    "MsgspecCodec",
    "NotificationReceived",
    "Observation",
    "Observer",
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
    "RequestUnanswered",
    "ResourceUpdated",
    "ResourcesListChanged",
    "ResponseReceived",
    "ServerConnection",
    "Side",
    "StandardCodec",
    "Start",
    "State",
    "StreamEnded",
    "Subscription",
    "SubscriptionAcknowledged",
    "SubscriptionEnd",
    "SubscriptionEnded",
    "Task",
    "TaskCancelled",
    "TaskEnd",
    "TaskInputReceived",
    "TaskInputRequired",
    "TaskQuestion",
    "TaskRecord",
    "TaskSeen",
    "TaskStatus",
    "TaskSupport",
    "TaskToStore",
    "TaskUpdated",
    "TaskWanted",
    "Tasks",
    "TasksWanted",
    "TextSeen",
    "ToolsListChanged",
    "ViolationSeen",
    "decode_cursor",
    "encode_cursor",
    "paginate",
]
