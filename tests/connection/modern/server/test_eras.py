"""Servers of one era and of both: the requests that they serve, and how they refuse others."""

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    Config,
    JSONObject,
    LocalProtocolError,
    NotificationReceived,
    Phase,
    Ready,
    RequestCancelled,
    RequestReceived,
    ServerConnection,
)
from tests.support.modern import (
    BOTH,
    MODERN,
    VERSION,
    complete,
    envelope,
    modern,
    modern_server,
    requested,
)
from tests.support.wire import (
    INITIALIZED,
    broken,
    call,
    initialize,
    new_server,
    note,
    of,
    only,
    ready_server,
    receive,
    refusals,
    result,
    sent,
)

every_legacy_revision = pytest.mark.parametrize("revision", LEGACY_REVISIONS)


def both(revision: str | None = None) -> ServerConnection:
    """A server of both eras; with a revision, after a handshake too (the id of its request was
    "hello")."""
    server = modern_server(revisions=BOTH)
    if revision is not None:
        receive(server, initialize("hello", revision), INITIALIZED)
        (answer,) = sent(server)
        assert answer["result"]["protocolVersion"] == revision
    return server


# ------------------------------------------------------------------------------ side by side


@every_legacy_revision
def test_both_eras_are_served_on_one_stream(revision: str) -> None:
    """A gateway may join clients of both eras to one process, and each must get its own forms."""
    server = both()
    requested(server, modern(1, "tools/list"))
    assert (server.phase, server.revision) == (Phase.NEW, None)
    receive(server, initialize(2, revision))
    assert server.phase is Phase.AGREED
    requested(server, modern(3, "tools/list"))
    ready = only(Ready, receive(server, INITIALIZED))
    assert ready.revision == server.revision == revision
    requested(server, call(4, "tools/list"))
    requested(server, modern(5, "tools/list"))
    (agreed,) = sent(server)
    assert agreed["id"] == 2
    assert [request.revision for request in server.open_requests] == [
        MODERN,
        MODERN,
        revision,
        MODERN,
    ]
    for request in server.open_requests:
        server.send_result(request, {"tools": []})
    answers = {message["id"]: message["result"] for message in sent(server)}
    assert answers.pop(4) == {"tools": []}
    assert {id: answer["resultType"] for id, answer in answers.items()} == dict.fromkeys(
        (1, 3, 5), "complete"
    )


@every_legacy_revision
def test_an_envelope_decides_on_the_era_of_its_request_only(revision: str) -> None:
    """A modern request must not change the agreed handshake."""
    server = both(revision)
    old = requested(server, call(1, "tools/list"))
    new = requested(server, modern(2, "tools/list", meta=envelope({}, info=None)))
    assert old.peer is server.peer
    assert (old.peer_info, new.peer_info) == (server.peer.info, None)
    assert old.peer_capabilities
    assert new.peer_capabilities == {}


def test_methods_are_those_of_the_era_of_the_request() -> None:
    """`ping` with an envelope, or `server/discover` without one, exists in no revision."""
    server = both("2025-11-25")
    wrong = [
        modern(1, "ping"),
        modern(2, "logging/setLevel", {"level": "debug"}),
        modern(3, "resources/subscribe", {"uri": "file:///a"}),
        modern(4, "tasks/list"),
        call(5, "server/discover"),
        call(6, "subscriptions/listen", {"notifications": {}}),
    ]
    assert broken(receive(server, *wrong)) == ["OWN-020"] * len(wrong)
    assert refusals(sent(server)) == [(id, -32601) for id in range(1, 7)]


def test_a_handshake_happens_once_in_the_middle_of_anything() -> None:
    """Modern requests must neither open nor close a legacy conversation."""
    server = both("2025-06-18")
    requested(server, modern(1, "tools/list"))
    assert broken(receive(server, initialize(2, "2025-06-18"))) == ["LIFE-001"]
    assert refusals(sent(server)) == [(2, -32600)]


