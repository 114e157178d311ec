"""Progress, timeouts and cancellation of a client's requests in 2026-07-28.

Rules: PROG-002, PROG-006, PROG-014, TIME-003 to TIME-006, CANC-011, CANC-017.
"""

import pytest

from sansmcp import (
    Config,
    FailureReason,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    MessageIgnored,
    ProgressReceived,
    RequestFailed,
    ResponseReceived,
)
from tests.support.modern import ROOTS, cancelled, complete, input_required, modern_client
from tests.support.wire import broken, drain, error, note, of, only, receive, sent

CALL: JSONObject = {"name": "t"}


def progress(token: object, value: object, **more: object) -> JSONObject:
    return note("notifications/progress", {"progressToken": token, "progress": value, **more})


# -------------------------------------------------------------------------------------- progress


def test_progress_finds_its_request_by_the_token() -> None:
    """Requests in flight share one channel, so the token alone tells whose progress it is."""
    client = modern_client()
    first = client.send_request("tools/call", CALL, progress=True)
    second = client.send_request("tools/call", CALL, meta={"progressToken": "mine"})
    assert (first.progress_token, second.progress_token) == (2, "mine")
    events = receive(
        client,
        progress("mine", 0.5, total=1, message="half"),
        progress(2, 0),
        progress(2, 1.5, total=1),  # nothing ties it to the total (c054)
    )
    seen = [(event.request, event.progress, event.total) for event in of(ProgressReceived, events)]
    assert seen == [(second, 0.5, 1), (first, 0, None), (first, 1.5, 1)]
    assert len(events) == 3


@pytest.mark.parametrize("token", ["2", 3, "other"])
def test_token_of_nobody_is_ignored(token: object) -> None:
    """c049: a number and its digits as a string are two tokens."""
    client = modern_client()
    client.send_request("tools/call", CALL, progress=True)
    client.send_request("tools/call", CALL)
    ignored = only(MessageIgnored, receive(client, progress(token, 1)))
    assert (ignored.rule, ignored.id) == ("PROG-006", token)


def test_progress_after_the_end_is_ignored() -> None:
    """c046, c051: late progress must be ignored after each kind of ending."""
    client = modern_client()
    client.send_request("tools/call", CALL, progress=True)
    client.send_request("tools/call", CALL, progress=True)
    asked = client.send_request("tools/call", CALL, progress=True)
    lost = client.send_request("tools/call", CALL, progress=True)
    client.cancel(lost)
    receive(client, complete(2, {"content": []}), error(3, 1), input_required(4, {"a": ROOTS}))
    assert not asked.open
    events = receive(client, *(progress(token, 1) for token in (2, 3, 4, 5)))
    assert [type(event) for event in events] == [MessageIgnored] * 4


def test_token_in_use_is_not_given_twice() -> None:
    """c055: progress of one request would be taken for that of the other."""
    client = modern_client()
    client.send_request("tools/call", CALL, meta={"progressToken": "a"})
    sent(client)
    with pytest.raises(LocalProtocolError, match="PROG-002"):
        client.send_request("tools/call", CALL, meta={"progressToken": "a"})
    assert sent(client) == []
    receive(client, complete(2, {"content": []}))
    client.send_request("tools/call", CALL, meta={"progressToken": "a"})
    assert sent(client)[0]["params"]["_meta"]["progressToken"] == "a"


def test_progress_is_never_sent_by_a_client() -> None:
    """A server sends no requests in this revision (PROG-014)."""
    client = modern_client()
    with pytest.raises(LocalProtocolError):
        client.send_notification("notifications/progress", {"progressToken": 1, "progress": 1})
    assert sent(client) == []


# ------------------------------------------------------------------------------------------ time


def test_progress_restarts_the_silence_but_not_the_whole() -> None:
    """c038, c219: a server that reports for ever would keep the caller for ever."""
    client = modern_client()
    call = client.send_request(
        "tools/call", CALL, progress=True, timeout=60, max_timeout=300, now=0
    )
    sent(client)
    for step in range(1, 10):
        receive(client, progress(2, step), now=step * 30)
        client.handle_timeout(step * 30)
    assert call.open
    assert client.next_timeout() == 300
    client.handle_timeout(300)
    assert only(RequestFailed, drain(client)).reason is FailureReason.TIMED_OUT
    assert sent(client) == [cancelled(2, reason="timed out")]


def test_silence_ends_a_request() -> None:
    """A response after the timeout must be ignored."""
    client = modern_client()
    call = client.send_request("tools/call", CALL, timeout=5, now=10)
    client.handle_timeout(14.9)
    assert call.open
    client.handle_timeout(15)
    failed = only(RequestFailed, drain(client))
    assert (failed.request, failed.reason) == (call, FailureReason.TIMED_OUT)
    for late in (complete(2, {"content": []}), complete(2, {"content": []})):
        assert isinstance(receive(client, late)[0], MessageIgnored)


# ---------------------------------------------------------------------------------- cancellation


def test_cancellation_names_the_request_and_the_reason() -> None:
    """c039: the cancellation must go out once, whatever comes later."""
    client = modern_client()
    call = client.send_request("tools/call", CALL, id="mine")
    sent(client)
    assert client.cancel(call, reason="no longer wanted", meta={"x": 1})
    params = {"requestId": "mine", "reason": "no longer wanted", "_meta": {"x": 1}}
    assert sent(client) == [note("notifications/cancelled", params)]
    assert only(RequestFailed, drain(client)).reason is FailureReason.CANCELLED
    assert client.cancel(call) is False
    assert sent(client) == []


@pytest.mark.parametrize(
    "late",
    [
        complete(2, {"content": []}),
        error(2, -32603),
        input_required(2, {"a": ROOTS}, "s"),
        input_required(2, None, "s"),
    ],
)
def test_answer_that_crosses_a_cancellation_is_ignored(late: JSONObject) -> None:
    """No response, not even one with questions, may reopen a cancelled request."""
    client = modern_client()
    client.cancel(client.send_request("tools/call", CALL))
    drain(client)
    sent(client)
    ignored = only(MessageIgnored, receive(client, late))
    assert (ignored.rule, ignored.id) == ("CANC-011", 2)
    assert sent(client) == []


def test_id_of_a_cancelled_request_is_not_used_again() -> None:
    """The response to it may still come (ID-002)."""
    client = modern_client(config=Config(max_late_answers=1))
    client.cancel(client.send_request("tools/call", CALL, id="a"))
    with pytest.raises(LocalProtocolError, match="ID-002"):
        client.send_request("tools/call", CALL, id="a")
    client.cancel(client.send_request("tools/call", CALL))
    assert len(of(LimitReached, drain(client))) == 1
    assert client.forgotten_answers == 1


@pytest.mark.parametrize("others", [1, 5])
def test_only_the_one_is_cancelled(others: int) -> None:
    """Other requests must go on."""
    client = modern_client()
    calls = [client.send_request("tools/call", CALL) for _ in range(others + 1)]
    client.cancel(calls[0])
    drain(client)
    assert list(client.pending_requests) == calls[1:]
    events = receive(client, *(complete(call.id, {"content": []}) for call in calls[1:]))
    assert [event.request for event in of(ResponseReceived, events)] == calls[1:]
    assert broken(events) == []
