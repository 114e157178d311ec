"""Requests with several rounds of questions, or with rounds that only ask to retry.

Rules: MRTR-010, MRTR-018, MRTR-025, OWN-027.
"""

from typing import Any

import pytest

from sansmcp import (
    ClientConnection,
    Config,
    ErrorReceived,
    FailureReason,
    InputRequired,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    MessageIgnored,
    ProgressReceived,
    RequestFailed,
    ResponseReceived,
    State,
)
from tests.support.modern import (
    MODERN,
    ROOTS,
    complete,
    discovered,
    in_question,
    input_required,
    modern_client,
)
from tests.support.wire import (
    CLIENT_INFO,
    broken,
    drain,
    error,
    note,
    of,
    only,
    receive,
    result,
    sent,
)

CALL: JSONObject = {"name": "t", "arguments": {"a": 1}}
ASK_ROOTS: JSONObject = {"r": ROOTS}
GIVE_ROOTS: JSONObject = {"r": {"roots": []}}
DONE: JSONObject = {"content": []}


# --------------------------------------------------------------------------------------- rounds


def test_each_round_has_its_own_progress_and_time() -> None:
    """The token and the deadline of an earlier round must not count any more."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS, progress=True, timeout=5, now=0)
    again = client.provide_input(call, GIVE_ROOTS, progress=True, timeout=7, max_timeout=8, now=10)
    (message,) = sent(client)
    assert message["params"]["_meta"]["progressToken"] == again.progress_token == 3
    events = receive(
        client,
        note("notifications/progress", {"progressToken": 2, "progress": 9}),
        note("notifications/progress", {"progressToken": 3, "progress": 1}),
        now=12,
    )
    assert [type(event) for event in events] == [MessageIgnored, ProgressReceived]
    assert client.next_timeout() == 18
    client.handle_timeout(18)
    failed = only(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (again, FailureReason.TIMED_OUT)
    assert sent(client)[0]["params"]["requestId"] == 3


def test_round_without_a_wish_for_progress_has_none() -> None:
    """Each round is a request of its own, with or without a token."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS, meta={"progressToken": "mine"})
    client.provide_input(call, GIVE_ROOTS)
    assert "progressToken" not in sent(client)[0]["params"]["_meta"]
    call = in_question(client, ASK_ROOTS, id=10)
    client.send_request("tools/call", CALL, id=11, meta={"progressToken": 12})
    client.provide_input(call, GIVE_ROOTS, progress=True)
    assert sent(client)[1]["params"]["_meta"]["progressToken"] == "12+"


@pytest.mark.parametrize("ending", [complete(3, DONE), error(3, -32603), input_required(3, {})])
def test_round_ends_like_any_request(ending: JSONObject) -> None:
    """The newest handle must have the one ending, and older handles none."""
    client = modern_client()
    again = client.provide_input(in_question(client, ASK_ROOTS), GIVE_ROOTS)
    sent(client)
    events = receive(client, ending)
    last = events[-1]
    assert isinstance(last, ResponseReceived | ErrorReceived | RequestFailed)
    assert last.request is again


@pytest.mark.parametrize("limit", [1, 3])
def test_rounds_are_counted_over_all_handles(limit: int) -> None:
    """Each round has a new handle, and the count must go on (OWN-027)."""
    client = modern_client(config=Config(max_input_rounds=limit))
    call = in_question(client, ASK_ROOTS)
    for _ in range(limit - 1):
        call = client.provide_input(call, GIVE_ROOTS)
        only(InputRequired, receive(client, input_required(call.id, ASK_ROOTS)))
    call = client.provide_input(call, GIVE_ROOTS)
    failed = only(RequestFailed, receive(client, input_required(call.id, ASK_ROOTS)))
    assert (failed.request, failed.reason) == (call, FailureReason.TOO_MANY_ROUNDS)
    with pytest.raises(LocalProtocolError, match="OWN-022"):
        client.provide_input(call, GIVE_ROOTS)


