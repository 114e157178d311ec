"""The used ids of the peer, which are kept as ranges, and the ids that this side assigns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import (
    Config,
    Event,
    LimitReached,
    LocalProtocolError,
    ProtocolViolation,
    ServerConnection,
)
from sansmcp.testing import Pair, drain
from tests.support.wire import call, of, ready_client, ready_server, receive, result, sent

REVISION = "2025-11-25"


def server_with(max_used_ids: int = 10_000) -> ServerConnection:
    """A server whose client has used the id "hello" only."""
    return ready_server(REVISION, config=Config(max_used_ids=max_used_ids))


def reuses(server: ServerConnection, *ids: int | str | float) -> list[bool]:
    """For a ping with each id, whether the server reported a reuse."""
    found: list[bool] = []
    for id in ids:
        events = receive(server, call(id, "ping"))
        assert sent(server) == [result(id, {})]
        found.append(any(event.rule == "ID-001" for event in of(ProtocolViolation, events)))
    return found


@given(
    ids=st.lists(st.integers(-6, 12) | st.integers(-6, 12).map(str) | st.integers(0, 3).map(float))
)
def test_a_reuse_is_reported_whatever_the_order(ids: list[int | str | float]) -> None:
    """Ranges grow, join and split, which must not lose or add an id."""
    known: set[int | str] = {"hello"}
    expected: list[bool] = []
    for id in ids:
        key = int(id) if isinstance(id, float) else id
        expected.append(key in known)
        known.add(key)

    server = server_with()
    assert reuses(server, *ids) == expected
    assert server.forgotten_ids == 0


def test_a_reused_id_is_served_and_the_report_names_the_request() -> None:
    """A peer that restarts its counter must still be served."""
    server = server_with()
    reuses(server, 7)
    (report, _) = receive(server, call(7, "ping"))

    assert isinstance(report, ProtocolViolation)
    assert (report.rule, report.tolerated) == ("ID-001", True)
    assert report.request is not None
    assert report.request.id == 7


def test_numbers_and_texts_never_meet() -> None:
    """`1` and `1.0` are one id, and `"1"` is another."""
    assert reuses(server_with(), 1, "1", 1.0, "1.0") == [False, False, True, False]


def test_counting_takes_one_range_however_long() -> None:
    """A peer that counts upwards must take no memory."""
    server = server_with(max_used_ids=1)
    assert not any(reuses(server, *range(1, 300)))

    assert server.forgotten_ids == 0
    assert reuses(server, 1, 150, 299) == [True] * 3


def test_gaps_that_close_are_one_range_again() -> None:
    """Ids out of order must be joined, or the limit would be used up."""
    server = server_with(max_used_ids=2)
    assert not any(reuses(server, 1, 3, 2, 5, 4, 7, 6))

    assert server.forgotten_ids == 0
    assert all(reuses(server, 1, 2, 3, 4, 5, 6, 7))


def told(events: list[Event]) -> list[str]:
    return [event.rule for event in of(LimitReached, events)]


def test_the_oldest_range_is_forgotten_reported_once_and_counted() -> None:
    """Without a limit, a peer could fill the table."""
    server = server_with(max_used_ids=2)
    events = [event for id in (10, 20, 30, 40) for event in receive(server, call(id, "ping"))]

    assert told(events) == ["OWN-007"]
    assert server.forgotten_ids == 2
    sent(server)
    assert reuses(server, 30, 40, 10) == [True, True, False]


def test_a_new_id_below_all_others_is_not_the_oldest() -> None:
    """An id that was just used must be kept, to detect a reuse right after it."""
    server = server_with(max_used_ids=2)
    reuses(server, 20, 30, 10)

    assert server.forgotten_ids == 1
    assert reuses(server, 10) == [True]


def test_with_room_for_one_range_the_latest_stays() -> None:
    """The smallest limit must still work."""
    server = server_with(max_used_ids=1)
    reuses(server, 20, 10)

    assert server.forgotten_ids == 1
    assert reuses(server, 10) == [True]


def test_texts_have_a_bound_of_their_own() -> None:
    """Clients that use UUIDs fill one entry for each request."""
    server = server_with(max_used_ids=3)
    reuses(server, "a", "b", "c")

    assert server.forgotten_ids == 1  # "hello", the id of initialize
    assert reuses(server, "a", "hello") == [True, False]


def test_a_very_long_text_is_not_kept() -> None:
    """Ten thousand ids of a megabyte each would take ten gigabytes."""
    server = server_with()
    assert reuses(server, "x" * 100_000, "x" * 100_000) == [False, False]

    assert server.forgotten_ids == 2


# -------------------------------------------------------------------------------- ids of ours


def test_ids_count_upwards_and_skip_what_was_given_by_hand() -> None:
    """An id that the caller has chosen must not be assigned to another request."""
    client = ready_client(REVISION)  # initialize had the id 1

    assert client.send_request("tools/list").id == 2
    assert client.send_request("tools/list", id=10).id == 10
    assert client.send_request("tools/list", id="mine").id == "mine"
    assert client.send_request("tools/list").id == 11
    assert [message["id"] for message in sent(client)] == [2, 10, "mine", 11]


@pytest.mark.parametrize("id", [1, 0, -5])
def test_a_number_not_above_the_last_is_refused(id: int) -> None:
    """A smaller number may have been used before."""
    client = ready_client(REVISION)

    with pytest.raises(LocalProtocolError, match="is not above") as caught:
        client.send_request("tools/list", id=id)
    assert caught.value.rule == "ID-001"


def test_a_text_used_before_is_refused_after_its_end_too() -> None:
    """An id must not be reused within a session."""
    pair = Pair()
    pair.client.send_request("ping", id="mine")
    pair.deliver()

    with pytest.raises(LocalProtocolError, match="was used before"):
        pair.client.send_request("ping", id="mine")


@pytest.mark.parametrize("id", [True, 1.5, 2.0, b"7", ["7"]])
def test_what_is_no_id_is_refused(id: object) -> None:
    """`True` would be sent as `true`, which no peer may accept."""
    client = ready_client(REVISION)

    with pytest.raises(LocalProtocolError) as caught:
        client.send_request("tools/list", id=id)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # untyped callers
    assert caught.value.rule == "JSON-002"


def test_texts_of_ours_are_remembered_up_to_the_bound() -> None:
    """An application that chooses all ids must not fill the memory."""
    client = ready_client(REVISION, config=Config(max_used_ids=2))
    for id in ("a", "b", "c"):
        client.send_request("ping", id=id)
        sent(client)
        receive(client, result(id, {}))

    with pytest.raises(LocalProtocolError):
        client.send_request("ping", id="b")
    assert client.send_request("ping", id="a").open
    assert drain(client) == []
