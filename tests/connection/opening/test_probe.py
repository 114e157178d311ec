"""The probe of a client of both eras: which messages it sends, and in which order.

The meaning of each response to the probe is in `test_probe_answers`.
"""

from collections.abc import Callable, Iterable

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    ClientConnection,
    ConnectionFailed,
    FailureCause,
    LocalProtocolError,
    Phase,
    Ready,
)
from tests.support.modern import (
    BOTH,
    LEGACY,
    MODERN,
    VERSION,
    discovered,
    fallen_back,
    handshake,
    probing,
)
from tests.support.wire import (
    INITIALIZED,
    broken,
    call,
    error,
    new_client,
    note,
    of,
    only,
    receive,
    result,
    sent,
)

every_modern_client = pytest.mark.parametrize("revisions", [BOTH, MODERN_REVISIONS])


# ------------------------------------------------------------------------- nothing but the probe

EARLY: list[Callable[[ClientConnection], object]] = [
    lambda client: client.send_request("tools/list"),
    lambda client: client.send_request("x/y"),
    lambda client: client.send_paginated("tools/list"),
    lambda client: client.listen({}),
    lambda client: client.send_notification("x/y"),
    lambda client: client.ping(),
]


@every_modern_client
@pytest.mark.parametrize("verb", EARLY)
def test_nothing_goes_out_before_the_probe(
    revisions: Iterable[str], verb: Callable[[ClientConnection], object]
) -> None:
    """A server of unknown era might react to another message (COMPAT-001)."""
    client = new_client(revisions=revisions)
    with pytest.raises(LocalProtocolError):
        verb(client)
    assert sent(client) == []
    client.start()
    assert [message["method"] for message in sent(client)] == ["server/discover"]


@every_modern_client
@pytest.mark.parametrize("verb", EARLY)
def test_nothing_goes_out_behind_the_probe(
    revisions: Iterable[str], verb: Callable[[ClientConnection], object]
) -> None:
    """Until the probe is answered, the form of further messages is unknown."""
    client = probing(revisions)
    with pytest.raises(LocalProtocolError):
        verb(client)
    assert sent(client) == []
    only(Ready, receive(client, result(1, discovered())))


@every_modern_client
def test_what_the_server_says_unasked_does_not_disturb_the_probe(
    revisions: Iterable[str],
) -> None:
    """Some servers send messages first, which must be neither answered nor taken for a response."""
    client = probing(revisions)
    events = receive(
        client,
        b"Server 1.0 listening\n",
        note("notifications/message", {"level": "info", "data": "hello"}),
        note("notifications/tools/list_changed"),
        call(1, "ping"),
        call("a", "roots/list"),
        result(7, {}),
    )
    assert not of(ConnectionFailed, events)
    assert not of(Ready, events)
    assert broken(events).count("STATE-006") == 2
    assert client.phase is Phase.PROBING
    assert sent(client) == []
    only(Ready, receive(client, result(1, discovered())))


def test_start_is_made_once() -> None:
    """With two probes it would be unclear which response counts."""
    client = probing()
    with pytest.raises(LocalProtocolError, match="LIFE-001"):
        client.start()
    receive(client, result(1, discovered()))
    with pytest.raises(LocalProtocolError, match="LIFE-001"):
        client.start()
    assert sent(client) == []


def test_start_that_failed_is_over() -> None:
    """A further attempt needs a new connection."""
    client = probing(MODERN_REVISIONS)
    assert len(receive(client, error(1, -32601))) == 2
    with pytest.raises(LocalProtocolError, match="OWN-021"):
        client.start()


# --------------------------------------------------------------------------------- the two tries


def test_handshake_says_what_a_handshake_says() -> None:
    """`initialize` must have no envelope, but the caller's `meta`."""
    client = new_client(revisions=BOTH)
    client.start(meta={"traceparent": "00-1-2-01"}, data="mine")
    (probe,) = sent(client)
    assert probe["params"]["_meta"]["traceparent"] == "00-1-2-01"
    assert probe["params"]["_meta"][VERSION] == MODERN
    receive(client, error(1, -32601))
    (message,) = sent(client)
    assert message["params"]["_meta"] == {"traceparent": "00-1-2-01"}
    ready = only(Ready, receive(client, result(2, handshake())))
    assert ready.start is not None
    assert (ready.start.data, ready.start.open) == ("mine", False)
    assert sent(client) == [INITIALIZED]


@pytest.mark.parametrize("newest", ["2025-03-26", "2025-11-25"])
def test_newest_common_revision_is_offered(newest: str) -> None:
    """The server's error names its revisions, of which the newest common one must be used."""
    supported = ["1999-01-01", "2024-11-05", newest]
    refused = error(1, -32022, data={"supported": supported, "requested": MODERN})
    for answer in (refused, result(1, discovered(versions=supported))):
        client = probing()
        receive(client, answer)
        (message,) = sent(client)
        assert message["params"]["protocolVersion"] == newest


