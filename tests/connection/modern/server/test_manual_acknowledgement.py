"""`Config.manual` for `subscriptions/listen`: the application acknowledges, or refuses."""

import pytest

from sansmcp import (
    Config,
    IncomingRequest,
    JSONObject,
    Listener,
    ListenerAdded,
    LocalProtocolError,
    RequestCancelled,
    ServerConnection,
    ToolsListChanged,
)
from tests.support.modern import (
    FILE,
    LISTEN,
    WHOLE_FILTER,
    acknowledged,
    listen,
    modern,
    modern_server,
    requested,
)
from tests.support.wire import (
    drain,
    error,
    note,
    only,
    receive,
    sent,
)

MANUAL = Config(manual={LISTEN})


def waiting(server: ServerConnection, id: object = 1) -> IncomingRequest:
    """The request of a subscription that waits for the application's acknowledgement."""
    request = requested(server, listen(id, WHOLE_FILTER))
    assert sent(server) == []
    return request


def test_the_application_may_acknowledge() -> None:
    """The application may have to check the caller, or subscribe elsewhere, before it
    acknowledges."""
    server = modern_server(config=MANUAL)
    request = waiting(server)
    assert not server.listeners
    assert server.open_requests == (request,)
    listener = server.acknowledge(request, now=1.0)
    assert isinstance(listener, Listener)
    assert only(ListenerAdded, drain(server)).listener is listener
    assert server.listeners == (listener,)
    assert sent(server) == [acknowledged(1, WHOLE_FILTER)]


@pytest.mark.parametrize(
    ("wish", "honoured"),
    [
        ({}, {}),
        ({"toolsListChanged": True}, {"toolsListChanged": True}),
        ({"toolsListChanged": False, "promptsListChanged": True}, {"promptsListChanged": True}),
        ({"resourceSubscriptions": ["b", FILE]}, {"resourceSubscriptions": [FILE]}),
        ({"resourceSubscriptions": ["b"]}, {}),
        ({**WHOLE_FILTER, "x": True}, WHOLE_FILTER),
    ],
)
def test_the_application_may_serve_less(wish: JSONObject, honoured: JSONObject) -> None:
    """The acknowledgement may grant less than the request, but never more."""
    server = modern_server(config=MANUAL)
    listener = server.acknowledge(waiting(server), wish)
    assert listener is not None
    assert listener.honoured == honoured
    assert sent(server) == [acknowledged(1, honoured)]
    assert server.publish(ToolsListChanged()) is ("toolsListChanged" in honoured)


def test_the_application_may_refuse() -> None:
    """An error must answer the request, and no part of the subscription stay."""
    server = modern_server(config=MANUAL)
    request = waiting(server)
    assert server.send_error(request, -32603, "no")
    assert sent(server) == [error(1, -32603)]
    assert drain(server) == []
    assert server.listeners == ()
    assert server.publish(ToolsListChanged()) is False
    assert server.acknowledge(request) is None


def test_what_waits_for_nothing_cannot_be_acknowledged() -> None:
    """A second acknowledgement must raise."""
    server = modern_server(config=MANUAL)
    request = waiting(server)
    server.acknowledge(request)
    other = requested(server, modern(2, "tools/list"))
    sent(server)
    for wrong in (request, other):
        with pytest.raises(LocalProtocolError, match="SUBS-004"):
            server.acknowledge(wrong)
    twin = modern_server(config=MANUAL)
    with pytest.raises(LocalProtocolError, match="SUBS-004"):
        server.acknowledge(waiting(twin))
    assert sent(server) == []


@pytest.mark.parametrize("wish", [{"toolsListChanged": 1}, {"resourceSubscriptions": FILE}])
def test_an_acknowledgement_has_a_valid_filter(wish: JSONObject) -> None:
    """An invalid filter must raise, and the request stay open."""
    server = modern_server(config=MANUAL)
    request = waiting(server)
    with pytest.raises(LocalProtocolError, match="OWN-014"):
        server.acknowledge(request, wish)
    assert request.open
    assert sent(server) == []
    assert server.acknowledge(request) is not None


def test_verbs_for_other_requests_are_not_for_subscriptions() -> None:
    """The acknowledgement must come first, and the result that ends a subscription has its tag."""
    server = modern_server(config=MANUAL)
    for acknowledge in (False, True):
        request = waiting(server, f"{acknowledge}")
        if acknowledge:
            server.acknowledge(request)
            sent(server)
        with pytest.raises(LocalProtocolError, match=r"acknowledge\(\).*OWN-025"):
            server.send_result(request, {})
        with pytest.raises(LocalProtocolError, match="MRTR-003"):
            server.require_input(request, state="s")
        with pytest.raises(LocalProtocolError, match=r"acknowledge\(\).*OWN-025"):
            server.send_notification(
                "notifications/subscriptions/acknowledged", {"notifications": {}}, request=request
            )
        assert request.open
    assert sent(server) == []


def test_a_cancelled_request_cannot_be_acknowledged() -> None:
    """The client may have cancelled while the application was working."""
    server = modern_server(config=MANUAL)
    request = waiting(server)
    gone = receive(server, note("notifications/cancelled", {"requestId": 1, "reason": "bye"}))
    event = only(RequestCancelled, gone)
    assert (event.request, event.reason) == (request, "bye")
    assert server.acknowledge(request) is None
    assert server.listeners == ()
    assert server.publish(ToolsListChanged()) is False
    assert sent(server) == []
