"""The checker of promises accepts correct behaviour, and reports each broken promise.

A checker that found nothing would make the state machine and the explorer worthless, so each
promise is broken here once: by wrong books, or by calls that the checker does not see.
"""

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    CloseCause,
    Config,
    ConnectionClosed,
    LocalProtocolError,
    ResponseReceived,
    Side,
)
from sansmcp.testing import (
    InvariantBroken,
    Pair,
)
from tests.support.machines.bounds import check_bounds, check_tables
from tests.support.machines.checker import Checker
from tests.support.machines.choices import SMALL_LIMITS
from tests.support.machines.promises import check_message, demand

CALL: dict[str, Any] = {"name": "slow"}
RESULT: dict[str, Any] = {"content": []}


class Books:
    """A pair with a checker on each side."""

    def __init__(self, **options: Any) -> None:
        self.pair = Pair(**options)
        self.client = Checker(self.pair.client)
        self.server = Checker(self.pair.server)

    def ask(self, method: str = "tools/call", **options: Any) -> Any:
        params = CALL if method == "tools/call" else None
        return self.client.ask(lambda: self.pair.client.send_request(method, params, **options))

    def deliver(self) -> None:
        self.pair.deliver()
        self.client.take_events()
        self.server.take_events()


def test_a_whole_conversation_is_in_order() -> None:
    """A checker that refuses correct behaviour is useless."""
    books = Books()
    call = books.ask(progress=True)
    books.deliver()
    [request] = books.server.handling
    server = books.pair.server

    assert books.client.waiting == [call]
    assert books.server.progress(request, lambda: server.send_progress(request, 1)) is True
    assert books.server.answer(request, lambda: server.send_result(request, RESULT)) is True
    assert books.server.progress(request, lambda: server.send_progress(request, 2)) is False
    books.deliver()
    assert books.client.waiting == []
    assert books.server.handling == []
    assert books.server.answered == [request]
    assert books.client.cancel(call) is False

    raised = books.server.answer(request, lambda: server.send_result(request, RESULT))
    assert isinstance(raised, LocalProtocolError)


def test_a_cancelled_request_is_over_for_both() -> None:
    """Responses that lose the race must return False."""
    books = Books()
    call = books.ask()
    books.deliver()
    [request] = books.server.handling
    assert books.client.cancel(call, "enough") is True
    books.deliver()

    assert books.server.handling == []
    assert books.server.answered == []
    answered = books.server.answer(request, lambda: books.pair.server.send_error(request, 1, "no"))
    assert answered is False


def test_what_cannot_be_cancelled_goes_on() -> None:
    """A request for a task must end by `tasks/cancel` only."""
    books = Books()
    client = books.pair.client
    call = books.client.ask(lambda: client.send_request("tools/call", {"name": "slow", "task": {}}))
    assert not isinstance(call, LocalProtocolError)

    assert isinstance(books.client.cancel(call), LocalProtocolError)
    assert books.client.waiting == [call]


def test_progress_of_a_task_may_go_on() -> None:
    """The token must stay in use after the first response until the task ends."""
    books = Books()
    client, server = books.pair.client, books.pair.server
    params: dict[str, Any] = {**CALL, "task": {}}
    books.client.ask(lambda: client.send_request("tools/call", params, progress=True))
    books.deliver()
    [request] = books.server.handling
    time = "2026-01-01T00:00:00Z"
    about = {"createdAt": time, "lastUpdatedAt": time, "ttl": None}
    task = {"taskId": "t", "status": "working", **about}
    books.server.answer(request, lambda: server.send_result(request, {"task": task}))
    books.deliver()

    assert books.server.progress(request, lambda: server.send_progress(request, 1)) is True
    books.deliver()
    assert len(books.client.tasks) == 1


def test_an_answer_of_the_wrong_shape_leaves_the_request_open() -> None:
    """The handler must be able to retry with a valid result."""
    books = Books()
    books.ask()
    books.deliver()
    [request] = books.server.handling

    raised = books.server.answer(request, lambda: books.pair.server.send_result(request, {}))

    assert isinstance(raised, LocalProtocolError)
    assert books.server.handling == [request]


