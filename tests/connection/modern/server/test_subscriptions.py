"""`subscriptions/listen` on a server: filters, the acknowledgement, and its endings."""

from typing import Any

import pytest

from sansmcp import (
    CancelCause,
    Config,
    ConnectionClosed,
    IncomingRequest,
    JSONObject,
    LimitReached,
    Listener,
    ListenerAdded,
    ListenerRemoved,
    LocalProtocolError,
    RequestCancelled,
    ServerConnection,
    State,
    ToolsListChanged,
)
from tests.support.modern import (
    BOTH,
    FILE,
    LISTEN,
    SERVED_BY,
    SUBSCRIPTION,
    WHOLE_FILTER,
    acknowledged,
    listen,
    modern,
    modern_server,
    requested,
)
from tests.support.wire import (
    SERVER_CAPABILITIES,
    broken,
    drain,
    error,
    note,
    of,
    only,
    receive,
    refusals,
    result,
    sent,
)

MANUAL = Config(manual={LISTEN})


def ended(id: object) -> list[JSONObject]:
    """Both forms in which a server ends a subscription."""
    meta = {SUBSCRIPTION: id, **SERVED_BY}
    return [
        result(id, {"resultType": "complete", "_meta": meta}),
        note("notifications/cancelled", {"requestId": id}),
    ]


def a_listener(server: ServerConnection, id: object = 1, filter: object = WHOLE_FILTER) -> Listener:
    (event,) = of(ListenerAdded, receive(server, listen(id, filter)))
    assert [message["method"] for message in sent(server)] == [
        "notifications/subscriptions/acknowledged"
    ]
    return event.listener


def waiting(server: ServerConnection, id: object = 1) -> IncomingRequest:
    """The request of a subscription that waits for the application's acknowledgement."""
    request = requested(server, listen(id, WHOLE_FILTER))
    assert sent(server) == []
    return request


# ---------------------------------------------------------------------------- acknowledgement


@pytest.mark.parametrize("id", [1, 0, "1", "", "caf\u00e9", 1.0, 2**53])
def test_a_subscription_is_acknowledged_under_its_id(id: object) -> None:
    """The id names the subscription, and must keep its JSON type."""
    server = modern_server()
    (event,) = of(ListenerAdded, receive(server, listen(id, WHOLE_FILTER)))
    (message,) = sent(server)
    assert message == acknowledged(id, WHOLE_FILTER)
    assert type(message["params"]["_meta"][SUBSCRIPTION]) is type(id)
    listener = event.listener
    assert server.listeners == (listener,)
    assert listener.open
    assert listener.honoured == WHOLE_FILTER
    assert listener.request.id == id
    assert server.open_requests == ()  # nobody is to answer it
    listener.data = "mine"
    assert "open=True" in repr(listener)


@pytest.mark.parametrize(
    ("capabilities", "asked", "honoured"),
    [
        (SERVER_CAPABILITIES, {}, {}),
        (SERVER_CAPABILITIES, {"toolsListChanged": False, "resourceSubscriptions": []}, {}),
        (SERVER_CAPABILITIES, {"x": True, "toolsListChanged": True}, {"toolsListChanged": True}),
        (
            SERVER_CAPABILITIES,
            {"resourceSubscriptions": [FILE, "b", FILE]},
            {"resourceSubscriptions": [FILE, "b"]},
        ),
        ({}, WHOLE_FILTER, {}),
        ({"tools": {}, "resources": {"subscribe": False}}, WHOLE_FILTER, {}),
        ({"prompts": {"listChanged": True}}, WHOLE_FILTER, {"promptsListChanged": True}),
        ({"resources": {"listChanged": True}}, WHOLE_FILTER, {"resourcesListChanged": True}),
        ({"resources": {"subscribe": True}}, WHOLE_FILTER, {"resourceSubscriptions": [FILE]}),
    ],
)
def test_what_is_declared_is_honoured(
    capabilities: JSONObject, asked: JSONObject, honoured: JSONObject
) -> None:
    """The client must learn which changes it will not get; unknown members are left out."""
    server = modern_server(capabilities=capabilities)
    (event,) = of(ListenerAdded, receive(server, listen(1, asked)))
    assert sent(server) == [acknowledged(1, honoured)]
    assert event.listener.honoured == honoured


