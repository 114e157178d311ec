"""`wake` is called once when there is work, and never within itself."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from sansmcp import ClientConnection, Config, ServerConnection, ToolsListChanged
from sansmcp.testing import drain
from tests.support.wire import (
    CLIENT_INFO,
    INITIALIZED,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    call,
    initialize,
    initialized_by,
    note,
    receive,
    result,
    sent,
    wire,
)

REVISION = "2025-11-25"


@attrs.define
class Bell:
    """Counts the calls of `wake` since it was last asked."""

    rings: int = 0

    def ring(self) -> None:
        self.rings += 1

    def heard(self) -> int:
        rings, self.rings = self.rings, 0
        return rings


def rung_server(config: Config | None = None) -> tuple[ServerConnection, Bell]:
    """A ready server without events and output."""
    bell = Bell()
    server = ServerConnection(
        info=SERVER_INFO, capabilities=SERVER_CAPABILITIES, config=config, wake=bell.ring
    )
    receive(server, initialize("hello", REVISION), now=0)
    receive(server, INITIALIZED)
    sent(server)
    bell.heard()
    return server, bell


def test_output_where_there_was_none_rings_once() -> None:
    """The first output must wake the writer; further output need not."""
    server, bell = rung_server()
    server.send_notification("notifications/x")
    assert bell.heard() == 1
    server.send_notification("notifications/x")
    assert bell.heard() == 0


@pytest.mark.parametrize("take", ["data_to_send", "buffers_to_send", "messages_to_send"])
def test_output_after_all_was_taken_rings_again(take: str) -> None:
    """A writer that waits must not miss the next message, however it takes output."""
    server, bell = rung_server()
    for waiting in (1, 2, 1):
        for _ in range(waiting):
            server.send_notification("notifications/x")
        assert bell.heard() == 1
        assert getattr(server, take)()
        assert bell.heard() == 0


def test_an_event_where_there_was_none_rings_once() -> None:
    """The first event must wake the caller, and again after all were taken."""
    server, bell = rung_server()
    for _ in range(2):
        server.receive_data(wire(note("notifications/x")) * 3)
        assert bell.heard() == 1
        server.receive_data(wire(note("notifications/x")))
        assert bell.heard() == 0
        assert len(drain(server)) == 4


def test_an_event_while_others_wait_does_not_ring() -> None:
    """A caller that was woken takes all events, so one call is enough."""
    server, bell = rung_server()
    server.receive_data(wire(note("notifications/x")) * 2)
    bell.heard()
    server.next_event()
    server.receive_data(wire(note("notifications/x")))

    assert bell.heard() == 0


def test_an_earlier_deadline_rings_and_a_later_one_does_not() -> None:
    """A caller that sleeps until the earliest deadline must only learn of earlier ones."""
    server, bell = rung_server()
    server.ping(timeout=50)
    sent(server)
    assert bell.heard() == 1
    server.ping(timeout=60)
    assert bell.heard() == 1  # for the output
    sent(server)
    for timeout, rings in ((40, 1), (45, 0), (30, 1)):
        server.send_notification("notifications/x")
        bell.heard()
        server.ping(timeout=timeout)
        assert bell.heard() == rings
        sent(server)


VERBS: dict[str, Callable[[ServerConnection], object]] = {
    "receive_message": lambda server: server.receive_message(b"{}"),
    "receive_eof": lambda server: server.receive_eof(),
    "send_failed": lambda server: server.send_failed(),
    "close": lambda server: server.close(),
    "ping": lambda server: server.ping(),
    "send_request": lambda server: server.send_request("roots/list"),
    "send_log": lambda server: server.send_log("info", "text"),
    "handle_timeout": lambda server: server.handle_timeout(10),
    "send_paginated": lambda server: server.send_paginated("tasks/list"),
    "send_result": lambda server: server.send_result(server.open_requests[0], {"tools": []}),
    "send_error": lambda server: server.send_error(server.open_requests[0], 1, "no"),
    "send_progress": lambda server: server.send_progress(server.open_requests[0], 1),
    "cancel": lambda server: server.cancel(server.pending_requests[0]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_way_in_rings_where_it_has_made_something_to_do(verb: str) -> None:
    """A verb that forgot to wake would leave an adapter asleep."""
    bell = Bell()
    server = ServerConnection(info=SERVER_INFO, capabilities=SERVER_CAPABILITIES, wake=bell.ring)
    tasks: dict[str, Any] = {"tasks": {"list": {}}, "roots": {}}
    receive(server, initialize("hello", REVISION, tasks), INITIALIZED, now=0)
    server.send_request("roots/list", timeout=10)
    receive(server, call(1, "tools/list", {"_meta": {"progressToken": 1}}))
    sent(server)
    bell.heard()
    VERBS[verb](server)

    assert bell.heard() == 1
    assert server.data_to_send() or drain(server)


def test_published_changes_ring_now_or_when_they_follow() -> None:
    """A held change must wake the caller when output is taken."""
    server, bell = rung_server(Config(soft_unsent_bytes=50))
    server.publish(ToolsListChanged())
    assert bell.heard() == 1
    sent(server)
    server.send_notification("notifications/x", {"text": "x" * 50})
    assert bell.heard() == 1
    server.publish(ToolsListChanged())
    assert bell.heard() == 0
    assert len(sent(server)) == 1

    assert bell.heard() == 1
    assert len(sent(server)) == 1


def test_a_client_rings_from_its_start_on() -> None:
    """The first message of a client must wake its writer."""
    bell = Bell()
    client = ClientConnection(info=CLIENT_INFO, wake=bell.ring)
    client.start(timeout=5, now=0)
    assert bell.heard() == 1
    sent(client)
    client.receive_data(wire(result(1, initialized_by(REVISION))))

    assert bell.heard() == 1


def test_it_is_never_called_within_itself() -> None:
    """A caller that takes all output within `wake` must not be entered twice."""
    depths: list[int] = []
    seen: list[Any] = []

    def woken() -> None:
        depths.append(len(depths) - len(seen))
        seen.extend(sent(server))
        drain(server)
        server.send_notification("notifications/from/wake")
        seen.extend(sent(server))
        seen.append(None)

    server = ServerConnection(info=SERVER_INFO, wake=woken)
    server.receive_data(wire(initialize("hello", REVISION), INITIALIZED))

    assert len(depths) == 1
    assert [message["method"] for message in seen if message and "method" in message] == [
        "notifications/from/wake"
    ]


def test_what_it_leaves_undone_rings_again_after_it() -> None:
    """A message that is queued within `wake` and not taken there must not be forgotten."""
    rings: list[int] = []

    def woken() -> None:
        rings.append(1)
        sent(server)
        drain(server)
        if len(rings) == 1:
            server.send_notification("notifications/from/wake")

    server = ServerConnection(info=SERVER_INFO, wake=woken)
    server.receive_data(wire(initialize("hello", REVISION), INITIALIZED))

    assert len(rings) == 2
    assert sent(server) == []


def test_an_exception_in_it_reaches_the_caller_and_disables_nothing() -> None:
    """A bug in an adapter must be raised each time, and not be swallowed."""

    def woken() -> None:
        raise OSError("broken adapter")

    server = ServerConnection(info=SERVER_INFO, wake=woken)
    for _ in range(2):
        with pytest.raises(OSError, match="broken adapter"):
            server.receive_data(wire(initialize("hello", REVISION)))
        assert drain(server)
        server.data_to_send()
