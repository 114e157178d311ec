"""Results of 2026-07-28: the members that the library adds, and those of the application.

`server/discover` is the one result that the library composes itself.
"""

from typing import Any

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    JSONObject,
    LocalProtocolError,
    RequestAnswered,
    ServerConnection,
)
from tests.support.modern import (
    BOTH,
    CACHE,
    MODERN,
    SERVED_BY,
    SERVER,
    complete,
    envelope,
    modern,
    modern_server,
    requested,
)
from tests.support.wire import (
    SERVER_CAPABILITIES,
    SERVER_INFO,
    call,
    of,
    receive,
    refusals,
    result,
    sent,
)

CACHEABLE: list[tuple[str, JSONObject, JSONObject]] = [
    ("tools/list", {}, {"tools": []}),
    ("prompts/list", {}, {"prompts": []}),
    ("resources/list", {}, {"resources": []}),
    ("resources/templates/list", {}, {"resourceTemplates": []}),
    ("resources/read", {"uri": "file:///a"}, {"contents": []}),
]
PLAIN: list[tuple[str, JSONObject, JSONObject]] = [
    ("tools/call", {"name": "t"}, {"content": []}),
    ("prompts/get", {"name": "p"}, {"messages": []}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
        {"completion": {"values": []}},
    ),
]


def a_call(server: ServerConnection, method: str = "tools/call") -> IncomingRequest:
    params = {"tools/call": {"name": "t"}, "resources/read": {"uri": "file:///a"}}
    return requested(server, modern(1, method, params.get(method)))


# ------------------------------------------------------------------------- what is written in


@pytest.mark.parametrize(("method", "params", "value"), PLAIN)
def test_a_result_says_that_it_is_complete_and_whose_it_is(
    method: str, params: JSONObject, value: JSONObject
) -> None:
    """Every result needs `resultType`, which the application should not have to add."""
    server = modern_server()
    given = dict(value)
    assert server.send_result(requested(server, modern(1, method, params)), given)
    assert sent(server) == [complete(1, value)]
    assert given == value


@pytest.mark.parametrize(("method", "params", "value"), CACHEABLE)
def test_cacheable_results_say_for_how_long(
    method: str, params: JSONObject, value: JSONObject
) -> None:
    """CACHE-001: five methods besides `server/discover` must have both caching hints; the default
    is no caching."""
    server = modern_server()
    given = dict(value)
    server.send_result(requested(server, modern(1, method, params)), given)
    server.send_result(
        requested(server, modern(2, method, params)), {**value, "ttlMs": 5, "cacheScope": "public"}
    )
    assert sent(server) == [
        complete(1, {**value, **CACHE}),
        complete(2, {**value, "ttlMs": 5, "cacheScope": "public"}),
    ]
    assert given == value


def test_the_hints_of_results_that_give_none_are_settings() -> None:
    """A server with fixed lists must be able to set the hints once."""
    server = modern_server(config=Config(cache_ttl_ms=60_000, cache_scope="public"))
    server.send_result(a_call(server, "tools/list"), {"tools": [], "cacheScope": "private"})
    receive(server, modern(2, "server/discover"))
    listed, found = (message["result"] for message in sent(server))
    assert (listed["ttlMs"], listed["cacheScope"]) == (60_000, "private")
    assert (found["ttlMs"], found["cacheScope"]) == (60_000, "public")
    with pytest.raises(ValueError, match="cache_ttl_ms"):
        Config(cache_ttl_ms=-1)


@pytest.mark.parametrize(
    ("hints", "rule"),
    [
        ({"ttlMs": -1}, "CACHE-002"),
        ({"ttlMs": 1.5}, "CACHE-002"),
        ({"ttlMs": True}, "CACHE-002"),
        ({"cacheScope": "shared"}, "CACHE-003"),
        ({"cacheScope": ["public"]}, "CACHE-003"),
    ],
)
def test_hints_that_no_client_could_read_raise(hints: JSONObject, rule: str) -> None:
    """CACHE-002, CACHE-003: it would keep a private list in a shared cache, or a stale one."""
    server = modern_server()
    request = a_call(server, "tools/list")
    with pytest.raises(LocalProtocolError, match=rule):
        server.send_result(request, {"tools": [], **hints})
    assert request.open
    assert server.send_result(request, {"tools": []})
    assert sent(server) == [complete(1, {"tools": [], **CACHE})]


def test_hints_on_other_results_are_the_applications_own() -> None:
    """In other results, these members have no special meaning."""
    server = modern_server()
    server.send_result(a_call(server), {"content": [], "ttlMs": "soon"})
    assert sent(server) == [complete(1, {"content": [], "ttlMs": "soon"})]


