"""A passive judge of a conversation between two others, on byte streams and over HTTP.

Begin with `_observer` (the public class and the list of its parts), then `_requests` and
`_responses`. `_http` gives each message of an HTTP endpoint to an observer of its conversation.
This room knows `_wire`, `_spec`, `_rules` and the limits of `_connection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._spec.rule_levels import Level
from ._events import (
    AnswerMatched,
    BlindCause,
    BlindSpot,
    CancellationMatched,
    DiscoverySeen,
    HandshakeSeen,
    MessageKind,
    MessageSeen,
    Observation,
    RequestUnanswered,
    StreamEnded,
    TaskSeen,
    TextSeen,
    ViolationSeen,
)
from ._observer import Observer

if TYPE_CHECKING:
    from ._http import HTTPObserver


def __getattr__(name: str) -> Any:
    if name != "HTTPObserver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._http import HTTPObserver  # not before it is wanted: `sansmcp` imports this package

    return HTTPObserver


__all__ = [
    "AnswerMatched",
    "BlindCause",
    "BlindSpot",
    "CancellationMatched",
    "DiscoverySeen",
    "HTTPObserver",
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
]