def test_one_table_holds_the_requests_of_both_eras() -> None:
    """A client could not tell two responses with one id apart."""
    server = both("2025-11-25")
    requested(server, modern(1, "tools/list"))
    requested(server, call("a", "tools/list"))
    assert broken(receive(server, call(1, "tools/list"))) == ["ID-001"]
    assert broken(receive(server, modern("a", "tools/list"))) == ["ID-002"]
    assert sent(server) == []


def test_a_cancellation_belongs_to_the_era_of_the_request_it_names() -> None:
    """Notifications have no envelope, so the named request decides."""
    server = both()
    new = requested(server, modern(1, "tools/list"))
    event = only(
        RequestCancelled, receive(server, note("notifications/cancelled", {"requestId": 1}))
    )
    assert event.request is new
    receive(server, initialize("hello", "2025-11-25"), INITIALIZED)
    old = requested(server, call(2, "tools/list"))
    newer = requested(server, modern(3, "tools/list"))
    events = receive(
        server,
        note("notifications/cancelled", {"requestId": 3}),
        note("notifications/cancelled", {"requestId": 2}),
    )
    assert [event.request for event in of(RequestCancelled, events)] == [newer, old]


def test_legacy_pings_are_answered_before_any_handshake() -> None:
    """A client of either era may check whether the process is alive."""
    server = both()
    receive(server, call(1, "ping"))
    assert sent(server) == [result(1, {})]


# ----------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "x/unknown"])
def test_a_server_of_both_names_both_ways_in(method: str) -> None:
    """A request without handshake and envelope may come from a client of either era."""
    server = both()
    assert broken(receive(server, call(1, method))) == ["META-010"]
    (answer,) = sent(server)
    assert refusals([answer]) == [(1, -32602)]
    assert VERSION in answer["error"]["message"]
    assert "initialize" in answer["error"]["message"]
    receive(server, initialize(2, "2025-11-25"), INITIALIZED)
    receive(server, call(3, method))
    (_, *refused) = sent(server)
    assert refusals(refused) == ([] if method == "tools/list" else [(3, -32601)])


def test_a_modern_server_says_that_it_has_no_handshake() -> None:
    """An older client shows the error to a user, who must learn what to do."""
    server = modern_server()
    assert server.phase is Phase.OPERATING
    for message, rules, code in (
        (initialize(1, "2025-11-25"), [], -32601),  # to ask is no breach
        (call(2, "ping"), ["LIFE-011"], -32601),
        (call(3, "tools/list"), ["META-010"], -32602),
    ):
        assert broken(receive(server, message)) == rules
        (answer,) = sent(server)
        assert refusals([answer]) == [(message["id"], code)]
        assert MODERN in answer["error"]["message"]
        if code == -32601:
            assert "handshake" in answer["error"]["message"]
            assert answer["error"]["data"] == {"supported": [MODERN]}
    assert broken(receive(server, INITIALIZED)) == ["LIFE-004"]
    assert sent(server) == []


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_a_legacy_server_says_what_it_speaks(method: str) -> None:
    """A modern client takes any error for "legacy", but its author needs the reason."""
    server = new_server()
    receive(server, modern(1, method))
    (answer,) = sent(server)
    assert answer["error"]["code"] not in (-32020, -32021, -32022)  # which would mean "modern"
    assert "initialize" in answer["error"]["message"]
    assert LEGACY_REVISIONS[-1] in answer["error"]["message"]


def test_a_legacy_server_takes_an_envelope_for_any_other_meta() -> None:
    """Unknown members of `_meta` are no reason to refuse a request."""
    server = ready_server("2025-11-25")
    request = requested(server, modern(1, "tools/list"))
    assert (request.revision, request.meta) == ("2025-11-25", envelope())
    assert request.peer_capabilities == server.peer.capabilities
    assert server.send_result(request, {"tools": []})
    assert sent(server) == [result(1, {"tools": []})]
    receive(server, modern(2, "server/discover"))
    assert refusals(sent(server)) == [(2, -32601)]


