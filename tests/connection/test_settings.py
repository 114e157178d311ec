"""Arguments of constructors and of verbs are checked at once.

One table has every argument of every public constructor, so that none is forgotten.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, Final

import pytest

from sansmcp import (
    Cache,
    ClientConnection,
    Config,
    Extension,
    ExtensionMethod,
    LocalProtocolError,
    Observer,
    ServerConnection,
    Side,
    Tasks,
)
from sansmcp.http import ClientEndpoint, MemoryEventLog, OldPaths, ServerEndpoint, Sessions
from sansmcp.testing import canonical
from tests.support.http.server_endpoint import connect, new_endpoint
from tests.support.modern import modern_client
from tests.support.wire import (
    CLIENT_INFO,
    SERVER_INFO,
    new_client,
    ready_client,
    ready_server,
)

REVISION: Final = "2025-11-25"
THING: Final = ...
WRONG: Final[dict[str, tuple[list[object], str]]] = {
    "count": ([True, 0, -1, 1.5, math.nan, math.inf, "5", None, [5]], "an integer"),
    "count or None": ([True, 0, -1, 1.5, math.nan, "5", [5]], "an integer"),
    "finite seconds": ([True, 0, -1, math.nan, math.inf, "5", None], "a finite number of seconds"),
    "mapping or None": ([True, 5, "x", ["x"]], "must be a mapping"),
    "count or 0": ([True, -1, 1.5, math.nan, "5", None], "an integer"),
    "count, 0 or None": ([True, -1, 1.5, math.nan, "5"], "an integer"),
    "seconds": ([True, 0, -1, math.nan, -math.inf, "5", None, [5]], "a number of seconds"),
    "seconds or None": ([True, 0, -1, math.nan, math.inf, "5", [5]], "a finite number of seconds"),
    "flag": ([None, 0, 1, "no", "", [], THING], "must be True or False"),
    "choice": ([None, True, 5, "other", ["auto"]], " or '"),
    "text": ([None, True, 5, b"x", ["x"]], "must be a string, not"),
    "text or None": ([True, 5, b"x", ["x"]], "must be a string or None"),
    "strings": (
        [None, True, 5, math.nan, "x", b"x", {}, [5], ["x", None], THING],
        "a list or a tuple of strings",
    ),
    "strings or None": ([True, 5, "x", b"x", [5], THING], "a list or a tuple of strings"),
    "objects": (
        [None, True, 5, "x", b"x", [5], ["x"], {"x": 5}, THING],
        "a list or a tuple of .* objects",
    ),
    "dict": ([None, True, 5, "x", [("name", "x")], THING], "must be a dict, not"),
    "dict or None": ([True, 5, "x", [("name", "x")], THING], "must be a dict or None"),
    "mapping": ([None, True, 5, "x", ["x"]], "must be a mapping"),
    "function": ([None, True, 5, "x", ["x"]], "must be a callable, not"),
    "function or None": ([True, 5, "x", ["x"]], "must be a callable or None"),
    "Config": ([True, 5, "x", {}, {"strict": True}], "must be a Config or None"),
    "Cache": ([True, 5, "x", {}], "must be a Cache, a partition of one or None"),
    "lock": ([True, 5, "x", {}], "lock must be a AbstractContextManager or None"),
    "wait": ([None, True, -1, math.nan, "5"], "must not be negative, and a number of seconds"),
    "Sessions": ([True, False, 5, "no", {}], "must be a Sessions or None"),
    "Tasks": ([True, 5, "x", {}], "must be a Tasks or None"),
    "OldPaths": ([True, 5, "/sse", ("/sse", "/post"), {}], "must be a OldPaths or None"),
    "Side": ([None, True, 0, "client"], "must be a Side"),
    "codec": ([None, True, "json", THING], "must have the methods encode and decode"),
    "keys": ([None, True, 5, b"x", "x", ["x"], ("x",)], "must be a list or a tuple of bytes"),
    "url": ([None, True, 5, b"http://x", ["http://x"]], "a URL is a string"),
    "headers": ([None, True, 5, "x", ["x"], [5], {"x": 5}, [("a", "b", "c")]], "headers are a map"),
    "key or None": ([True, 5, b"x"], "principal_key is a string"),
    "anything": ([], ""),
}
"""For each kind of argument what it does not take, and what is said then."""

SPEAKING: Final = {
    "info": "dict",
    "capabilities": "dict or None",
    "revisions": "strings",
    "config": "Config",
    "wake": "function or None",
}
ARGUMENTS: Final[dict[Callable[..., Any], tuple[dict[str, Any], dict[str, str]]]] = {
    Config: (
        {},
        {
            **{name: "count" for name in dir(Config()) if name.startswith(("max_", "soft_"))},
            **dict.fromkeys(("strict", "send_info", "coalesce_progress"), "flag"),
            **dict.fromkeys(("check", "unknown_methods", "cache_scope"), "choice"),
            **dict.fromkeys(
                ("progress_interval", "ping_interval", "ping_timeout"), "seconds or None"
            ),
            "codec": "codec",
            "manual": "strings",
            "extensions": "objects",
            "cache_ttl_ms": "count or 0",
            "state_keys": "keys",
            "state_seconds": "seconds",
        },
    ),
    Tasks: (
        {"entropy": bytes},
        {
            "entropy": "function",
            "store": "choice",
            **dict.fromkeys(("max_tasks", "max_tasks_per_owner", "max_task_bytes"), "count"),
            "max_lookups": "count",
            "max_task_bytes_per_owner": "count",
            **dict.fromkeys(("page_size", "max_questions", "max_failed_polls"), "count"),
            **dict.fromkeys(("ttl_ms", "max_ttl_ms", "poll_ms"), "count or None"),
            "tools": "mapping or None",
            **dict.fromkeys(("poll_seconds", "max_poll_seconds"), "finite seconds"),
        },
    ),
    Extension: ({}, {"methods": "objects", "result_types": "strings"}),
    ExtensionMethod: (
        {"name": "x/y", "kind": "request", "sender": Side.CLIENT},
        {
            "name": "text",
            "kind": "choice",
            "sender": "Side",
            "revisions": "strings or None",
            "gate": "strings",
            "sender_gate": "strings",
            "params": "mapping",
            "result": "mapping",
            "paginated": "text or None",
            "cancellable": "flag",
            "asks": "flag",
        },
    ),
    Cache: (
        {},
        {"max_entries": "count", "max_bytes": "count", "stale_if_error": "wait", "lock": "lock"},
    ),
    Cache().partition: ({}, {"server": "text or None", "context": "text or None"}),
    ClientConnection: (
        {"info": CLIENT_INFO},
        {**SPEAKING, "requires": "strings", "cache": "Cache", "tasks": "Tasks"},
    ),
    ServerConnection: (
        {"info": SERVER_INFO},
        {
            **SPEAKING,
            "instructions": "text or None",
            "principal": "anything",
            "principal_key": "key or None",
            "tasks": "Tasks",
        },
    ),
    Observer: ({}, {"config": "Config", "from_start": "flag"}),
    ClientEndpoint: (
        {"url": "http://127.0.0.1/mcp", "info": CLIENT_INFO},
        {
            **SPEAKING,
            "url": "url",
            "requires": "strings",
            "headers": "headers",
            "cache": "Cache",
            "tasks": "Tasks",
            "authorize": "flag",
            "get_stream": "flag",
        },
    ),
    ServerEndpoint: (
        {"info": SERVER_INFO},
        {
            **SPEAKING,
            "tasks": "Tasks",
            "instructions": "text or None",
            "hosts": "strings",
            "origins": "strings or None",
            "sessions": "Sessions",
            "streams": "flag",
            "answers": "choice",
            "keep_alive": "seconds or None",
            "tool_schema": "function or None",
            "credentials": "choice",
            "old_paths": "OldPaths",
        },
    ),
    Sessions: (
        {"new_id": str},
        {
            "new_id": "function",
            "max_sessions": "count",
            "idle": "seconds",
            "max_streams": "count",
            "event_log": "function or None",
            "retry_ms": "count, 0 or None",
            "allow_delete": "flag",
            "opening": "choice",
            "unknown": "choice",
        },
    ),
    MemoryEventLog: ({}, {"max_events": "count", "max_bytes": "count"}),
    OldPaths: ({"stream": "/a", "post": "/b"}, {"stream": "text", "post": "text"}),
}
CASES: Final = [
    pytest.param(make, {**good, name: value}, WRONG[kind][1], id=f"{make.__name__}-{name}-{value}")
    for make, (good, kinds) in ARGUMENTS.items()
    for name, kind in kinds.items()
    for value in WRONG[kind][0]
]


@pytest.mark.parametrize("make", ARGUMENTS, ids=lambda make: make.__name__)
def test_every_argument_is_in_the_table(make: Callable[..., Any]) -> None:
    """A new argument must be added to the table with values that it refuses."""
    good, kinds = ARGUMENTS[make]
    make(**good)
    assert set(inspect.signature(make).parameters) == set(kinds)


@pytest.mark.parametrize(("make", "settings", "text"), CASES)
def test_what_an_argument_does_not_take_raises(
    make: Callable[..., Any], settings: dict[str, Any], text: str
) -> None:
    """Most wrong values failed later, as a fault of the library, or chose another setting."""
    with pytest.raises((ValueError, LocalProtocolError), match=text):
        make(**settings)


@pytest.mark.parametrize("kinds", [5, "str", (str, 5), {}])
def test_the_types_of_members_are_types(kinds: object) -> None:
    """A wrong type would otherwise fail with the first message."""
    make: Any = ExtensionMethod
    for name in ("params", "result"):
        with pytest.raises(ValueError, match=f"{name} must give a type, a tuple of types or None"):
            make(name="x/y", kind="request", sender=Side.CLIENT, **{name: {"a": kinds}})
    with pytest.raises(ValueError, match="None for each name, not <class 'str'> for 5"):
        make(name="x/y", kind="request", sender=Side.CLIENT, params={5: str})
    good = make(name="x/y", kind="request", sender=Side.CLIENT, params={"a": None, "b": (str, int)})
    assert good.name == "x/y"


# ---------------------------------------------------------------------------------------- verbs

TIMED: Final = ["send_request", "max_timeout", "send_paginated", "ping", "start", "probe", "listen"]


def use_timeout(verb: str, timeout: Any) -> None:
    """Give a timeout to a verb that accepts one."""
    client = ready_client(REVISION)
    match verb:
        case "send_request":
            client.send_request("ping", timeout=timeout, now=1)
        case "max_timeout":
            client.send_request("ping", max_timeout=timeout, now=1)
        case "send_paginated":
            client.send_paginated("tools/list", timeout=timeout, now=1)
        case "ping":
            client.ping(timeout=timeout, now=1)
        case "start":
            new_client().start(timeout=timeout, now=1)
        case "probe":
            new_client().start(probe_timeout=timeout, now=1)
        case _:
            modern_client().listen({"toolsListChanged": True}, timeout=timeout, now=1)


@pytest.mark.parametrize("timeout", [True, False, 0, -1, math.nan, "5", [5]])
@pytest.mark.parametrize("verb", TIMED)
def test_a_timeout_is_a_number_of_seconds(verb: str, timeout: object) -> None:
    """`True` counted as a second, and text failed later in a comparison."""
    with pytest.raises(LocalProtocolError, match="a timeout must be greater than zero, and a numb"):
        use_timeout(verb, timeout)
    use_timeout(verb, 5)


@pytest.mark.parametrize("drain", [None, True, -1, -0.5, math.nan, "1"])
def test_the_drain_of_an_end_is_a_number_of_seconds(drain: Any) -> None:
    """With NaN the drain ended at once, and text raised only if requests were open."""
    server = ready_server(REVISION)
    before = canonical(server)
    with pytest.raises(ValueError, match="drain must not be negative, and a number of seconds"):
        server.receive_eof(drain=drain)
    assert canonical(server) == before
    server.receive_eof(drain=0)


@pytest.mark.parametrize("now", [True, "5", [5]])
def test_the_first_time_is_a_number(now: Any) -> None:
    """Later times are compared with the first one, which would fail then."""
    for made in (new_client(), ServerConnection(info=SERVER_INFO), new_endpoint()):
        with pytest.raises(ValueError, match="now must be a number of seconds"):
            made.handle_timeout(now)
        made.handle_timeout(5)


@pytest.mark.parametrize("at", [True, "5", [5]])
def test_the_time_of_day_is_a_number(at: Any) -> None:
    """A wrong type failed in the middle of a message, when a seal was opened."""
    server = ready_server(REVISION)
    verbs: list[Callable[[], object]] = [
        lambda: server.receive_data(b"", at=at),
        lambda: server.receive_message(b"{}", at=at),
        lambda: server.receive_eof(at=at),
        lambda: new_endpoint().exchange("POST", "/", []).receive_end(at=at),
    ]
    for verb in verbs:
        with pytest.raises(ValueError, match="at must be a number of seconds"):
            verb()
    server.receive_data(b"", at=5)


@pytest.mark.parametrize("flag", [None, 0, 1, "no"])
def test_what_is_on_or_off_is_a_boolean(flag: Any) -> None:
    """`progress="no"` asked for progress."""
    client = ready_client(REVISION)
    before = canonical(client)
    with pytest.raises(ValueError, match="progress must be True or False"):
        client.send_request("tools/list", progress=flag)
    with pytest.raises(ValueError, match="auto must be True or False"):
        client.send_paginated("tools/list", auto=flag)
    assert canonical(client) == before


def test_a_hint_is_a_revision() -> None:
    """A list must raise the same error, although it has no hash."""
    client = new_client()
    hint: Any = ["2025-11-25"]
    with pytest.raises(LocalProtocolError, match="a hint is a revision"):
        client.start(hint=hint)


@pytest.mark.parametrize("wait", [True, -1, 1.5, "5"])
def test_the_pause_of_a_closed_stream_is_in_milliseconds(wait: Any) -> None:
    """A wrong value was written into the stream as it was."""
    client = connect(new_endpoint())
    with pytest.raises(ValueError, match="retry_ms must not be negative, and an integer"):
        client.endpoint.close_stream(client.endpoint.sessions[0], retry_ms=wait)