def test_it_begins_with_requests_that_are_under_way() -> None:
    """A checker may be attached in the middle of a conversation."""
    pair = Pair()
    call = pair.client.send_request("tools/call", CALL)
    pair.deliver()
    pair.clear_events()

    assert Checker(pair.client).waiting == [call]
    assert len(Checker(pair.server).handling) == 1


# ------------------------------------------------------------------------------ what is wrong


def broken(act: Callable[[], object], text: str) -> None:
    with pytest.raises(InvariantBroken, match=text):
        act()


def test_a_demand_says_what_was_broken() -> None:
    """The text is all that a failed property test shows."""
    demand(holds=True, text="never shown")
    broken(lambda: demand(holds=[], text="nothing there"), "nothing there")


def test_a_call_that_raises_and_changes_something_is_noticed() -> None:
    """Invariant 7."""
    books = Books()

    def half_done() -> None:
        books.pair.client.ping()
        raise LocalProtocolError("OWN-000", "too late")

    broken(lambda: books.client.attempt(half_done), "has changed something: too late")


def test_false_with_a_change_and_true_without_a_right_are_noticed() -> None:
    """Invariant 10."""
    books = Books()
    foreign = Books()
    foreign.ask()
    foreign.deliver()
    [request] = foreign.server.handling

    def chatty() -> bool:
        books.pair.server.ping()
        return False

    broken(lambda: books.server.answer(request, lambda: True), "did not return False")
    broken(lambda: books.server.answer(request, chatty), "returned False and has changed")


def test_a_second_answer_that_is_accepted_is_noticed() -> None:
    """A request must have one response."""
    books = Books()
    books.ask()
    books.deliver()
    [request] = books.server.handling
    books.server.answered.append(request)

    broken(lambda: books.server.answer(request, lambda: True), "answered a second time")


def test_answers_that_are_not_taken_are_noticed() -> None:
    """An open request must accept a response, and a cancelled one get its cancellation."""
    books = Books()
    call = books.ask()
    books.deliver()
    [request] = books.server.handling

    broken(lambda: books.server.answer(request, lambda: False), "could not be answered")
    broken(lambda: books.server.answer(request, lambda: True), "is still open")
    books.pair.client.cancel(call)
    broken(lambda: books.client.cancel(call), "could not be cancelled")


def test_requests_behind_its_back_are_noticed() -> None:
    """A request that the checker does not know could not be checked."""
    books = Books()
    books.pair.client.send_request("tools/call", CALL)
    broken(books.client.take_events, r"\[\] are waited for, but")

    books = Books()
    books.ask()
    books.deliver()
    [request] = books.server.handling
    books.pair.server.send_result(request, RESULT)
    broken(books.server.take_events, "are being handled, but")


def test_wrong_endings_are_noticed() -> None:
    """Invariant 8: no ending may be missing, double, early or without a request."""
    books = Books()
    call = books.ask()
    ended = ResponseReceived(request=call, result={})
    broken(lambda: books.client._see(ended), "has ended, and is still open")
    broken(lambda: books.client._see(ended), "ends a handle that was not open")

    books = Books()
    call = books.ask()
    books.pair.client.cancel(call)
    books.pair.client.next_event()
    broken(books.client.take_events, "closed without an ending")

    books = Books()
    call = books.ask(progress=True)
    books.deliver()
    [request] = books.server.handling
    books.pair.server.send_progress(request, 1)
    books.client.waiting.clear()
    books.pair.deliver()
    broken(books.client.take_events, "names a handle that is not open")


def test_a_cancellation_of_nothing_is_noticed() -> None:
    """Only an open request may be cancelled."""
    books = Books()
    call = books.ask()
    books.deliver()
    books.server.handling.clear()
    books.pair.client.cancel(call)
    books.pair.deliver()

    broken(books.server.take_events, "names a request that was not being handled")


def test_events_after_the_last_one_are_noticed() -> None:
    """`ConnectionClosed` is the last event of every connection."""
    books = Books()
    books.client._see(ConnectionClosed(cause=CloseCause.EOF))

    broken(books.client.check, "the connection is OPEN, and its last event has come")
    broken(lambda: books.client._see(ConnectionClosed(cause=CloseCause.EOF)), "came after the last")
    books = Books()
    books.pair.client.close()
    broken(books.client.check, "events were left")


