"""`publish` on an endpoint reaches the clients that want a change, and costs nothing for others."""

import time
from typing import Any

import pytest

from sansmcp import LocalProtocolError, ResourceUpdated, ToolsListChanged
from tests.support.http.server_endpoint import Client, connect, new_endpoint, sessions
from tests.support.wire import call

FILE = "file:///a"


def subscribe(one: Client, uri: str = FILE) -> None:
    _, handle = one.asked(call(7, "resources/subscribe", {"uri": uri}))
    assert one.endpoint.send_result(handle, {})


def test_only_who_is_subscribed_is_told_of_a_resource() -> None:
    """A change that goes to every client would reveal the subscriptions of others."""
    endpoint = new_endpoint()
    one, other = connect(endpoint), connect(endpoint)
    subscribe(one)
    subscribe(other, "file:///b")
    streams = [client.get() for client in (one, other)]

    assert endpoint.publish(ResourceUpdated(FILE))

    told = [answer_of(stream) for stream in streams]
    assert [FILE in text for text in told] == [True, False]


def answer_of(stream: Any) -> str:
    data = b""
    while (output := stream.next_output()) is not None:
        data += getattr(output, "data", b"")
    return data.decode()


def test_who_is_not_subscribed_any_more_is_not_told() -> None:
    """A client that has unsubscribed, or whose session has ended, must get no update."""
    endpoint = new_endpoint()
    one, other = connect(endpoint), connect(endpoint)
    subscribe(one)
    subscribe(other)
    _, handle = one.asked(call(8, "resources/unsubscribe", {"uri": FILE}))
    endpoint.send_result(handle, {})
    assert endpoint.publish(ResourceUpdated(FILE))

    endpoint.end_session(other.session)

    assert not endpoint.publish(ResourceUpdated(FILE))
    assert endpoint.publish(ToolsListChanged())


def test_a_change_that_is_none_is_refused_whoever_is_there() -> None:
    """A mistake of the program must raise also without any subscriber."""
    wrong: Any = ResourceUpdated([])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # that is the mistake
    with pytest.raises(LocalProtocolError):
        new_endpoint().publish(wrong)


def test_a_change_costs_nothing_for_those_who_are_not_subscribed() -> None:
    """With ten thousand sessions, each change of one file would block the server."""

    def spent(others: int) -> float:
        endpoint = new_endpoint(sessions=sessions(event_log=None))
        clients = [connect(endpoint) for _ in range(1 + others)]
        subscribe(clients[0])
        found: list[float] = []
        for _ in range(9):
            start = time.process_time_ns()
            for _ in range(20):
                assert endpoint.publish(ResourceUpdated(FILE))
            found.append(time.process_time_ns() - start)
        return min(found)

    assert spent(600) < 10 * spent(3)
