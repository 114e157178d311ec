"""How a server of 2026-07-28 reads and judges the `_meta` of each request."""

from typing import Any

import pytest

from sansmcp import Config, JSONObject, ProtocolViolation, Ready, RequestReceived
from tests.support.modern import (
    BOTH,
    CAPABILITIES,
    CLIENT,
    EVERYTHING,
    MODERN,
    ROOTS,
    VERSION,
    complete,
    envelope,
    modern,
    modern_server,
    requested,
)
from tests.support.wire import CLIENT_INFO, broken, call, of, only, receive, refusals, sent

TOOL: JSONObject = {"name": "t"}


def test_a_request_says_all_that_a_handshake_would() -> None:
    """Handlers must find revision and capabilities on the request, as there is no connection
    state."""
    server = modern_server()
    meta = envelope({"roots": {}}, level="notice", progressToken=0)
    request = requested(server, modern(1, "tools/call", TOOL, meta))
    assert request.revision == MODERN
    assert request.peer_info == CLIENT_INFO
    assert request.peer_capabilities == {"roots": {}}
    assert request.log_level == "notice"
    assert request.progress_token == 0
    assert request.principal is None
    assert server.revision is None
    assert server.peer.capabilities == {}


def test_the_first_request_makes_the_connection_ready() -> None:
    """Without a handshake, the first request must lead to `Ready`."""
    server = modern_server()
    ready, received = receive(server, modern(1, "tools/list"))
    assert isinstance(ready, Ready)
    assert (ready.revision, ready.start) == (MODERN, None)
    assert ready.peer.info == CLIENT_INFO
    assert isinstance(received, RequestReceived)
    only(RequestReceived, receive(server, modern(2, "tools/list")))
    only(RequestReceived, receive(server, modern(3, "tools/list", meta=envelope({}))))


def test_client_info_may_be_missing() -> None:
    """Client info is optional, and many clients leave it out."""
    server = modern_server()
    request = requested(server, modern(1, "tools/list", meta=envelope(info=None)))
    assert request.peer_info is None
    assert request.log_level is None
    assert server.send_result(request, {"tools": []})
    null = requested(server, modern(2, "tools/list", meta=envelope() | {CLIENT: None}))
    assert null.peer_info is None


BROKEN: list[tuple[Any, str, str]] = [
    (None, "META-010", VERSION),
    ({}, "META-010", VERSION),
    (envelope(version=None), "META-010", VERSION),
    (envelope() | {VERSION: None}, "META-010", VERSION),
    (envelope(version=20260728), "META-010", VERSION),
    ({VERSION: MODERN}, "META-010", CAPABILITIES),
    (envelope() | {CAPABILITIES: None}, "META-010", CAPABILITIES),
    (envelope(["roots"]), "META-010", CAPABILITIES),
    (envelope(info="client 1"), "META-010", CLIENT),
    (envelope(info={}), "META-010", CLIENT),
    (envelope(info={"name": 1, "version": "1"}), "META-010", CLIENT),
    (envelope(level="loud"), "LOG-010", "debug"),
    (envelope(level=["debug"]), "LOG-010", "debug"),
    (envelope(level=3), "LOG-010", "debug"),
    (envelope(progressToken=1.5), "PROG-001", "token"),
]


@pytest.mark.parametrize(("meta", "rule", "named"), BROKEN)
@pytest.mark.parametrize("revisions", [(MODERN,), BOTH], ids=["modern", "both"])
def test_a_broken_envelope_is_refused(
    meta: Any, rule: str, named: str, revisions: tuple[str, ...]
) -> None:
    """The -32602 must name the member for the author of the client."""
    server = modern_server(revisions=revisions)
    message = call(1, "tools/list", {} if meta is None else {"_meta": meta})
    (violation,) = of(ProtocolViolation, receive(server, message))
    assert (violation.rule, violation.code, violation.tolerated) == (rule, -32602, False)
    (answer,) = sent(server)
    assert refusals([answer]) == [(1, -32602)]
    assert named in answer["error"]["message"]
    assert violation.text == answer["error"]["message"]


@pytest.mark.parametrize("meta", [5, "m", [], True])
def test_a_meta_that_is_no_object_is_refused(meta: object) -> None:
    """A `_meta` of another type must be refused without an exception."""
    server = modern_server()
    receive(server, call(1, "tools/list", {"_meta": meta}))
    assert refusals(sent(server)) == [(1, -32602)]


@pytest.mark.parametrize("params", [5, [], "p", [{"_meta": envelope()}]])
def test_params_that_are_no_object_are_refused(params: object) -> None:
    """The request must get an error although it has no envelope."""
    server = modern_server()
    assert broken(receive(server, call(1, "tools/list", params))) == ["JSON-017"]
    assert refusals(sent(server)) == [(1, -32602)]


@pytest.mark.parametrize("version", ["2025-11-25", "2027-01-01", "", "2026-07-28 ", "x" * 9_000])
@pytest.mark.parametrize("revisions", [(MODERN,), BOTH], ids=["modern", "both"])
def test_an_unknown_version_is_told_what_is_served(
    version: str, revisions: tuple[str, ...]
) -> None:
    """A client chooses its next attempt from `supported`; `requested` shows what was understood."""
    server = modern_server(revisions=revisions)
    events = receive(server, modern(1, "server/discover", meta=envelope(version=version)))
    assert broken(events) == ["VER-008"]
    (answer,) = sent(server)
    assert refusals([answer]) == [(1, -32022)]
    assert len(answer["error"]["message"]) <= 300
    data = answer["error"]["data"]
    assert data == {"supported": sorted(revisions, reverse=True), "requested": version}

    receive(server, modern(1, "server/discover"))
    (answer,) = sent(server)
    assert answer["result"]["supportedVersions"] == data["supported"]