def test_limit_of_requests_holds_for_rounds() -> None:
    """The verb must raise without sending, so that the answers can be given later."""
    client = modern_client(config=Config(max_requests=1))
    call = in_question(client, ASK_ROOTS)
    other = client.send_request("tools/list")
    with pytest.raises(LocalProtocolError, match="OWN-005"):
        client.provide_input(call, GIVE_ROOTS)
    client.cancel(other)
    sent(client)
    client.provide_input(call, GIVE_ROOTS)
    assert len(sent(client)) == 1


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"max_timeout": -1}, {"timeout": 1}, {"timeout": float("nan")}]
)
def test_time_of_a_round_needs_a_clock_and_a_length(options: dict[str, Any]) -> None:
    """The timeout of a round must be checked like that of any request."""
    client = modern_client()
    call = in_question(client, ASK_ROOTS)
    with pytest.raises(LocalProtocolError, match="OWN-023"):
        client.provide_input(call, GIVE_ROOTS, **options)
    client.provide_input(call, GIVE_ROOTS)
    assert len(sent(client)) == 1


# ------------------------------------------------------------------- a state, and nothing asked


def come_back(id: object, state: str = "s") -> JSONObject:
    """A result with a state and no questions."""
    return input_required(id, None, state)


@pytest.mark.parametrize("questions", [None, {}])
@pytest.mark.parametrize("state", ["s", "", "ü\ud800"])
def test_state_alone_goes_back_at_once(questions: JSONObject | None, state: str) -> None:
    """c246: there is nothing to decide, so no event is needed; an empty string is a state
    (MRTR-018)."""
    client = modern_client()
    call = client.send_request("tools/call", CALL, data="mine")
    (original,) = sent(client)
    assert receive(client, input_required(2, questions, state)) == []
    (retry,) = sent(client)
    assert retry == {**original, "id": 3, "params": {**original["params"], "requestState": state}}
    assert client.pending_requests == (call,)
    done = only(ResponseReceived, receive(client, complete(3, DONE)))
    assert (done.request, call.data, call.open) == (call, "mine", False)


def test_each_state_takes_the_place_of_the_one_before() -> None:
    """A retry has the original request and the state of the last result only (MRTR-024)."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    sent(client)
    receive(client, come_back(2, "one"))
    receive(client, come_back(3, "two"))
    first, second = sent(client)
    assert (first["params"]["requestState"], second["params"]["requestState"]) == ("one", "two")
    assert second["params"].keys() == {*CALL, "_meta", "requestState"}
    only(InputRequired, receive(client, input_required(4, ASK_ROOTS)))
    client.provide_input(call, GIVE_ROOTS)
    (third,) = sent(client)
    assert third["params"].keys() == {*CALL, "_meta", "inputResponses"}


def test_answers_are_not_sent_again_with_a_later_state() -> None:
    """Answers belong to the round that asked for them."""
    client = modern_client()
    again = client.provide_input(in_question(client, ASK_ROOTS, "one"), GIVE_ROOTS)
    sent(client)
    assert receive(client, come_back(again.id, "two")) == []
    (message,) = sent(client)
    assert message["params"].keys() == {*CALL, "_meta", "requestState"}
    assert only(ResponseReceived, receive(client, complete(4, DONE))).request is again


@pytest.mark.parametrize("limit", [1, 4])
def test_coming_back_is_bounded(limit: int) -> None:
    """A server that is never ready would get retries for ever (OWN-027)."""
    client = modern_client(config=Config(max_input_rounds=limit))
    call = client.send_request("tools/call", CALL)
    for _ in range(limit):
        assert receive(client, come_back(call.id)) == []
    failed = only(RequestFailed, receive(client, come_back(call.id)))
    assert (failed.request, failed.reason) == (call, FailureReason.TOO_MANY_ROUNDS)
    assert len(sent(client)) == limit + 1
    assert client.pending_requests == ()


def test_both_kinds_of_rounds_count() -> None:
    """A server could alternate between the two kinds of rounds."""
    client = modern_client(config=Config(max_input_rounds=2))
    call = client.send_request("tools/call", CALL)
    receive(client, come_back(2))
    only(InputRequired, receive(client, input_required(3, ASK_ROOTS)))
    again = client.provide_input(call, GIVE_ROOTS)
    failed = only(RequestFailed, receive(client, come_back(again.id)))
    assert failed.reason is FailureReason.TOO_MANY_ROUNDS


def test_cancellation_names_the_newest_id() -> None:
    """The server has forgotten the earlier ids."""
    client = modern_client()
    call = client.send_request("tools/call", CALL, id="first")
    receive(client, come_back("first"))
    sent(client)
    assert call.id == 2
    assert client.cancel(call)
    assert sent(client) == [note("notifications/cancelled", {"requestId": 2})]
    assert only(RequestFailed, drain(client)).reason is FailureReason.CANCELLED
    events = receive(client, come_back("first"), come_back(2), complete(2, DONE))
    assert [type(event) for event in events] == [MessageIgnored] * 3
    assert sent(client) == []


def test_answer_to_an_earlier_id_is_nobodys() -> None:
    """A second response to an earlier round must not end the newest one."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    receive(client, come_back(2))
    only(MessageIgnored, receive(client, complete(2, DONE)))
    assert call.open