@every_legacy_revision
def test_a_wish_for_the_modern_revision_is_no_way_into_it(revision: str) -> None:
    """`initialize` can agree only on a revision with a handshake."""
    for revisions in ((revision,), (revision, MODERN)):
        server = modern_server(revisions=revisions)
        receive(server, initialize(1, MODERN))
        (answer,) = sent(server)
        assert answer["result"]["protocolVersion"] == revision


@pytest.mark.parametrize(
    ("revisions", "codes"),
    [((MODERN,), [-32700, -32600]), (BOTH, [-32700, -32600]), (("2025-06-18",), [])],
)
def test_what_cannot_be_read_is_answered_where_a_form_for_it_exists(
    revisions: tuple[str, ...], codes: list[int]
) -> None:
    """Before an agreement, the newest revision of the server decides."""
    server = modern_server(revisions=revisions)
    receive(server, b"{\n", b"[]\n")
    assert [message["error"]["code"] for message in sent(server)] == codes


def test_what_is_no_request_is_refused_whatever_its_envelope() -> None:
    """An envelope must not make an invalid message acceptable."""
    server = modern_server()
    both_at_once: JSONObject = {**modern(1, "tools/list"), "result": {}}
    old_version = {**modern(2, "tools/list"), "jsonrpc": "1.0"}
    receive(server, both_at_once, old_version, modern(None, "tools/list"))
    assert [answer["error"]["code"] for answer in sent(server)] == [-32600] * 3


# ----------------------------------------------------------------------- the other direction


def test_a_modern_server_sends_no_requests() -> None:
    """A modern client sends no responses."""
    server = modern_server()
    request = requested(server, modern(1, "tools/call", {"name": "t"}))
    for belongs_to in (None, request):
        with pytest.raises(LocalProtocolError, match=r"returns RequireInput .*STATE-006"):
            server.send_request("roots/list", request=belongs_to)
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        server.ping()
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        server.send_paginated("tasks/list")
    assert sent(server) == []


def test_a_server_of_both_asks_legacy_clients_only() -> None:
    """The handshake allows requests of the server, except about modern requests."""
    server = both()
    new = requested(server, modern(1, "tools/call", {"name": "t"}))
    with pytest.raises(LocalProtocolError):
        server.send_request("roots/list")
    receive(server, initialize(2, "2025-11-25"), INITIALIZED)
    old = requested(server, call(3, "tools/call", {"name": "t"}))
    sent(server)
    with pytest.raises(LocalProtocolError, match="STATE-006"):
        server.send_request("roots/list", request=new)
    server.send_request("roots/list", request=old)
    (asked,) = sent(server)
    assert asked["method"] == "roots/list"


def test_a_server_of_both_pings_nobody_before_a_handshake() -> None:
    """A client without a handshake may be modern, and then accepts no requests."""
    server = both()
    requested(server, modern(1, "tools/list"))
    with pytest.raises(LocalProtocolError, match="STATE-006"):
        server.ping()
    assert sent(server) == []


def test_answers_to_nothing_are_ignored() -> None:
    """A response that matches no request must not end any."""
    server = modern_server()
    request = requested(server, modern(1, "tools/list"))
    receive(server, result(1, {}), {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}})
    assert request.open
    assert server.send_result(request, {"tools": []})
    assert [message["id"] for message in sent(server)] == [1]


@pytest.mark.parametrize("revisions", [BOTH, [MODERN]])
def test_no_notification_to_a_modern_client_stands_alone(revisions: list[str]) -> None:
    """The error said that the notification "came before the handshake", which does not exist
    there."""
    server = modern_server(revisions=revisions)
    request = requested(server, modern(1, "tools/call", {"name": "t"}))
    with pytest.raises(LocalProtocolError, match="belongs to a request or to a subscr") as caught:
        server.send_notification("notifications/custom")
    assert caught.value.rule == "STATE-008"
    assert sent(server) == []
    server.send_notification("notifications/custom", request=request)
    assert sent(server) == [note("notifications/custom")]


