"""A passive judge of a conversation between two others, on byte streams.

Begin with `_observer` (the public class), then `_requests` and `_responses`. This room knows
`_wire`, `_spec`, `_rules` and the limits of `_connection`.
"""

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
    TextSeen,
    ViolationSeen,
)
from ._http import Watcher
from ._observer import Observer

__all__ = [
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
    "TextSeen",
    "ViolationSeen",
    "Watcher",
]