def test_sending_after_the_end_is_noticed() -> None:
    """A handle that is returned after the last event could never end."""
    books = Books()
    books.client.closed = True

    broken(lambda: books.ask(), "was sent after the last event")


def test_a_full_table_is_no_fault_and_a_fuller_one_is() -> None:
    """Invariant 5: a table may reach its limit, and not exceed it."""
    books = Books(client_config=Config(max_requests=2))
    books.ask()
    books.ask()
    assert isinstance(books.ask(), LocalProtocolError)
    check_bounds(books.pair.client)

    books = Books()
    for _ in range(3):
        books.ask()
    broken(lambda: check_bounds(books.pair.client, Config(max_requests=1)), "3 pending requests")


class Part:
    """An object like a part of a connection, with a table and a buffer."""

    __slots__ = ("buffer", "table")

    def __init__(self, n_entries: int, n_bytes: int) -> None:
        self.table = dict.fromkeys(range(n_entries))
        self.buffer = bytearray(n_bytes)


def test_every_table_and_buffer_is_found() -> None:
    """A new table without a check may grow for ever."""
    check_tables([Part(9, 3_000)], SMALL_LIMITS)
    broken(lambda: check_tables([Part(10, 0)], SMALL_LIMITS), "a table holds 10, above 9")
    broken(lambda: check_tables([Part(0, 3_001)], SMALL_LIMITS), "a buffer holds 3001 bytes")
    check_tables([[("entry",)] * 84], SMALL_LIMITS)
    broken(lambda: check_tables([[("entry",)] * 85], SMALL_LIMITS), "a table holds 85, above 84")


def test_many_deadlines_that_no_longer_matter_are_thrown_away() -> None:
    """Timers of answered requests must not fill the memory until their time."""
    books = Books(client_config=SMALL_LIMITS, server_config=SMALL_LIMITS)
    for _ in range(300):
        books.pair.client.ping(timeout=1_000)
        books.pair.deliver()
        books.pair.clear_events()
        check_bounds(books.pair.client)
        check_bounds(books.pair.server)


GOOD = [
    b'{"jsonrpc":"2.0","id":1,"method":"m"}',
    b'{"jsonrpc":"2.0","method":"m","params":{}}',
    b'{"jsonrpc":"2.0","id":"1","result":{}}',
    b'{"jsonrpc":"2.0","id":1.0,"error":{"code":1,"message":""}}',
    b'{"jsonrpc":"2.0","error":{"code":1,"message":"","data":null}}',
    b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]',
]
BAD = [
    b'{"jsonrpc":"2.0","id":1,\n"method":"m"}',
    b"",
    b"\xff",
    b'{"jsonrpc":"2.0","id":1,"result":{"n":NaN}}',
    b"1",
    b"[]",
    b"[1]",
    b'[{"jsonrpc":"2.0","id":1,"method":"m"}]',
    b'{"id":1,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":null,"method":"m"}',
    b'{"jsonrpc":"2.0","id":true,"method":"m"}',
    b'{"jsonrpc":"2.0","method":1}',
    b'{"jsonrpc":"2.0","method":"m","params":[]}',
    b'{"jsonrpc":"2.0","method":"m","result":{}}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":[]}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}',
    b'{"jsonrpc":"2.0","id":1,"error":"no"}',
]


@pytest.mark.parametrize("message", GOOD)
def test_well_formed_messages_are_given_back(message: bytes) -> None:
    """Requests, notifications, answers, and batches of answers."""
    assert check_message(message) is not None


@pytest.mark.parametrize("message", BAD)
def test_anything_else_is_noticed(message: bytes) -> None:
    """Invariant 9, as far as it can be checked without a schema."""
    with pytest.raises(InvariantBroken):
        check_message(message)


def test_sides_are_those_of_the_pair() -> None:
    """Both kinds of connections must be checked."""
    books = Books()

    assert books.client.connection is books.pair.side(Side.CLIENT)
    assert books.server.connection is books.pair.side(Side.SERVER)