@pytest.mark.parametrize(
    "asked",
    [
        None,
        5,
        [],
        {"toolsListChanged": 1},
        {"promptsListChanged": "yes"},
        {"resourceSubscriptions": FILE},
        {"resourceSubscriptions": [5]},
    ],
)
@pytest.mark.parametrize("config", [Config(), Config(check="none"), MANUAL])
def test_what_is_no_filter_is_refused(asked: Any, config: Config) -> None:
    """The library itself reads the filter, so it must be checked in every setting."""
    server = modern_server(config=config)
    assert broken(receive(server, listen(1, asked))) == ["OWN-014"]
    assert refusals(sent(server)) == [(1, -32602)]
    assert server.listeners == ()
    receive(server, modern(2, LISTEN))
    assert refusals(sent(server)) == [(2, -32602)]


def test_a_listener_keeps_of_its_request_what_it_needs() -> None:
    """Thousands of subscriptions may be open for days."""
    server = modern_server()
    asked = {"toolsListChanged": True}
    params = {"notifications": asked, "x": "x" * 1_000}
    receive(server, modern(1, LISTEN, params))
    (listener,) = server.listeners
    assert listener.request.params == {"notifications": asked}
    assert listener.request.revision == "2026-07-28"


# ---------------------------------------------------------------------------------- the ending


@pytest.mark.parametrize("id", [1, "1", 1.0])
def test_a_server_ends_a_subscription_in_both_forms(id: object) -> None:
    """Two pages of the specification demand one form each, and clients use the first."""
    server = modern_server()
    listener = a_listener(server, id)
    assert server.end_listener(listener, now=1.0)
    assert sent(server) == ended(id)
    assert not listener.open
    assert server.listeners == ()
    assert drain(server) == []
    assert server.publish(ToolsListChanged()) is False
    assert server.end_listener(listener) is False
    assert sent(server) == []
    a_listener(server, id)  # the id is free again


def test_a_server_without_a_name_ends_a_subscription_all_the_same() -> None:
    """The result must have the subscription's id even without server info."""
    server = modern_server(config=Config(send_info=False))
    server.end_listener(a_listener(server))
    answer, _ = sent(server)
    assert answer["result"]["_meta"] == {SUBSCRIPTION: 1}


def test_a_listener_belongs_to_its_connection() -> None:
    """Ids are equal on every connection, so a foreign handle must raise."""
    one, two = modern_server(), modern_server()
    listener, same_id = a_listener(one), a_listener(two)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        two.end_listener(listener)
    assert listener.open
    assert same_id.open


def test_a_client_ends_a_subscription_by_cancelling_it() -> None:
    """After the cancellation no message may be sent for it."""
    server = modern_server()
    listener, other = a_listener(server), a_listener(server, 2)
    cancelled = note("notifications/cancelled", {"requestId": 1, "reason": "bye"})
    event = only(ListenerRemoved, receive(server, cancelled))
    assert (event.listener, event.cause, event.reason) == (listener, CancelCause.PEER, "bye")
    assert not listener.open
    assert server.listeners == (other,)
    assert server.end_listener(listener) is False
    assert sent(server) == []
    assert server.publish(ToolsListChanged())
    (message,) = sent(server)
    assert message["params"]["_meta"] == {SUBSCRIPTION: 2}


def test_an_application_may_end_a_subscription_with_an_error() -> None:
    """The source of the changes may have failed."""
    server = modern_server()
    listener = a_listener(server)
    assert server.send_error(listener.request, -32603, "gone")
    assert sent(server) == [error(1, -32603, "gone")]
    assert server.listeners == ()
    assert server.publish(ToolsListChanged()) is False


def test_a_drain_does_not_wait_for_listeners() -> None:
    """Subscriptions never end by themselves, and the client has gone."""
    server = modern_server()
    listener = a_listener(server)
    server.receive_eof(drain=5, now=1.0)
    removed, closed = drain(server)
    assert isinstance(removed, ListenerRemoved)
    assert (removed.listener, removed.cause) == (listener, CancelCause.EOF)
    assert isinstance(closed, ConnectionClosed)
    assert sent(server) == []

    busy = modern_server()
    listener = a_listener(busy)
    request = requested(busy, modern(2, "tools/list"))
    busy.receive_eof(drain=5, now=1.0)
    assert only(ListenerRemoved, drain(busy)).listener is listener
    assert busy.state is State.DRAINING
    assert busy.publish(ToolsListChanged()) is False
    assert busy.send_result(request, {"tools": []})
    only(ConnectionClosed, drain(busy))
    assert [message["id"] for message in sent(busy)] == [2]


