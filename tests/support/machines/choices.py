"""The values that `ConnectionMachine` chooses from by a number, which is cheap to draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from sansmcp import (
    Change,
    Config,
    JSONObject,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from sansmcp.testing._examples import PARAMS, QUESTIONS, RESULTS
from tests.support.modern import CAPABILITIES, MODERN, VERSION

LISTEN: Final = "subscriptions/listen"
TASK_RESULT: Final = {"task": RESULTS["tasks/get"]}
"""The result of a request that became a task."""

SMALL_LIMITS: Final = Config(
    max_message_bytes=3_000,
    max_json_depth=20,
    max_integer_digits=100,
    max_requests=4,
    max_batch=3,
    max_used_ids=4,
    max_late_answers=2,
    max_subscriptions=2,
    max_held_changes=1,
    max_pages=3,
    max_items=5,
    max_empty_pages=2,
    max_input_rounds=2,
    soft_unsent_bytes=600,
    max_unsent_bytes=6_000,
    state_keys=(b"0123456789abcdef",),
    state_seconds=10.0,
    progress_interval=1.0,
    ping_interval=20.0,
    ping_timeout=10.0,
    max_failed_pings=2,
)
"""Limits that are reached in a few steps."""

CONFIGS: Final = (SMALL_LIMITS, Config(), attrs.evolve(SMALL_LIMITS, manual={LISTEN}))
"""Settings: small limits, the defaults, and small limits with `subscriptions/listen` manual."""

STARTS: Final[tuple[JSONObject, ...]] = (
    {},
    {"timeout": 5.0},
    {"probe_timeout": 3.0},
    {"probe_timeout": 3.0, "timeout": 8.0},
    {"hint": "2025-11-25"},
    {"hint": MODERN, "timeout": 5.0},
)

REQUESTS: Final[tuple[JSONObject, ...]] = (
    {},
    {"progress": True, "log_level": "debug"},
    {"progress": True, "timeout": 3.0},
    {"progress": True, "timeout": 8.0, "max_timeout": 10.0},
    {"timeout": 3.0},
    {"id": "name"},
)

_URIS: Final[JSONObject] = {"resourceSubscriptions": ["file:///a"]}
_EVERYTHING: Final[JSONObject] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
}
OWN_MACHINERY: Final[tuple[JSONObject, ...]] = (
    {},
    {"method": "tools/list"},
    {"method": "resources/list", "timeout": 3.0},
    {"method": "prompts/list", "params": {"cursor": ""}},
    {"method": "tools/list", "timeout": 3.0, "auto": False},
    {"method": "tools/call"},
    {"notifications": _EVERYTHING},
    {"notifications": _EVERYTHING, "timeout": 3.0},
    {"notifications": {**_URIS, "toolsListChanged": True}},
    {"notifications": {"toolsListChanged": 1}},
)
"""The options of a ping, of listings and of subscriptions.

The last listing is for a method without pages, and the last subscription has no filter.
"""

ROUNDS: Final[Mapping[str, JSONObject]] = {
    "one question": {"questions": {"roots": QUESTIONS["roots"]}, "state": "so far"},
    "two questions": {
        "questions": {name: QUESTIONS[name] for name in ("city", "words")},
        "timeout": 3.0,
    },
    "a state": {"state": "so far"},
    "an odd question": {"questions": {"odd": {"method": "tools/list"}}},
}
"""The options of `require_input`. The last ones are refused."""

ANSWERS: Final = ("p1", "p2", "", "result", "error", "task", "malformed", *ROUNDS)
"""The answers to a request: the cursor of a page, the options of a round, or another kind."""

HONOURED: Final[Mapping[str, JSONObject]] = {
    "p1": _URIS,
    "p2": _EVERYTHING,
    "an odd question": {"toolsListChanged": 1},
}
"""The part of a subscription that is honoured, by answer. For other answers, all of it."""

PROVISIONS: Final = ("right", "right", "progress", "timeout", "incomplete", "misshapen", "unasked")
"""The ways in which questions are answered."""

CHANGES: Final[tuple[Change, ...]] = (
    ToolsListChanged(),
    PromptsListChanged(),
    ResourcesListChanged(),
    ResourceUpdated("file:///a"),
    ResourceUpdated("file:///b"),
    ResourceUpdated("file:///a/part", subscribed="file:///a"),
)


def _call(id: str, method: str, meta: JSONObject | None = None) -> JSONObject:
    params = dict(PARAMS.get(method, {}))
    if meta is not None:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _foreign() -> tuple[JSONObject, ...]:
    envelope: JSONObject = {
        VERSION: MODERN,
        CAPABILITIES: {"elicitation": {}, "roots": {}, "sampling": {}},
    }
    modern = (*["tools/call"] * 4, "resources/read", LISTEN, "server/discover")
    legacy = ("tools/call", "resources/subscribe", "initialize", "ping")
    told: list[JSONObject] = [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    for id in ("x", "y"):
        told += [_call(id, method, envelope) for method in modern]
        told += [_call(id, method) for method in legacy]
        cancelled: JSONObject = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        told += [{**cancelled, "params": {"requestId": id}}] * 2
    return tuple(told)


FOREIGN: Final = _foreign()
"""Messages of another client on the stream to the server: of both eras, with two ids only."""