def test_a_notification_to_a_modern_client_is_judged_by_its_revision() -> None:
    """It was judged as if a handshake were still missing."""
    server = both()
    with pytest.raises(LocalProtocolError, match="LIFE-001"):  # nobody has said anything yet
        server.send_notification("notifications/custom")
    requested(server, modern(1, "tools/call", {"name": "t"}))
    for method, rule in (
        ("notifications/tools/list_changed", "OWN-025"),
        ("notifications/tasks/status", "OWN-020"),
    ):
        with pytest.raises(LocalProtocolError, match=rule):
            server.send_notification(method)
    receive(server, initialize("hello", "2025-11-25"), INITIALIZED)
    sent(server)
    server.send_notification("notifications/custom")  # the handshake is with this client, too
    assert sent(server) == [note("notifications/custom")]


def test_notifications_of_extensions_are_delivered() -> None:
    """Unknown notifications may belong to an extension, in both eras."""
    server = modern_server()
    event = only(NotificationReceived, receive(server, note("x/y", {"a": 1})))
    assert (event.method, event.params) == ("x/y", {"a": 1})
    request = requested(server, modern(1, "tools/call", {"name": "t"}))
    server.send_notification("x/z", {"b": 2}, request=request)
    mixed = both("2025-11-25")
    request = requested(mixed, modern(1, "tools/call", {"name": "t"}))
    mixed.send_notification("x/z", {"b": 2}, request=request)
    assert sent(server) == sent(mixed) == [note("x/z", {"b": 2})]


@pytest.mark.parametrize(
    "message",
    [
        note("notifications/roots/list_changed"),
        note("notifications/message", {"level": "info", "data": 1}),
        note("notifications/subscriptions/acknowledged", {"notifications": {}}),
        note("notifications/tasks/status", {}),
    ],
)
def test_notifications_of_other_eras_and_sides_are_reported(message: Any) -> None:
    """They mean nothing from a modern client, and cannot be answered."""
    server = modern_server()
    assert broken(receive(server, message)) == ["OWN-020"]
    assert sent(server) == []


def test_unknown_methods_may_be_delivered_in_the_modern_era() -> None:
    """A gateway passes unknown methods on, whose envelope must be read all the same."""
    server = modern_server(capabilities={}, config=Config(unknown_methods="deliver"))
    unknown = requested(server, modern(1, "x/unknown"))
    undeclared = requested(server, modern(2, "tools/call", {"name": "t"}))
    assert unknown.revision == undeclared.revision == MODERN
    assert server.send_result(unknown, {"a": 1})
    assert server.send_result(undeclared, {"content": []})
    assert sent(server) == [complete(1, {"a": 1}), complete(2, {"content": []})]
    only(RequestReceived, receive(server, modern(3, "ping")))


def test_meta_is_read_in_the_middle_of_a_handshake() -> None:
    """An early request must be reported, and still have its progress token."""
    server = both()
    receive(server, initialize(1, "2025-11-25"))
    events = receive(server, call(2, "tools/list", {"_meta": {"progressToken": "t"}}))
    assert broken(events) == ["LIFE-004"]
    (event,) = of(RequestReceived, events)
    assert event.request.progress_token == "t"
    assert server.send_progress(event.request, 1)
    assert server.send_result(event.request, {"tools": []}, now=1.0)
    assert [message.get("id") for message in sent(server)] == [1, None, 2]


def test_unknown_notification_before_any_handshake_is_delivered() -> None:
    """It may belong to an extension of the modern era."""
    server = modern_server(revisions=BOTH)
    (event,) = receive(server, note("notifications/x", {"a": 1}))
    assert isinstance(event, NotificationReceived)


def test_initialize_is_a_handshake_whatever_its_meta_says() -> None:
    """A client may put its envelope into every request, `initialize` included."""
    server = both()
    message = initialize(1, "2025-06-18")
    message["params"]["_meta"] = envelope()
    assert broken(receive(server, message)) == []
    (answer,) = sent(server)
    assert answer["result"]["protocolVersion"] == "2025-06-18"
    assert "resultType" not in answer["result"]
