"""The compatibility matrix: clients of one era and of both, with servers of each kind.

All connections are our own, in memory. Source: MCP 2026-07-28, basic/versioning, Compatibility
Matrix. Rules: VER-010 to VER-016, COMPAT-001 to COMPAT-003.
"""

import json
from typing import Any, Final

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ConnectionClosed,
    ConnectionFailed,
    FailureCause,
    InputRequired,
    NotificationReceived,
    ProgressReceived,
    Ready,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    Side,
    State,
    ToolsListChanged,
)
from sansmcp.testing import Pair
from tests.support.modern import BOTH, EVERYTHING, LEGACY, MODERN, ROOTS
from tests.support.wire import SAMPLED, SAMPLING, broken, new_client, new_server, of

SPEAKS: Final = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS, "dual-era": BOTH}

WORKS: Final = [
    ("modern", "modern", MODERN),
    ("modern", "dual-era", MODERN),
    ("dual-era", "modern", MODERN),
    ("dual-era", "dual-era", MODERN),
    ("dual-era", "legacy", LEGACY),
    ("legacy", "dual-era", LEGACY),
    ("legacy", "legacy", LEGACY),
]
FAILS: Final = [("modern", "legacy"), ("legacy", "modern")]

SAMPLE: Final = {"method": "sampling/createMessage", "params": SAMPLING}
GIVEN: Final[dict[str, Any]] = {"roots/list": {"roots": []}, "sampling/createMessage": SAMPLED}

every_cell_that_works = pytest.mark.parametrize(("client", "server", "revision"), WORKS)


def pair_of(client: str, server: str, *, connected: bool = True) -> Pair:
    return Pair(
        new_client(revisions=SPEAKS[client], capabilities=EVERYTHING),
        new_server(revisions=SPEAKS[server]),
        connected=connected,
    )


def methods_sent(pair: Pair, side: Side) -> list[str]:
    messages = [json.loads(data) for sender, data in pair.transcript if sender is side]
    return [message["method"] for message in messages if "method" in message]


def test_every_cell_is_here() -> None:
    """Each combination of the matrix must be tested."""
    cells = [cell[:2] for cell in WORKS] + FAILS
    assert sorted(cells) == sorted((client, server) for client in SPEAKS for server in SPEAKS)


# -------------------------------------------------------------------------------------- opening


@every_cell_that_works
def test_both_agree_on_the_revision(client: str, server: str, revision: str) -> None:
    """Both must use the newest common revision, and the newer era where both are possible."""
    pair = pair_of(client, server, connected=False)
    pair.client.start()
    pair.deliver()
    assert pair.client.revision == revision
    assert [event.revision for event in of(Ready, pair.client_events)] == [revision]
    assert of(ConnectionFailed, pair.client_events) == []
    assert broken(pair.client_events) == broken(pair.server_events) == []
    opening = methods_sent(pair, Side.CLIENT)
    assert ("initialize" in opening) == (revision == LEGACY)
    assert ("server/discover" in opening) == (client != "legacy")


@pytest.mark.parametrize(("client", "server"), FAILS)
def test_what_cannot_work_fails_and_says_why(client: str, server: str) -> None:
    """The start must fail at once with the revisions of the server, and no tool be called."""
    pair = pair_of(client, server, connected=False)
    pair.client.start()
    pair.deliver()
    failed, closed = pair.client_events
    assert isinstance(failed, ConnectionFailed)
    assert isinstance(closed, ConnectionClosed)
    assert failed.cause is FailureCause.REFUSED
    assert failed.code is not None
    assert SPEAKS[server][-1] in failed.text
    assert of(RequestReceived, pair.server_events) == []
    assert pair.server.state is State.OPEN
    first = "server/discover" if client == "modern" else "initialize"
    assert methods_sent(pair, Side.CLIENT) == [first]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("server_is_dual", [True, False])
def test_old_revisions_meet_dual_eras(revision: str, server_is_dual: bool) -> None:
    """A side with old revisions only must work with a newer peer of both eras."""
    one, both = (revision,), SPEAKS["dual-era"]
    pair = Pair(
        new_client(revisions=one if server_is_dual else both),
        new_server(revisions=both if server_is_dual else one),
    )
    assert pair.client.revision == pair.server.revision == revision


