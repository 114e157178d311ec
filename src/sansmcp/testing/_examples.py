"""One valid example of the params and of the result of each method, to build messages from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sansmcp import JSONObject, Side
from sansmcp._spec.methods import Method
from sansmcp._spec.registry import DIALECTS

_TASK: Final[JSONObject] = {
    "createdAt": "2025-11-25T10:00:00Z",
    "lastUpdatedAt": "2025-11-25T10:00:00Z",
    "status": "working",
    "taskId": "task",
    "ttl": 1000,
}

PARAMS: Final[Mapping[str, JSONObject]] = {
    "completion/complete": {
        "argument": {"name": "city", "value": "Pa"},
        "ref": {"type": "ref/prompt", "name": "trip"},
    },
    "elicitation/create": {
        "message": "Which city?",
        "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    "initialize": {
        "capabilities": {},
        "clientInfo": {"name": "client", "version": "1"},
        "protocolVersion": "2025-11-25",
    },
    "logging/setLevel": {"level": "warning"},
    "notifications/cancelled": {"requestId": 1},
    "notifications/elicitation/complete": {"elicitationId": "e"},
    "notifications/message": {"data": "started", "level": "error"},
    "notifications/progress": {"progress": 1, "progressToken": 1},
    "notifications/resources/updated": {"uri": "file:///a"},
    "notifications/subscriptions/acknowledged": {"notifications": {"toolsListChanged": True}},
    "notifications/tasks/status": _TASK,
    "prompts/get": {"name": "trip"},
    "resources/read": {"uri": "file:///a"},
    "resources/subscribe": {"uri": "file:///a"},
    "resources/unsubscribe": {"uri": "file:///a"},
    "sampling/createMessage": {
        "maxTokens": 10,
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}],
    },
    "subscriptions/listen": {
        "notifications": {"resourceSubscriptions": ["file:///a"], "toolsListChanged": True}
    },
    "tasks/cancel": {"taskId": "task"},
    "tasks/get": {"taskId": "task"},
    "tasks/result": {"taskId": "task"},
    "tools/call": {"name": "echo", "arguments": {"text": "hi"}},
}
"""Params by method; what is missing here needs none."""

RESULTS: Final[Mapping[str, JSONObject]] = {
    "completion/complete": {"completion": {"values": ["Paris"]}},
    "elicitation/create": {"action": "accept", "content": {"city": "Paris"}},
    "initialize": {
        "capabilities": {},
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "server", "version": "1"},
    },
    "prompts/get": {"messages": []},
    "prompts/list": {"prompts": [{"name": "trip"}]},
    "resources/list": {"resources": [{"name": "a", "uri": "file:///a"}]},
    "resources/read": {"contents": [{"uri": "file:///a", "text": "content"}]},
    "resources/templates/list": {
        "resourceTemplates": [{"name": "any", "uriTemplate": "file:///{name}"}]
    },
    "roots/list": {"roots": [{"uri": "file:///"}]},
    "sampling/createMessage": {
        "content": {"type": "text", "text": "Hello yourself"},
        "model": "some-model",
        "role": "assistant",
    },
    "server/discover": {"capabilities": {}, "supportedVersions": ["2026-07-28"]},
    "tasks/cancel": {**_TASK, "status": "cancelled"},
    "tasks/get": _TASK,
    "tasks/list": {"tasks": [_TASK]},
    "tools/call": {"content": [{"type": "text", "text": "hi"}]},
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
}
"""Results by method; the others are answered with an empty one."""

QUESTIONS: Final[Mapping[str, JSONObject]] = {
    "city": {"method": "elicitation/create", "params": PARAMS["elicitation/create"]},
    "key": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Your key?", "url": "https://example.com/key"},
    },
    "roots": {"method": "roots/list"},
    "words": {"method": "sampling/createMessage", "params": PARAMS["sampling/createMessage"]},
}
"""What a server may ask before it answers, one of each kind, by keys of its choice."""


def requests_of(revision: str, sender: Side) -> dict[str, Method]:
    """The requests that a side may send in a revision."""
    return dict(DIALECTS[revision].requests[sender])


def notifications_of(revision: str, sender: Side) -> dict[str, Method]:
    """The notifications that a side may send in a revision."""
    return dict(DIALECTS[revision].notifications[sender])