def test_a_version_is_judged_before_the_rest_of_the_envelope() -> None:
    """An unknown version may give the other members another meaning."""
    server = modern_server()
    receive(server, call(1, "tools/list", {"_meta": {VERSION: "2099-01-01"}}))
    assert refusals(sent(server)) == [(1, -32022)]


def test_each_request_is_judged_for_itself() -> None:
    """An earlier request must not affect a later one, in either direction."""
    server = modern_server()
    rich = requested(server, modern(1, "tools/call", TOOL, envelope(level="debug")))
    poor = requested(server, modern(2, "tools/call", TOOL, envelope({}, info=None)))
    assert (rich.peer_capabilities, rich.peer_info, rich.log_level) == (
        EVERYTHING,
        CLIENT_INFO,
        "debug",
    )
    assert (poor.peer_capabilities, poor.peer_info, poor.log_level) == ({}, None, None)
    receive(server, call(3, "tools/call", TOOL))
    assert refusals(sent(server)) == [(3, -32602)]
    again = requested(server, modern(4, "tools/call", TOOL, envelope(level="debug")))
    assert again.log_level == "debug"


@pytest.mark.parametrize(
    ("first", "second"), [({"roots": True}, {"roots": 1}), ({"roots": 1}, {"roots": True})]
)
def test_values_that_python_takes_for_equal_are_told_apart(
    first: JSONObject, second: JSONObject
) -> None:
    """`True == 1` in Python: a request would get the cached capabilities of another one."""
    server = modern_server()
    requested(server, modern(1, "tools/call", TOOL, envelope(first)))
    request = requested(server, modern(2, "tools/call", TOOL, envelope(second)))
    assert repr(request.peer_capabilities) == repr(second)


@pytest.mark.parametrize(
    "capabilities", [{"roots": {}}, {"roots": {"listChanged": True}, "x": [1, {"y": 0.5}]}]
)
def test_equal_envelopes_are_read_once(capabilities: JSONObject) -> None:
    """Reading an envelope copies it; requests with equal ones must share the copy."""
    server = modern_server()
    first, second = (
        requested(
            server, modern(id, "tools/call", TOOL, envelope(capabilities, traceparent=str(id)))
        )
        for id in (1, 2)
    )
    assert first.peer_capabilities is second.peer_capabilities


@pytest.mark.parametrize(
    "extension", [None, "text", [], ["a", {"b": None}], [["a", True]], 1.5, {"a": {"b": 0}}]
)
def test_requests_with_equal_envelopes_are_served_alike(extension: object) -> None:
    """A client sends the same envelope with each request."""
    capabilities = {"roots": {}, "extensions": {"com.example/x": extension}}
    server = modern_server()
    requests = [
        requested(server, modern(id, "tools/call", TOOL, envelope(capabilities))) for id in range(3)
    ]
    for request in requests:
        assert request.peer_capabilities == capabilities
        assert server.require_input(request, {"r": ROOTS})
    other = requested(server, modern(3, "tools/call", TOOL, envelope({})))
    assert other.peer_capabilities == {}


def test_what_the_application_does_to_params_stays_with_it() -> None:
    """An application may change the params of its request."""
    server = modern_server()
    first = requested(server, modern(1, "tools/call", TOOL, envelope({"roots": {}})))
    first.params["_meta"][CAPABILITIES]["sampling"] = {}
    first.params["_meta"][CLIENT]["name"] = "changed"
    del first.params["_meta"][VERSION]
    second = requested(server, modern(2, "tools/call", TOOL, envelope({"roots": {}})))
    for request in (first, second):
        assert request.peer_capabilities == {"roots": {}}
        assert request.peer_info == CLIENT_INFO
        assert request.revision == MODERN
    assert second.params["_meta"] == envelope({"roots": {}})


def test_unknown_meta_members_are_let_through() -> None:
    """Trace context and extensions are members of `_meta`, and must not be refused or lost."""
    server = modern_server()
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    meta = envelope(**{"com.example/x": [1]}, **trace)
    request = requested(server, modern(1, "tools/list", meta=meta))
    assert request.meta == meta


def test_capabilities_of_every_depth_can_be_received() -> None:
    """Receiving must not raise, however deeply the peer nests its capabilities."""
    deep: JSONObject = {}
    for _ in range(900):
        deep = {"a": deep}
    server = modern_server(config=Config(max_json_depth=2_000))
    receive(server, modern(1, "tools/list", meta=envelope(deep)))
    receive(server, modern(2, "tools/list", meta=envelope(deep)))
    requested(server, modern(3, "tools/list"))


def test_without_capabilities_nothing_may_be_asked() -> None:
    """An empty object means no capabilities, whatever an earlier request has declared."""
    server = modern_server()
    able = requested(server, modern(1, "tools/call", TOOL))
    unable = requested(server, modern(2, "tools/call", TOOL, envelope({})))
    assert server.require_input(able, {"r": ROOTS})
    with pytest.raises(Exception, match="MRTR-008"):
        server.require_input(unable, {"r": ROOTS})
    assert server.send_result(unable, {"content": []})
    assert sent(server)[1:] == [complete(2, {"content": []})]