@pytest.mark.parametrize("client", ["modern", "dual-era"])
def test_silent_server_of_the_older_era(client: str) -> None:
    """A modern client must give up in time, and one of both eras do the handshake."""
    pair = pair_of(client, "legacy", connected=False)
    pair.client.start(timeout=30, probe_timeout=3, now=0)
    pair.to_server.drop_message()
    pair.advance(3)
    pair.deliver()
    pair.advance(27)
    if client == "dual-era":
        assert pair.client.revision == LEGACY
        assert of(ConnectionFailed, pair.client_events) == []
    else:
        (failed,) = of(ConnectionFailed, pair.client_events)
        assert failed.cause is FailureCause.TIMED_OUT


# --------------------------------------------------------------------------------------- at work


@every_cell_that_works
def test_calls_progress_and_cancellation(client: str, server: str, revision: str) -> None:
    """The verbs, and the events on the other side, must be the same in both eras."""
    pair = pair_of(client, server)
    call = pair.client.send_request("tools/call", {"name": "t"}, progress=True)
    request = pair.deliver_one(RequestReceived).request
    assert (request.revision, request.peer_capabilities) == (revision, EVERYTHING)
    assert pair.server.send_progress(request, 1)
    assert pair.deliver_one(ProgressReceived).request is call
    assert pair.server.send_result(request, {"content": []})
    assert pair.deliver_one(ResponseReceived).request is call
    call = pair.client.send_request("tools/call", {"name": "t"})
    request = pair.deliver_one(RequestReceived).request
    assert pair.client.cancel(call)
    assert pair.deliver_one(RequestCancelled).request is request
    assert pair.server.send_result(request, {"content": []}) is False
    assert broken(pair.client_events) == broken(pair.server_events) == []


@every_cell_that_works
def test_listings_come_in_pages(client: str, server: str, revision: str) -> None:
    """A listing must work page by page in both eras."""
    pair = pair_of(client, server)
    listing = pair.client.send_paginated("tools/list")
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    for cursor in ("next", None):
        request = pair.deliver_one(RequestReceived).request
        assert request.revision == revision
        more = {} if cursor is None else {"nextCursor": cursor}
        pair.server.send_result(request, {"tools": [tool], **more})
    pair.deliver()
    assert (listing.open, listing.pages, listing.items) == (False, 2, 2)


@every_cell_that_works
def test_questions_of_the_server(client: str, server: str, revision: str) -> None:
    """One handler of the server, and one of the client, must serve both eras."""
    pair = pair_of(client, server)
    call = pair.client.send_request("tools/call", {"name": "t"})
    request = pair.deliver_one(RequestReceived).request
    pair.server.require_input(request, {"r": ROOTS, "s": SAMPLE}, state="kept")
    if revision == MODERN:
        questions = pair.deliver_one(InputRequired).questions
        given = {key: GIVEN[question["method"]] for key, question in questions.items()}
        call = pair.client.provide_input(call, given)
        assert methods_sent(pair, Side.SERVER) == []
    else:
        pair.deliver()
        for event in of(RequestReceived, pair.client_events):
            pair.client.send_result(event.request, GIVEN[event.request.method])
    again = pair.deliver_one(RequestReceived, Side.SERVER).request
    assert again is not request
    assert again.input_responses == {"r": {"roots": []}, "s": SAMPLED}
    assert pair.server.read_state(again) == "kept"
    pair.server.send_result(again, {"content": []})
    assert pair.deliver_one(ResponseReceived).request is call


@every_cell_that_works
def test_changes_are_told(client: str, server: str, revision: str) -> None:
    """One `publish` must serve both eras; a modern client has to subscribe first."""
    pair = pair_of(client, server)
    subscription = None
    if revision == MODERN:
        assert not pair.server.publish(ToolsListChanged())
        subscription = pair.client.listen({"toolsListChanged": True})
        pair.deliver()
        pair.clear_events()
    assert pair.server.publish(ToolsListChanged())
    told = pair.deliver_one(NotificationReceived)
    assert (told.method, told.subscription) == ("notifications/tools/list_changed", subscription)


@every_cell_that_works
def test_both_come_to_an_end(client: str, server: str, revision: str) -> None:
    """The end of the stream must end the connection in either era."""
    pair = pair_of(client, server)
    pair.client.send_request("tools/call", {"name": "t"})
    request = pair.deliver_one(RequestReceived).request
    assert request.revision == revision
    pair.to_server.end()
    pair.deliver()
    assert of(RequestCancelled, pair.server_events)[0].request is request
    assert pair.server.state is State.CLOSED
