"""The time limits of an opening, and its failure when they have passed."""

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    ClientConnection,
    CloseCause,
    ConnectionClosed,
    ConnectionFailed,
    ErrorWithoutIdReceived,
    FailureCause,
    JSONObject,
    LocalProtocolError,
    MessageIgnored,
    Phase,
    Ready,
    State,
)
from tests.support.modern import BOTH, LEGACY, MODERN, discovered, fallen_back, handshake, probing
from tests.support.wire import (
    SERVER_INFO,
    drain,
    error,
    new_client,
    of,
    only,
    receive,
    result,
    sent,
)


def failure(client: ClientConnection) -> ConnectionFailed:
    """The failure of the start; asserts that the connection has ended."""
    failed, closed = drain(client)
    assert isinstance(failed, ConnectionFailed)
    assert isinstance(closed, ConnectionClosed)
    return failed


# --------------------------------------------------------------------------------------- the time


def test_time_of_the_start_is_for_both_tries_together() -> None:
    """A caller that allows ten seconds must not wait for the probe and the handshake in
    addition."""
    client = probing(timeout=10, probe_timeout=9, now=100)
    assert client.next_timeout() == 109
    receive(client, error(1, -32601), now=108)
    assert client.next_timeout() == 110
    client.handle_timeout(110)
    assert failure(client).cause is FailureCause.TIMED_OUT


@pytest.mark.parametrize("probe_timeout", [None, 10, 20])
def test_no_second_try_without_time_for_it(probe_timeout: float | None) -> None:
    """The response to a handshake could not come before the limit."""
    client = probing(timeout=10, probe_timeout=probe_timeout, now=100)
    client.handle_timeout(110)
    assert sent(client) == []
    assert failure(client).cause is FailureCause.TIMED_OUT


def test_refusal_that_comes_too_late_leads_to_no_second_try() -> None:
    """The limit has passed, though no timer has fired yet."""
    client = probing(timeout=10, now=100)
    failed, _ = receive(client, error(1, -32601), now=111)
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.TIMED_OUT
    assert sent(client) == []


def test_answer_before_the_timer_fires_wins() -> None:
    """Timers must fire in `handle_timeout` only."""
    client = probing(timeout=10, probe_timeout=3, now=100)
    only(Ready, receive(client, result(1, discovered()), now=200))
    client.handle_timeout(200)
    assert client.next_timeout() is None
    assert drain(client) == []


def test_probe_has_a_time_of_its_own() -> None:
    """c225: a start without a limit must still leave the probe after its own."""
    client = probing(probe_timeout=3, now=0)
    client.handle_timeout(2.9)
    assert sent(client) == []
    client.handle_timeout(3)
    (message,) = sent(client)  # and no cancellation
    assert message["method"] == "initialize"
    assert client.next_timeout() is None
    ignored = only(MessageIgnored, receive(client, error(1, -32601, "late")))
    assert (ignored.rule, ignored.id) == ("CANC-011", 1)
    only(Ready, receive(client, result(2, handshake())))


def test_probe_of_a_client_of_one_era_has_all_the_time() -> None:
    """Such a client has no handshake to try after a silence."""
    client = probing(MODERN_REVISIONS, probe_timeout=3, now=0)
    assert client.next_timeout() is None
    client = probing(MODERN_REVISIONS, probe_timeout=3, timeout=5, now=0)
    client.handle_timeout(5)
    assert failure(client).cause is FailureCause.TIMED_OUT
    assert sent(client) == []


@pytest.mark.parametrize(
    "options", [{"timeout": 5}, {"probe_timeout": 5}, {"probe_timeout": 0, "now": 1}]
)
def test_times_need_a_clock_and_a_length(options: Any) -> None:
    """The call must raise without sending, so that it can be repeated."""
    client = new_client(revisions=BOTH)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        client.start(**options)
    assert sent(client) == []
    client.start(timeout=5, now=1)
    assert len(sent(client)) == 1


# --------------------------------------------------------------------------- what comes too late


@pytest.mark.parametrize(
    "late",
    [
        result(1, discovered()),
        error(1, -32022, data={"supported": [MODERN], "requested": MODERN}),
        error(1, -32601),
        result(1, {}),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_late_answer_to_the_probe_changes_nothing(late: JSONObject, is_open: bool) -> None:
    """The handshake has begun or is done, so the era is fixed."""
    client = probing(probe_timeout=3, now=0)
    client.handle_timeout(3)
    sent(client)
    if is_open:
        only(Ready, receive(client, result(2, handshake())))
        sent(client)
    phase = client.phase
    assert only(MessageIgnored, receive(client, late)).rule == "CANC-011"
    assert client.phase is phase
    if not is_open:
        only(Ready, receive(client, result(2, handshake())))
    assert client.revision == LEGACY


def test_nameless_error_counts_while_the_probe_is_alone() -> None:
    """Later, an error without an id may be about another message."""
    nameless = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "what?"}}
    client = fallen_back()
    only(ErrorWithoutIdReceived, receive(client, nameless))
    assert client.phase is Phase.NEGOTIATING
    client = probing()
    receive(client, result(1, discovered()))
    only(ErrorWithoutIdReceived, receive(client, nameless))
    assert client.phase is Phase.OPERATING
    assert sent(client) == []


# ------------------------------------------------------------------------------------- the bad end


def test_server_that_dies_of_the_probe() -> None:
    """c226: the end of the stream does not tell the era, so the text has to name a remedy."""
    client = probing()
    client.receive_eof()
    failed = failure(client)
    assert failed.cause is FailureCause.LOST
    assert "hint" in failed.text