def test_refused_revision_is_not_tried_again() -> None:
    """c228: a refused revision must not be repeated even if the list names it."""
    client = probing()
    supported = [MODERN, "2025-06-18"]
    receive(client, error(1, -32022, data={"supported": supported, "requested": MODERN}))
    (message,) = sent(client)
    assert message["method"] == "initialize"
    assert message["params"]["protocolVersion"] == "2025-06-18"


def test_revision_that_was_not_refused_is_tried_once() -> None:
    """c227: a server may misread the requested revision, each time."""
    client = probing()
    data = {"supported": ["2030-01-01", MODERN], "requested": "x"}
    assert receive(client, error(1, -32022, data=data)) == []
    (again,) = sent(client)
    assert (again["id"], again["method"]) == (2, "server/discover")
    assert again["params"]["_meta"][VERSION] == MODERN
    assert of(ConnectionFailed, receive(client, error(2, -32022, data=data)))
    assert sent(client) == []


def test_no_common_revision_names_what_the_server_speaks() -> None:
    """The user has to know which side to update."""
    client = probing((LEGACY, MODERN))
    data = {"supported": ["2024-11-05"], "requested": MODERN}
    failed, _ = receive(client, error(1, -32022, data=data))
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.UNSUPPORTED_REVISION
    assert "2024-11-05" in failed.text
    assert (failed.code, failed.message, failed.data) == (-32022, "no", data)


def test_required_capabilities_hold_in_both_eras() -> None:
    """A server with the required capabilities must be accepted in each era."""
    for answer in (result(1, discovered({"tools": {}})), error(1, -32601)):
        client = new_client(revisions=BOTH, requires=["tools"])
        client.start()
        receive(client, answer)
        if client.phase is Phase.NEGOTIATING:
            (failed, _) = receive(client, result(2, handshake()))
            assert isinstance(failed, ConnectionFailed)
            assert failed.cause is FailureCause.MISSING_CAPABILITY
        else:
            assert client.phase is Phase.OPERATING


def test_ping_is_one_of_the_handshake() -> None:
    """Once the server is known to be legacy, both sides may ping."""
    client = fallen_back()
    client.ping()
    receive(client, call(1, "ping"))
    assert sent(client) == [call(3, "ping"), result(1, {})]


def test_no_envelope_follows_a_handshake() -> None:
    """A legacy server knows neither the envelope nor `resultType`."""
    client = fallen_back()
    receive(client, result(2, {**handshake(), "capabilities": {"tools": {}}}))
    sent(client)
    client.send_request("tools/list", log_level="debug")
    assert sent(client) == [call(3, "tools/list")]
    events = receive(client, result(3, {"tools": [], "resultType": "task"}))
    assert broken(events) == []
    with pytest.raises(LocalProtocolError, match="OWN-020"):
        client.listen({})


# ------------------------------------------------------------------------------------------ hints


@pytest.mark.parametrize("known", [MODERN, "2025-06-18"])
def test_outcome_is_the_hint_for_the_next_time(known: str) -> None:
    """A server process is started many times, but its era must be found out once only (VER-015)."""
    first = probing()
    if known == MODERN:
        (ready,) = receive(first, result(1, discovered()))
    else:
        receive(first, error(1, -32601))
        (ready,) = receive(first, result(2, handshake(known)))
    assert isinstance(ready, Ready)
    assert ready.revision == ready.peer.revision == first.revision == known
    second = new_client(revisions=BOTH)
    second.start(hint=ready.revision)
    (message,) = sent(second)
    assert message["method"] == ("server/discover" if known == MODERN else "initialize")


def test_wrong_hint_costs_no_connection_where_it_can_be_helped() -> None:
    """A server that was replaced by an older one must still be opened."""
    client = probing(hint=MODERN)
    receive(client, error(1, -32601))
    (message,) = sent(client)
    assert message["method"] == "initialize"


def test_wrong_hint_fails_where_it_cannot_be_helped() -> None:
    """A server that was replaced by a newer one fails the start, which the caller repeats
    without the hint."""
    client = new_client(revisions=BOTH)
    client.start(hint=LEGACY)
    sent(client)
    failed, _ = receive(client, error(1, -32601, "no handshake here"))
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.REFUSED
    assert "no handshake here" in failed.text


@pytest.mark.parametrize("known", ["2024-11-05", "2025-06-18"])
def test_hint_of_a_revision_that_is_not_spoken_keeps_the_way_back(known: str) -> None:
    """With such a hint the probe may get no response, and the handshake must follow."""
    client = probing((LEGACY, MODERN), hint=known, timeout=30, probe_timeout=3, now=0)
    assert client.next_timeout() == 3
    client.handle_timeout(3)
    (message,) = sent(client)
    assert message["method"] == "initialize"
    assert message["params"]["protocolVersion"] == LEGACY