def test_time_goes_on_while_it_comes_back() -> None:
    """Each round restarts `timeout`, and all share one `max_timeout`."""
    client = modern_client()
    call = client.send_request("tools/call", CALL, timeout=5, max_timeout=12, now=0)
    for now, deadline in ((4, 9), (8, 12), (11, 12)):
        receive(client, come_back(call.id), now=now)
        assert client.next_timeout() == deadline
    sent(client)
    client.handle_timeout(12)
    failed = only(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)
    assert sent(client)[0]["params"] == {"requestId": call.id, "reason": "timed out"}
    assert client.next_timeout() is None


def test_time_without_a_limit_stays_so() -> None:
    """A retry must not get a timer that the request did not have."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    receive(client, come_back(call.id), now=5)
    assert client.next_timeout() is None
    call = client.send_request("tools/call", CALL, max_timeout=9)
    receive(client, come_back(call.id), now=6)
    assert client.next_timeout() == 14


def test_progress_begins_anew_with_each_round() -> None:
    """A stateless server does not know its earlier progress (STATE-001)."""
    client = modern_client()
    call = client.send_request("tools/call", CALL, progress=True)
    sent(client)
    receive(client, note("notifications/progress", {"progressToken": 2, "progress": 5}))
    receive(client, come_back(2))
    assert sent(client)[0]["params"]["_meta"]["progressToken"] == 2
    progress = note("notifications/progress", {"progressToken": 2, "progress": 1})
    received = only(ProgressReceived, receive(client, progress))
    assert (received.request, received.progress) == (call, 1)
    receive(client, complete(3, DONE))
    only(MessageIgnored, receive(client, progress))


@pytest.mark.parametrize("how", ["close", "receive_eof"])
def test_end_of_the_connection_is_its_end(how: str) -> None:
    """A handle with rounds must have one ending."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    receive(client, come_back(2))
    getattr(client, how)()
    (failed,) = of(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.LOST)


def test_what_was_not_handed_over_is_lost_when_sending_fails() -> None:
    """The retry never reached the server, though the first round did."""
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    sent(client)
    receive(client, come_back(2))
    client.send_failed()
    assert only(RequestFailed, drain(client)).request is call
    client = modern_client()
    call = client.send_request("tools/call", CALL)
    receive(client, come_back(2))
    sent(client)
    client.send_failed()
    assert only(ResponseReceived, receive(client, complete(3, DONE))).request is call


def test_coming_back_wakes_whoever_writes() -> None:
    """The library queues the retry, so `wake` must tell the caller of it."""
    woken: list[int] = []
    client = ClientConnection(
        info=CLIENT_INFO, revisions=(MODERN,), wake=lambda: woken.append(client.unsent_bytes)
    )
    client.start()
    sent(client)
    receive(client, result(1, discovered()))
    client.send_request("tools/call", CALL)
    sent(client)
    woken.clear()
    receive(client, come_back(2))
    assert len(woken) == 1
    assert woken[0] > 0


def test_retry_that_would_never_fit_ends_its_call() -> None:
    """A state that is too large must not end other requests (OWN-044)."""
    client = modern_client(config=Config(max_unsent_bytes=2_000))
    call = client.send_request("tools/call", CALL)
    sent(client)
    events = receive(client, come_back(2, "x" * 2_000))
    assert [event.rule for event in of(LimitReached, events)] == ["OWN-044"]
    failed = of(RequestFailed, events)[0]
    assert (failed.request, failed.reason) == (call, FailureReason.INVALID_ANSWER)
    assert "Config.max_unsent_bytes is 2000" in failed.text
    assert client.state is State.OPEN


def test_retry_that_finds_no_room_ends_the_connection() -> None:
    """A peer that does not read must not fill the memory with retries (OWN-012)."""
    client = modern_client(config=Config(max_unsent_bytes=2_000))
    call = client.send_request("tools/call", CALL)
    sent(client)
    large = client.send_request("tools/call", {**CALL, "arguments": {"x": "y" * 1_000}})
    events = receive(client, come_back(2, "x" * 1_000))
    assert broken(events) == ["OWN-012"]
    assert {event.request for event in of(RequestFailed, events)} == {call, large}
