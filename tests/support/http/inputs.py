"""HTTP requests for property tests: heads and bodies, from usual ones to hostile ones."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.support.http.server_endpoint import JSON, SSE, body_of, modern_tool_call, tool_call
from tests.support.modern import CAPABILITIES, LEVEL, MODERN, VERSION, envelope, listen, modern
from tests.support.wire import INITIALIZED, call, initialize, note, result

METHODS = st.sampled_from(
    ["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "PUT", "", "\r\n", "\udc80"]
)
_NAMES = st.sampled_from(
    [
        *("accept", "content-type", "host", "origin", "mcp-session-id", "mcp-protocol-version"),
        *("mcp-method", "mcp-name", "mcp-param-x", "last-event-id", "content-encoding"),
        *("content-length", "access-control-request-method", "access-control-request-headers", "X"),
    ]
)
NAMES = _NAMES | _NAMES.map(str.encode)
"""Names and values of headers, which servers pass on as text or as bytes."""
VALUES = st.one_of(
    st.sampled_from(
        [
            *(JSON, SSE, "*/*", "s1", MODERN, "2025-11-25", "2025-03-26", "tools/call", "t"),
            *("localhost", "https://app.example", "null", "141538f0-1-1", "a\r\nx: y", "a\0", ""),
            "s1\udc80",
        ]
    ),
    st.text(st.characters(), max_size=8),  # with surrogates: some servers decode invalid UTF-8 so
    st.binary(max_size=8),
)


class Opaque:
    """A principal that cannot be converted to text, like some objects of applications."""

    __slots__ = ()

    def __str__(self) -> str:
        raise TypeError("no text")

    def __repr__(self) -> str:
        return "<opaque>"


class Named:
    """A principal whose text is the same as that of others."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.number == self.number

    def __hash__(self) -> int:
        return self.number

    def __str__(self) -> str:
        return "ann"


PRINCIPALS: st.SearchStrategy[Any] = st.sampled_from(
    [None, "ann", Named(1), Named(2), Opaque(), ("ann", 1), 0, "", {"sub": "ann"}]
)
"""Principals of an application: objects of any type, equal texts, unhashable objects."""
MESSAGES: list[Any] = [
    initialize(0, "2025-11-25"),
    initialize(0, "2025-03-26"),
    INITIALIZED,
    tool_call(1),
    call(2, "tools/call", {"name": "t", "_meta": {"progressToken": 1}}),
    modern_tool_call(1),
    modern(3, "tools/call", {"name": "t"}, envelope(progressToken=1, level="debug")),
    modern(4, "server/discover"),
    listen(5, {"toolsListChanged": True}),
    note("notifications/cancelled", {"requestId": 1}),
    result(1, {}),
    [tool_call(7), call(8, "ping")],
    call(9, "resources/subscribe", {"uri": "x:y"}),
    call(10, "logging/setLevel", {"level": "debug"}),
]
HOSTILE = ["\r\n\r\nHTTP/1.1 200 OK", "\nid: 9\ndata: x", "\0", "\ud800", "é…", "x" * 400, ""]
"""Texts that would be dangerous in a header, or in an event stream."""
IDS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(list[Any]([1, 2, "1", 1.0, 1.5, 10**30, -1, True, None, [], {}, *HOSTILE])),
    st.integers(),
    st.text(max_size=4),
)
KEYS = st.sampled_from(
    [
        *("jsonrpc", "id", "method", "params", "result", "error", "code", "name", "arguments", "x"),
        *("_meta", "progressToken", "protocolVersion", "capabilities", "requestId", "uri", "level"),
        *(VERSION, CAPABILITIES, LEVEL, "notifications", *HOSTILE),
        *("cursor", "nextCursor", "task", "inputResponses", "requestState", "reason", "total"),
    ]
)
ATOMS: st.SearchStrategy[Any] = st.one_of(
    IDS,
    st.sampled_from(["2.0", "2025-03-26", MODERN, "t", "debug", "tools/call", "initialize"]),
    st.sampled_from(["notifications/cancelled", "ping", "subscriptions/listen", "un/known"]),
)
VALUES_OF_JSON = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def changed_messages(draw: st.DrawFn) -> Any:
    """A message in which some members have other values, or a batch of such messages."""
    message: Any = json.loads(json.dumps(draw(st.sampled_from(MESSAGES))))
    if isinstance(message, list):
        return [*message, *draw(st.lists(VALUES_OF_JSON, max_size=2))]
    if "id" in message:
        message["id"] = draw(IDS)
    for _ in range(draw(st.integers(0, 2))):
        within: Any = message
        while draw(st.booleans()):
            inner: list[Any] = [one for one in within.values() if isinstance(one, dict) and one]
            if not inner:
                break
            within = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(sorted(within)) | KEYS)
        if draw(st.booleans()):
            within.pop(key, None)
        else:
            within[key] = draw(VALUES_OF_JSON)
    return message


@st.composite
def broken_bytes(draw: st.DrawFn) -> bytes:
    """The bytes of a message, of which some are replaced, repeated or removed."""
    body = body_of(draw(st.sampled_from(MESSAGES)))
    at, end = sorted((draw(st.integers(0, len(body))), draw(st.integers(0, len(body)))))
    return body[:at] + draw(st.sampled_from([b"", body[at:end] * 2]) | st.binary()) + body[end:]


BODIES = st.one_of(
    st.sampled_from(MESSAGES).map(body_of),
    changed_messages().map(body_of),
    VALUES_OF_JSON.map(body_of),
    broken_bytes(),
    st.binary(max_size=30),
)
TARGETS = st.sampled_from(
    [
        *("/mcp", "/sse", "/messages?session_id=s1", "/messages", "", "?", "\0", "/\udc80"),
        "/messages?session_id=\udc80",
    ]
)