@pytest.mark.parametrize(
    ("how", "cause"), [("close", CancelCause.CLOSED), ("send_failed", CancelCause.SEND_FAILED)]
)
def test_other_ends_of_the_connection_end_listeners(how: str, cause: CancelCause) -> None:
    """Each subscription must have one ending; unacknowledged ones end as requests."""
    server = modern_server()
    listeners = (a_listener(server), a_listener(server, 2))
    getattr(server, how)()
    removed = of(ListenerRemoved, drain(server))
    assert tuple(event.listener for event in removed) == listeners
    assert {event.cause for event in removed} == {cause}
    assert server.end_listener(listeners[0]) is False

    manual = modern_server(config=MANUAL)
    request = waiting(manual)
    getattr(manual, how)()
    assert [event.request for event in of(RequestCancelled, drain(manual))] == [request]


def test_verbs_wake_who_writes() -> None:
    """Without `wake`, output would stay until the next input."""
    woken: list[int] = []
    server = ServerConnection(
        info={"name": "s", "version": "1"},
        capabilities=SERVER_CAPABILITIES,
        revisions=("2026-07-28",),
        config=MANUAL,
        wake=lambda: woken.append(1),
    )
    request = waiting(server)
    woken.clear()
    listener = server.acknowledge(request)
    assert listener is not None
    assert woken == [1]
    only(ListenerAdded, drain(server))
    assert len(sent(server)) == 1
    woken.clear()
    assert server.publish(ToolsListChanged())
    assert woken == [1]
    assert len(sent(server)) == 1
    assert server.end_listener(listener)
    assert woken == [1, 1]


# -------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("revisions", [("2026-07-28",), BOTH], ids=["modern", "both"])
def test_subscriptions_are_limited(revisions: tuple[str, ...]) -> None:
    """Subscriptions and their URIs must count until they end."""
    server = modern_server(revisions=revisions, config=Config(max_subscriptions=3))
    first = a_listener(server, 1, {"toolsListChanged": True})
    second = a_listener(server, 2, {"resourceSubscriptions": [FILE]})
    for id, filter in ((3, {}), (4, {"resourceSubscriptions": ["b"]})):
        only(LimitReached, [receive(server, listen(id, filter))[0]])
        (answer,) = sent(server)
        assert refusals([answer]) == [(id, -32603)]
        assert "3" in answer["error"]["data"]["reason"]
    assert server.listeners == (first, second)
    server.end_listener(second)
    sent(server)
    a_listener(server, 5, {"resourceSubscriptions": ["b"]})


def test_what_many_listen_to_counts_for_each() -> None:
    """Each subscription keeps its own list, so a shared URI must count for each."""
    server = modern_server(config=Config(max_subscriptions=5))
    for id in (1, 2):
        a_listener(server, id, {"resourceSubscriptions": [FILE]})
    receive(server, listen(3, {"resourceSubscriptions": [FILE]}))
    assert refusals(sent(server)) == [(3, -32603)]


def test_only_what_is_honoured_is_kept_of_a_filter() -> None:
    """A subscription may be open for long, so unknown members of its filter must be dropped."""
    server = modern_server(capabilities={"tools": {"listChanged": True}})
    wish = {"toolsListChanged": True, "resourceSubscriptions": [FILE], "more": ["x"]}
    listener = a_listener(server, 1, wish)
    assert listener.request.params == {"notifications": {"toolsListChanged": True}}


def test_long_uris_are_not_subscribed_to() -> None:
    """The table would keep a long URI as long as the subscription lasts."""
    server = modern_server()
    uri = "x" * 16_384
    a_listener(server, 1, {"resourceSubscriptions": [uri]})
    events = receive(server, listen(2, {"resourceSubscriptions": [FILE, uri + "x"]}))
    assert [event.rule for event in of(LimitReached, events)] == ["OWN-009"]
    assert refusals(sent(server)) == [(2, -32603)]
