"""The `_meta` that a client of 2026-07-28 sends with each request.

Rules: META-009, META-012, META-017, LOG-010, PROG-002, CAP-009.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from sansmcp import ClientConnection, Codec, Config, JSONObject, LocalProtocolError, MsgspecCodec
from tests.support.modern import (
    CAPABILITIES,
    CLIENT,
    EVERYTHING,
    LEVEL,
    MODERN,
    VERSION,
    modern_client,
)
from tests.support.wire import CLIENT_INFO, new_client, receive, result, sent

SAID = {VERSION: MODERN, CAPABILITIES: EVERYTHING, CLIENT: CLIENT_INFO}

REQUESTS: list[Callable[[ClientConnection], object]] = [
    lambda client: client.send_request("tools/list"),
    lambda client: client.send_request("tools/list", {}),
    lambda client: client.send_request("tools/call", {"name": "t"}),
    lambda client: client.send_request("resources/read", {"uri": "a:b"}),
    lambda client: client.send_request("x/extension"),
    lambda client: client.send_request("x/extension", {"a": {"_meta": {}}}),
    lambda client: client.send_paginated("prompts/list"),
    lambda client: client.send_paginated("resources/list", {"cursor": "c"}),
    lambda client: client.listen({}),
]


@pytest.mark.parametrize("ask", REQUESTS)
@pytest.mark.parametrize("meta", [None, {}, {"x": 1}])
def test_every_request_has_its_envelope(
    ask: Callable[[ClientConnection], object], meta: JSONObject | None
) -> None:
    """A stateless server must refuse a request without it (META-009)."""
    client = modern_client()
    ask(client)
    (message,) = sent(client)
    assert message["params"]["_meta"] == SAID
    # The same with something of the caller's own.
    client.send_request(message["method"], message["params"] | {"_meta": meta or {}}, meta=meta)
    (message,) = sent(client)
    assert message["params"]["_meta"] == {**SAID, **(meta or {})}


def test_notifications_have_none() -> None:
    """A notification has no response."""
    client = modern_client()
    call = client.send_request("tools/list")
    sent(client)
    client.cancel(call, meta={"x": 1})
    client.send_notification("x/extension", {"a": 1})
    cancelled, extension = sent(client)
    assert cancelled["params"] == {"requestId": 2, "_meta": {"x": 1}}
    assert extension["params"] == {"a": 1}


@pytest.mark.parametrize("codec", [Config().codec, MsgspecCodec()])
def test_params_are_neither_changed_nor_kept(codec: Codec) -> None:
    """The caller may change the dict and use it for the next call."""
    client = modern_client(config=Config(codec=codec))
    params: JSONObject = {"name": "t", "arguments": {"deep": [{"a": 1}]}, "_meta": {"x": {"y": 1}}}
    meta: JSONObject = {"z": {"a": 1}}
    before = deepcopy((params, meta))
    client.send_request("tools/call", params, meta=meta, progress=True, log_level="info")
    assert (params, meta) == before
    params["arguments"]["deep"].append(2)
    params["_meta"]["x"]["y"] = meta["z"]["a"] = 2
    (message,) = sent(client)
    assert message["params"]["arguments"] == {"deep": [{"a": 1}]}
    assert message["params"]["_meta"]["x"] == {"y": 1}
    assert message["params"]["_meta"]["z"] == {"a": 1}


def test_what_the_verb_is_given_wins_over_the_params() -> None:
    """An argument of the verb must replace the same member of the params."""
    client = modern_client()
    params: JSONObject = {"_meta": {"x": 1, "y": 1, LEVEL: "debug", "progressToken": "old"}}
    meta: JSONObject = {"x": 2, LEVEL: "info", "progressToken": "new"}
    client.send_request("tools/list", params, meta=meta)
    client.send_request("tools/list", params, meta=meta | {"progressToken": 5}, log_level="error")
    first, second = sent(client)
    theirs = {"x": 2, "y": 1}
    assert first["params"]["_meta"] == {**SAID, **theirs, LEVEL: "info", "progressToken": "new"}
    assert second["params"]["_meta"] == {**SAID, **theirs, LEVEL: "error", "progressToken": 5}


def test_trace_context_and_foreign_keys_go_through_untouched() -> None:
    """A tracing tool needs each character unchanged (META-017, META-018)."""
    meta: JSONObject = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "tracestate": "vendor=value,other=ü\u2028",
        "baggage": "userId=alice;p=1",
        "com.example/deep": {"a": [None, True, 1.5, "\ud800"]},
        "": None,
    }
    client = modern_client()
    client.send_request("tools/list", meta=meta)
    client.send_paginated("tools/list", meta=meta)
    client.listen({}, meta=meta)
    for message in sent(client):
        assert message["params"]["_meta"] == {**SAID, **meta}


def test_no_key_is_written_twice() -> None:
    """Readers differ in which of two equal keys they use."""
    client = modern_client()
    theirs: list[JSONObject] = [
        {"_meta": None},
        {"a": 1, "_meta": {}},
        {"_meta": {"progressToken": "p"}},
    ]
    for params in theirs:
        client.send_request("x/extension", params)
        assert client.data_to_send().count(b'"_meta"') == 1
    client.send_paginated("tools/list", {"_meta": None})
    data = client.data_to_send()
    assert data.count(b'"_meta"') == 1
    client.send_request("x/extension", {"_meta": {"progressToken": "q"}}, progress=True)
    assert client.data_to_send().count(b'"progressToken"') == 1


def test_capabilities_of_other_revisions_stay_at_home() -> None:
    """A server that is told of tasks could use them."""
    declared: JSONObject = {
        "roots": {"listChanged": True},
        "sampling": {"context": {}},
        "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}},
        "experimental": {"a": {"b": 1}},
        "extensions": {"com.example/x": {"y": [1]}},
    }
    client = modern_client(capabilities=declared)
    client.send_request("tools/list")
    (message,) = sent(client)
    assert message["params"]["_meta"][CAPABILITIES] == {
        "roots": {},
        "sampling": {"context": {}},
        "experimental": {"a": {"b": 1}},
        "extensions": {"com.example/x": {"y": [1]}},
    }


def test_nothing_declared_is_said_too() -> None:
    """The member is required, and an empty object means no capabilities (CAP-009)."""
    client = ClientConnection(info=CLIENT_INFO, revisions=(MODERN,))
    client.start()
    (probe,) = sent(client)
    assert probe["params"]["_meta"][CAPABILITIES] == {}


def test_without_info_the_probe_is_nameless_too() -> None:
    """A client that hides its name must do so from the first message on (META-012)."""
    client = new_client(revisions=(MODERN,), config=Config(send_info=False))
    client.start()
    (probe,) = sent(client)
    assert set(probe["params"]["_meta"]) == {VERSION, CAPABILITIES}
    receive(client, result(1, {"supportedVersions": [MODERN], "capabilities": {}}))
    client.listen({})
    (message,) = sent(client)
    assert set(message["params"]["_meta"]) == {VERSION, CAPABILITIES}


UNLAWFUL: list[tuple[dict[str, Any], str]] = [
    ({"meta": {VERSION: MODERN}}, "OWN-025"),
    ({"meta": {CAPABILITIES: {}}}, "OWN-025"),
    ({"meta": {CLIENT: CLIENT_INFO}}, "OWN-025"),
    ({"params": {"_meta": {VERSION: MODERN}}}, "OWN-025"),
    ({"params": {"_meta": []}}, "OWN-014"),
    ({"params": {"_meta": "x"}, "meta": {"a": 1}}, "OWN-014"),
    ({"params": [1]}, "OWN-014"),
    ({"meta": [1]}, "OWN-014"),
    ({"meta": {"x": float("nan")}}, "OWN-024"),
    ({"meta": {LEVEL: "loud"}}, "LOG-010"),
    ({"meta": {LEVEL: ["info"]}}, "LOG-010"),
]


@pytest.mark.parametrize(("given", "rule"), UNLAWFUL)
@pytest.mark.parametrize("verb", ["send_request", "send_paginated"])
def test_what_may_not_be_said_is_not_sent(verb: str, given: dict[str, Any], rule: str) -> None:
    """Members that the library sets must be refused from the caller, and others must be JSON."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match=rule):
        getattr(client, verb)("tools/list", **given)
    assert sent(client) == []
    client.send_request("tools/list")
    assert sent(client)[0]["id"] == 2


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"log_level": "loud"}, "LOG-010"),
        ({"log_level": ["info"]}, "LOG-010"),
        ({"log_level": "info", "meta": [1]}, "OWN-014"),
        ({"meta": {"progressToken": 1.5}}, "PROG-001"),
        ({"params": {"_meta": {"progressToken": None}}}, "PROG-001"),
    ],
)
def test_level_and_token_are_lawful_ones(given: dict[str, Any], rule: str) -> None:
    """A server would refuse the whole request for an invalid value."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match=rule):
        client.send_request("x/extension", given.pop("params", None), **given)
    assert sent(client) == []
    assert client.pending_requests == ()


@pytest.mark.parametrize("key", [VERSION, CAPABILITIES, CLIENT])
def test_start_and_listen_say_no_other_version_either(key: str) -> None:
    """These requests must have the same envelope as others."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match="OWN-025"):
        client.listen({}, meta={key: MODERN})
    assert sent(client) == []
    client = new_client(revisions=(MODERN,))
    with pytest.raises(LocalProtocolError, match="OWN-025"):
        client.start(meta={key: MODERN})
    client.start()
    assert len(sent(client)) == 1


def test_undeclared_capability_of_the_server_is_refused_at_home() -> None:
    """`server/discover` has declared the server's capabilities (CAP-004)."""
    client = modern_client(server={"tools": {}})
    with pytest.raises(LocalProtocolError, match="CAP-004"):
        client.send_request("prompts/list")
    with pytest.raises(LocalProtocolError, match="CAP-004"):
        client.send_paginated("prompts/list")
    with pytest.raises(LocalProtocolError, match="CAP-004"):
        client.send_request("resources/read", {"uri": "a:b"})
    assert sent(client) == []


@pytest.mark.parametrize(
    "method",
    ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/list", "roots/list"],
)
def test_methods_of_other_revisions_are_refused(method: str) -> None:
    """The server could only answer that the method is unknown (OWN-020)."""
    client = modern_client()
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        client.send_request(method)
    assert sent(client) == []