# -------------------------------------------------------------------------------------- meta


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_meta_is_merged_and_the_callers_word_is_last(method: str) -> None:
    """A gateway must be able to pass on the server info of another server."""
    other = {"name": "behind", "version": "9"}
    cases: list[tuple[Any, Any, JSONObject]] = [
        ({"a": 1}, None, {**SERVED_BY, "a": 1}),
        (None, {"a": 2}, {**SERVED_BY, "a": 2}),
        ({"a": 1, "b": 1}, {"a": 2}, {**SERVED_BY, "a": 2, "b": 1}),
        ({SERVER: other}, None, {SERVER: other}),
        ({"a": 1}, {SERVER: other}, {SERVER: other, "a": 1}),
        ({}, {}, SERVED_BY),
    ]
    value: JSONObject = {"tools": [], **CACHE} if method == "tools/list" else {"content": []}
    for own, meta, expected in cases:
        server = modern_server()
        given = value if own is None else {**value, "_meta": own}
        before = repr(given)
        assert server.send_result(a_call(server, method), given, meta=meta)
        (answer,) = sent(server)
        assert answer["result"] == {**value, "_meta": expected, "resultType": "complete"}
        assert repr(given) == before


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_a_meta_that_is_no_object_raises(method: str) -> None:
    """Such a value cannot be merged, and sending it would be invalid."""
    server = modern_server()
    request = a_call(server, method)
    value: JSONObject = {"tools": []} if method == "tools/list" else {"content": []}
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.send_result(request, {**value, "_meta": [1]})
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.send_result(request, value, meta=[1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # untyped callers
    assert request.open
    assert sent(server) == []


def test_a_server_may_keep_its_name_to_itself() -> None:
    """The specification asks for a switch, which is `send_info`."""
    server = modern_server(config=Config(send_info=False))
    server.send_result(a_call(server), {"content": []})
    server.send_result(a_call(server), {"content": []}, meta={"a": 1})
    server.send_result(a_call(server, "tools/list"), {"tools": []})
    receive(server, modern(2, "server/discover"))
    server.require_input(a_call(server), state="s")
    answers = sent(server)
    assert len(answers) == 5
    assert SERVER not in str(answers)
    assert answers[0] == result(1, {"content": [], "resultType": "complete"})
    assert answers[1]["result"]["_meta"] == {"a": 1}


# -------------------------------------------------------------- what the application hands over


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_an_application_may_write_the_type_itself(method: str) -> None:
    """A result from elsewhere may have its `resultType` already."""
    server = modern_server()
    value: JSONObject = {"tools": [], **CACHE} if method == "tools/list" else {"content": []}
    server.send_result(a_call(server, method), {**value, "resultType": "complete"})
    assert sent(server) == [complete(1, value)]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("input_required", r"require_input\(\).*OWN-025"),
        ("task", "JSON-023"),
        ("Complete", "JSON-023"),
        (["complete"], "JSON-023"),
    ],
)
def test_types_that_the_client_does_not_know_raise(kind: object, rule: str) -> None:
    """A client would have to treat the result as invalid."""
    server = modern_server()
    request = a_call(server)
    with pytest.raises(LocalProtocolError, match=rule):
        server.send_result(request, {"content": [], "resultType": kind})
    assert request.open
    assert sent(server) == []


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_results_without_what_the_method_requires_raise(method: str) -> None:
    """An invalid result must not be sent, and the request stay open."""
    server = modern_server()
    request = a_call(server, method)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.send_result(request, {})
    with pytest.raises(LocalProtocolError, match="OWN-024"):
        server.send_result(request, {"content": [], "tools": [object()]})
    assert request.open
    assert server.send_error(request, -32603, "no")


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("value", [[], None, "text", 5])
def test_results_that_are_no_objects_raise(method: str, value: Any) -> None:
    """Untyped callers must get the library's own exception in both eras."""
    server = modern_server()
    request = a_call(server, method)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.send_result(request, value)
    assert request.open


def test_a_result_is_sent_once() -> None:
    """A second result is a mistake of the application, a late one a lost race."""
    server = modern_server()
    request = a_call(server)
    assert server.send_result(request, {"content": []})
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        server.send_result(request, {"content": []})
    with pytest.raises(LocalProtocolError, match="OWN-026"):
        server.require_input(request, state="s")


# ---------------------------------------------------------------------------- server/discover


@pytest.mark.parametrize("revisions", [(MODERN,), BOTH], ids=["modern", "both"])
def test_discover_is_answered_by_the_library(revisions: tuple[str, ...]) -> None:
    """Every modern server must answer it; `supportedVersions` begins with the newest."""
    server = modern_server(revisions=revisions)
    expected = {
        "supportedVersions": sorted(revisions, reverse=True),
        "capabilities": SERVER_CAPABILITIES,
        **CACHE,
    }
    for id in (1, "d", 2.0):
        (event,) = of(RequestAnswered, receive(server, modern(id, "server/discover")))
        assert (event.request.method, event.code) == ("server/discover", None)
        assert sent(server) == [complete(id, expected)]


def test_discover_tells_instructions_where_there_are_any() -> None:
    """Discovery is the only place for instructions in 2026-07-28."""
    server = ServerConnection(
        info=SERVER_INFO, capabilities={}, instructions="Be kind.", revisions=(MODERN,)
    )
    receive(server, modern(1, "server/discover", meta=envelope({})))
    assert sent(server) == [
        complete(
            1,
            {
                "supportedVersions": [MODERN],
                "capabilities": {},
                "instructions": "Be kind.",
                **CACHE,
            },
        )
    ]


def test_capabilities_of_other_revisions_are_not_advertised() -> None:
    """A client could use a capability that does not exist in this revision."""
    extensions = {"extensions": {"com.example/x": {"a": 1}}, "x": {}}
    server = modern_server(
        capabilities={"tools": {"listChanged": False}, "tasks": {"list": {}}, **extensions},
        revisions=BOTH,
    )
    receive(server, modern(1, "server/discover"), call(2, "ping"))
    found, _ = sent(server)
    assert found["result"]["capabilities"] == {"tools": {"listChanged": False}, **extensions}


def test_undeclared_methods_do_not_exist() -> None:
    """A method that `server/discover` does not advertise must be refused as unknown."""
    server = modern_server(capabilities={"tools": {}})
    declared = modern(1, "tools/list")
    undeclared = [modern(2, "prompts/list"), modern(3, "resources/read", {"uri": "file:///a"})]
    receive(server, declared, *undeclared, modern(4, "x/unknown"))
    assert refusals(sent(server)) == [(2, -32601), (3, -32601), (4, -32601)]
