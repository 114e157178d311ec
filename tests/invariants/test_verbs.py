"""Invariant 7, sending is atomic: a verb does all of its work, or raises and does none."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import (
    Config,
    LocalProtocolError,
    PromptsListChanged,
    ResourceUpdated,
    Side,
)
from sansmcp.testing import Pair, canonical
from tests.support.machines.budget import examples
from tests.support.wire import SAMPLING

ECHO: dict[str, Any] = {"name": "echo"}


class Anything:
    """An object of no JSON type."""


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    (
        *(None, True, False, 0, 1, -1, 2, 10**30, 1.5, 2.0, float("nan"), float("inf")),
        *("", "x", "\ud800", "ping", "tools/call", "roots/list", "notifications/x", "info"),
        *(b"x", {}, [], {"a": {1}}, {"a": Anything()}, {1: 2}, [1], Anything(), _circle()),
        *({"name": "x"}, {"cursor": 5}, {"cursor": "\ud800"}, {"_meta": 5}, {"_meta": {}}),
        *({"progressToken": 1}, {"progressToken": True}, {"_meta": {"progressToken": "t"}}),
        *({"content": []}, {"content": 5}, {"tools": [], "nextCursor": 5}, {"task": 5}, SAMPLING),
        *({"_meta": {"progressToken": []}}, {"name": "x", "task": {}}, {"a": "x" * 3000}),
    )
)
METHODS = st.sampled_from(
    (
        *("roots/list", "sampling/createMessage", "initialize", "x/y", "tasks/list"),
        *("elicitation/create", "notifications/progress", "notifications/cancelled"),
        *("notifications/resources/updated", "notifications/roots/list_changed", "\ud800"),
    )
)
CHANGES = st.sampled_from((PromptsListChanged(), ResourceUpdated("file:///a")))
SECONDS = st.sampled_from((0.5, 5, 9))


def mostly(*good: Any, bad: st.SearchStrategy[Any] = JUNK) -> st.SearchStrategy[Any]:
    """One of the good values, or seldom a bad one, so that the last check is reached too."""
    return st.sampled_from(good) | st.sampled_from(good) | bad


PARAMS = mostly({}, {"name": "x"}, {"name": "x", "task": {}}, {"cursor": "c"})
META = mostly({}, {"a": 1}, {"progressToken": "t"}, {"progressToken": "u"})
TIMEOUTS = {"timeout": mostly(0.5, 5), "max_timeout": mostly(0.5, 5)}
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "send_request": {
        "method": mostly("tools/list", "tools/call", "ping", bad=METHODS),
        "params": PARAMS,
        "meta": META,
        "progress": st.booleans(),
        "id": mostly("a", "b", 50, 60),
        **TIMEOUTS,
    },
    "send_paginated": {
        "method": mostly("tools/list", bad=METHODS),
        "params": PARAMS,
        "meta": META,
        "auto": st.booleans(),
        **TIMEOUTS,
    },
    "send_notification": {
        "method": mostly("notifications/x", bad=METHODS),
        "params": PARAMS,
        "meta": META,
    },
    "send_result": {"result": mostly({"content": []}, {"roots": []}), "meta": META},
    "send_error": {"code": mostly(1), "message": mostly("no"), "data": JUNK},
    "send_progress": {
        "progress": mostly(1, 2, 3),
        "total": mostly(3),
        "message": mostly("text"),
        "meta": META,
    },
    "send_log": {"level": mostly("info"), "data": JUNK, "logger": mostly("l"), "meta": META},
    "publish": {"change": CHANGES},
    "cancel": {"reason": mostly("why")},
    "ping": {"timeout": mostly(0.5, 5)},
    "start": {"timeout": mostly(0.5, 5)},
}
REQUIRED = {"method", "result", "code", "message", "progress", "level", "data", "change"}


@st.composite
def calls(draw: st.DrawFn, verb: str | None = None) -> tuple[str, dict[str, Any]]:
    if verb is None:
        verb = draw(st.sampled_from(sorted(ARGUMENTS)))
    arguments = {
        name: draw(strategy)
        for name, strategy in ARGUMENTS[verb].items()
        if name in REQUIRED or draw(st.booleans())
    }
    if draw(st.booleans()):
        arguments["now"] = draw(SECONDS)
    return verb, arguments


def _busy_pair(phase: str, now: float | None) -> Pair:
    """A pair in which each side has sent and received a request."""
    pair = Pair(
        client_config=Config(max_requests=3, max_unsent_bytes=2500),
        server_config=Config(max_requests=3, max_unsent_bytes=2500),
        connected=phase != "new",
        now=now,
    )
    if phase != "new":
        pair.client.send_request("tools/call", ECHO, meta={"progressToken": "t"})
        pair.server.send_request("roots/list")
        pair.deliver()
        if phase == "sending failed":
            pair.client.send_failed()
            pair.server.send_failed()
        elif phase == "ended":
            pair.client.receive_eof()
            pair.server.receive_eof()
    pair.clear_events()
    return pair


PHASES = ["new", "open", "open, no clock", "sending failed", "ended"]
PAIRS = {phase: _busy_pair(phase, None if "no clock" in phase else 1) for phase in PHASES}


def raises(verb: Callable[..., object], *handles: object, **arguments: object) -> bool:
    """Whether the call raised; a wrong Python type may raise any error, a broken rule one of
    ours."""
    try:
        verb(*handles, **arguments)
    except (LocalProtocolError, TypeError, ValueError, AttributeError):
        return True
    return False


@pytest.mark.unjudged("the application hands over whatever there is")
@given(
    phase=st.sampled_from(PHASES),
    side=st.sampled_from(Side),
    steps=st.sampled_from(sorted(ARGUMENTS)).flatmap(
        lambda verb: st.lists(calls(verb) | calls(verb) | calls(), min_size=1, max_size=4)
    ),
)
@examples(100, 2000)
def test_7_a_verb_that_raises_has_changed_nothing(
    phase: str, side: Side, steps: list[tuple[str, dict[str, Any]]]
) -> None:
    """Clock, tables and output must be the same, so that the caller can correct its mistake."""
    conn = copy.deepcopy(PAIRS[phase]).side(side)
    for verb, arguments in steps:
        handles: tuple[object, ...] = ()
        if verb in ("send_result", "send_error", "send_progress"):
            handles = conn.open_requests[:1] or (PAIRS["open"].side(side).open_requests[0],)
        elif verb == "cancel":
            handles = conn.pending_requests[:1] or (PAIRS["open"].side(side).pending_requests[0],)
        before = canonical(conn)
        if hasattr(conn, verb) and raises(getattr(conn, verb), *handles, **arguments):
            assert canonical(conn) == before


def full(pair: Pair) -> None:
    """A pair in which each side has reached the limit of requests in flight."""
    for side in Side:
        for _ in range(2):
            pair.side(side).ping()


# What comes before | whose verb | with what: each gets past all checks but one.
ALMOST: list[tuple[Callable[[Pair], object] | None, Side, str, dict[str, Any]]] = [
    *(
        (None, Side.CLIENT, "send_request", {"method": "tools/list", "timeout": 5, **bad})
        for bad in (
            {"max_timeout": 0},
            {"id": 1},
            {"id": True},
            {"meta": {"progressToken": "t"}},
            {"meta": {"progressToken": True}},
            {"meta": {"a": b"x"}},
            {"params": {"a": b"x"}},
            {"params": {"_meta": 5}},
        )
    ),
    (full, Side.CLIENT, "send_request", {"method": "tools/list", "progress": True, "timeout": 5}),
    (full, Side.CLIENT, "send_paginated", {"method": "tools/list", "timeout": 5}),
    (full, Side.SERVER, "ping", {"timeout": 5}),
    (None, Side.SERVER, "ping", {"timeout": 0}),
    (None, Side.CLIENT, "send_paginated", {"method": "tools/list", "params": {"cursor": 5}}),
    (None, Side.CLIENT, "send_paginated", {"method": "tools/list", "meta": {"a": b"x"}}),
    (None, Side.SERVER, "send_notification", {"method": "notifications/x", "meta": {"a": b"x"}}),
    (None, Side.SERVER, "send_result", {"result": {"content": 5}}),
    (None, Side.SERVER, "send_result", {"result": {"content": []}, "meta": {"a": b"x"}}),
    (None, Side.SERVER, "send_error", {"code": 1, "message": "no", "data": b"x"}),
    (None, Side.SERVER, "send_progress", {"progress": 2, "meta": {"a": b"x"}}),
    (
        lambda pair: pair.server.send_progress(pair.server.open_requests[0], 3),
        Side.SERVER,
        "send_progress",
        {"progress": 2},
    ),
    (None, Side.SERVER, "send_log", {"level": "info", "data": b"x"}),
    (None, Side.CLIENT, "cancel", {"reason": 5}),
    (None, Side.CLIENT, "start", {"timeout": 5}),
]


@pytest.mark.parametrize(("before", "side", "verb", "arguments"), ALMOST)
def test_7_the_last_check_comes_before_the_first_change(
    before: Callable[[Pair], object] | None, side: Side, verb: str, arguments: dict[str, Any]
) -> None:
    """A verb that checks after its first change would leave half of its work."""
    pair = copy.deepcopy(PAIRS["open"])
    if before is not None:
        before(pair)
    conn = pair.side(side)
    handles: tuple[object, ...] = ()
    if verb in ("send_result", "send_error", "send_progress"):
        handles = conn.open_requests[:1]
    elif verb == "cancel":
        handles = conn.pending_requests[:1]
    state = canonical(conn)

    with pytest.raises(LocalProtocolError):
        getattr(conn, verb)(*handles, **arguments, now=99)
    assert canonical(conn) == state