@pytest.mark.parametrize("begun", [probing, fallen_back])
@pytest.mark.parametrize("how", ["receive_eof", "close"])
def test_end_of_the_connection_is_the_end_of_the_start(
    begun: Callable[[], ClientConnection], how: str
) -> None:
    """There must be one ending, whether the probe or the handshake was open."""
    client = begun()
    getattr(client, how)()
    failed, closed = drain(client)
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.LOST
    assert isinstance(closed, ConnectionClosed)
    assert closed.cause is (CloseCause.EOF if how == "receive_eof" else CloseCause.CLOSED)


def test_probe_that_was_never_written_is_lost() -> None:
    """The server never got the probe, so no response will come."""
    client = new_client(revisions=BOTH)
    client.start()
    client.send_failed()
    assert failure(client).cause is FailureCause.LOST


def test_good_answer_is_of_no_use_once_sending_has_failed() -> None:
    """After `Ready` a client would go on to send requests."""
    client = probing()
    client.send_failed()
    failed, _ = receive(client, result(1, discovered()))
    assert isinstance(failed, ConnectionFailed)
    assert failed.cause is FailureCause.LOST


def test_wake_tells_of_each_step() -> None:
    """A driver that sleeps would never write the handshake."""
    woken: list[int] = []
    client = ClientConnection(
        info=SERVER_INFO, revisions=BOTH, wake=lambda: woken.append(client.unsent_bytes)
    )
    client.start()
    sent(client)
    receive(client, error(1, -32601))
    assert [unsent > 0 for unsent in woken] == [True, True]


# ------------------------------------------------------------------- servers that are slow to start

NO_HANDSHAKE = error(2, -32022, data={"supported": ["2030-01-01", MODERN], "requested": LEGACY})
"""What a server says that was made modern by a probe which it has read late."""


def late() -> ClientConnection:
    """A client whose probe has timed out and whose `initialize` (id 2) is open; 1 s has passed."""
    client = probing(probe_timeout=1, timeout=20, now=0)
    client.handle_timeout(1)
    (message,) = sent(client)
    assert (message["id"], message["method"]) == (2, "initialize")
    return client


@pytest.mark.parametrize("code", [-32022, -32601, -32602])
def test_slow_server_that_has_no_handshake_is_probed_again(code: int) -> None:
    """A slow modern server reads the probe late, and refuses the handshake (COMPAT-003)."""
    client = late()
    data = {"supported": [MODERN], "requested": LEGACY}
    assert receive(client, error(2, code, data=data), now=2) == []
    (again,) = sent(client)
    assert (again["id"], again["method"]) == (3, "server/discover")
    assert client.next_timeout() == 20  # what is left of the whole, and nothing of the probe's
    ready = only(Ready, receive(client, result(3, discovered()), now=3))
    assert ready.revision == MODERN


def test_hint_that_has_become_wrong_leads_to_the_probe() -> None:
    """The server was upgraded since (VER-015)."""
    client = new_client(revisions=BOTH)
    client.start(hint=LEGACY)
    (first,) = sent(client)
    assert first["method"] == "initialize"
    receive(client, error(1, -32022, data={"supported": [MODERN]}))
    (again,) = sent(client)
    assert again["method"] == "server/discover"
    only(Ready, receive(client, result(2, discovered())))


def test_server_that_cannot_decide_is_asked_three_times() -> None:
    """After probe, handshake and probe the start must end."""
    client = late()
    assert receive(client, NO_HANDSHAKE, now=2) == []
    sent(client)
    events = receive(client, error(3, -32022, data={"supported": [LEGACY]}), now=3)
    assert events == []
    (last,) = sent(client)
    assert last["method"] == "initialize"
    receive(client, error(4, -32022, data={"supported": [MODERN]}), now=4)
    assert sent(client) == []
    assert client.state is State.CLOSED


@pytest.mark.parametrize("supported", [[LEGACY], [], "2026-07-28", None])
def test_server_that_supports_nothing_newer_has_refused(supported: object) -> None:
    """A client of one era has no other attempt."""
    client = late()
    receive(client, error(2, -32022, data={"supported": supported}), now=2)
    assert sent(client) == []
    assert client.state is State.CLOSED


def test_there_is_no_third_try_without_time_for_it() -> None:
    """A third attempt needs time left, and a stream that can be written."""
    client = late()
    receive(client, NO_HANDSHAKE, now=20)
    assert client.state is State.CLOSED
    client = late()
    client.send_failed()
    assert of(ConnectionFailed, receive(client, NO_HANDSHAKE, now=2))
    assert client.state is State.CLOSED


def test_client_of_the_older_era_does_not_probe() -> None:
    """A legacy client could not use a modern response."""
    client = new_client()
    client.start()
    sent(client)
    receive(client, error(1, -32022, data={"supported": [MODERN]}))
    assert sent(client) == []
    assert client.state is State.CLOSED


def test_server_that_dies_of_a_client_of_the_newer_era() -> None:
    """No setting helps, but the era may be the cause, and the text must say so."""
    client = probing(MODERN_REVISIONS)
    client.receive_eof()
    failed = failure(client)
    assert failed.cause is FailureCause.LOST
    assert "handshake" in failed.text
    assert "hint" not in failed.text


def test_misread_probe_is_not_repeated_without_time_for_it() -> None:
    """The server has refused a revision that was not requested, and too late."""
    client = probing(timeout=5, now=0)
    data = {"supported": [MODERN], "requested": "x"}
    (failed,) = of(ConnectionFailed, receive(client, error(1, -32022, data=data), now=5))
    assert failed.cause is FailureCause.UNSUPPORTED_REVISION
    assert sent(client) == []
