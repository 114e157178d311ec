"""The checker of promises on rounds of input and on subscriptions.

As in `test_checker`, each promise is broken once by wrong books.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sansmcp import (
    MODERN_REVISIONS,
    CancelCause,
    Config,
    IncomingRequest,
    Listener,
    ListenerRemoved,
    LocalProtocolError,
    OutgoingRequest,
    RequestReceived,
    Subscription,
    ToolsListChanged,
)
from sansmcp.testing import InvariantBroken, Pair
from tests.support.machines.bounds import check_bounds
from tests.support.machines.checker import Checker

MODERN = MODERN_REVISIONS[-1]
CALL: dict[str, Any] = {"name": "slow"}
RESULT: dict[str, Any] = {"content": []}
ROOTS: dict[str, Any] = {"roots": {"method": "roots/list"}}
LISTED: dict[str, Any] = {"roots": {"roots": []}}
BY_HAND = Config(manual={"subscriptions/listen"}, max_held_changes=1)


class Books:
    """A pair with a checker on each side."""

    def __init__(self, revision: str = MODERN, **options: Any) -> None:
        self.pair = Pair(revision=revision, **options)
        self.client = Checker(self.pair.client)
        self.server = Checker(self.pair.server)

    def ask(self) -> tuple[OutgoingRequest, IncomingRequest]:
        """Ask; returns the handles of the caller and of the handler."""
        call = self.client.ask(lambda: self.pair.client.send_request("tools/call", CALL))
        assert isinstance(call, OutgoingRequest)
        self.deliver()
        return call, self.server.handling[-1]

    def require(self, request: IncomingRequest, **options: Any) -> Any:
        server = self.pair.server
        return self.server.require_input(
            request, lambda: server.require_input(request, ROOTS, **options)
        )

    def provide(self, call: OutgoingRequest) -> Any:
        client = self.pair.client
        return self.client.provide(call, lambda: client.provide_input(call, LISTED))

    def listen(self, **wish: Any) -> Subscription:
        client = self.pair.client
        subscription = self.client.ask(lambda: client.listen({"toolsListChanged": True, **wish}))
        assert isinstance(subscription, Subscription)
        self.deliver()
        return subscription

    def acknowledge(self, request: IncomingRequest) -> Any:
        server = self.pair.server
        return self.server.acknowledge(request, lambda: server.acknowledge(request))

    def end(self, listener: Listener) -> Any:
        server = self.pair.server
        return self.server.end_listener(listener, lambda: server.end_listener(listener))

    def deliver(self) -> None:
        self.pair.deliver()
        self.client.take_events()
        self.server.take_events()


def broken(act: Callable[[], object], text: str) -> None:
    with pytest.raises(InvariantBroken, match=text):
        act()


# ---------------------------------------------------------------------------------- what is right


def test_a_round_of_the_modern_revision_is_in_order() -> None:
    """A request must end with questions, and its retry be another request."""
    books = Books()
    call, request = books.ask()
    assert books.require(request) is True
    assert books.server.between_rounds == []
    books.deliver()
    assert (books.client.waiting, books.client.questioned) == ([], [call])

    renewed = books.provide(call)
    assert (books.client.waiting, books.client.questioned) == ([renewed], [])
    books.deliver()
    [second] = books.server.handling
    assert second is not request
    assert isinstance(books.require(request), LocalProtocolError)
    assert isinstance(books.provide(call), LocalProtocolError)


def test_a_round_over_the_bridge_is_in_order() -> None:
    """The next round has the same id, and must not count as a second request with it."""
    books = Books("2025-11-25")
    _, request = books.ask()
    assert books.require(request) is True
    assert books.server.between_rounds == [request]
    books.deliver()
    [question] = books.client.handling
    client = books.pair.client
    books.client.answer(question, lambda: client.send_result(question, LISTED["roots"]))
    books.deliver()
    assert books.server.between_rounds == []
    assert books.server.handling[0].input_responses == LISTED


def test_rounds_over_the_bridge_are_told_apart_by_their_ids() -> None:
    """The second request that has asked may continue first."""
    books = Books("2025-11-25")
    requests = [books.ask()[1] for _ in range(2)]
    for request in requests:
        books.require(request)
    books.deliver()
    client = books.pair.client
    for question in reversed(books.client.handling):
        books.client.answer(question, partial(client.send_result, question, LISTED["roots"]))
        books.deliver()
    assert books.server.between_rounds == []
    assert [one.id for one in books.server.handling] == [one.id for one in reversed(requests)]


def test_a_state_that_is_good_leaves_its_request_open() -> None:
    """A valid state may be read several times before the response."""
    books = Books()
    call, request = books.ask()
    books.require(request, state="s")
    books.deliver()
    books.provide(call)
    books.deliver()
    [second] = books.server.handling
    server = books.pair.server
    for _ in range(2):
        assert books.server.read_state(second, lambda: server.read_state(second)) == "s"
    assert books.server.handling == [second]


def test_a_round_over_the_bridge_may_come_to_nothing() -> None:
    """The request must end when a question is refused, or when its caller cancels."""
    books = Books("2025-11-25")
    _, request = books.ask()
    books.require(request)
    books.deliver()
    [question] = books.client.handling
    client = books.pair.client
    books.client.answer(question, lambda: client.send_error(question, -1, "no"))
    books.deliver()
    assert books.server.between_rounds == books.server.handling == []

    call, request = books.ask()
    books.require(request)
    books.client.cancel(call)
    books.deliver()
    assert books.server.between_rounds == []


def test_a_state_that_is_not_ours_ends_the_request() -> None:
    """The library has refused the request, so a result of the handler loses the race."""
    books = Books(server_config=Config(state_keys=(b"k" * 16,)))
    call, request = books.ask()
    books.require(request, state="mine", at=1.0)
    books.deliver()
    books.provide(call)
    wire = books.pair.to_server
    wire.data[:] = wire.data.replace(b'"requestState":"', b'"requestState":"x')
    books.deliver()
    [second] = books.server.handling
    server = books.pair.server

    read = books.server.read_state(second, lambda: server.read_state(second, at=2.0))

    assert read is None
    assert books.server.handling == []
    answered = books.server.answer(second, lambda: server.send_result(second, RESULT))
    assert answered is False


def test_a_subscription_is_in_order() -> None:
    """A subscription must wait, be served, and end by either side."""
    books = Books()
    subscription = books.listen()
    [listener] = books.server.listeners
    books.server.attempt(lambda: books.pair.server.publish(ToolsListChanged()))
    books.deliver()
    assert books.end(listener) is True
    assert books.end(listener) is False
    books.deliver()
    assert books.client.waiting == []
    assert books.client.cancel(subscription) is False

    second = books.listen()
    assert books.client.cancel(second) is True
    books.deliver()
    assert books.server.listeners == []


def test_a_subscription_taken_by_hand_is_in_order() -> None:
    """The request must stay open until it is acknowledged, once."""
    books = Books(server_config=BY_HAND)
    subscription = books.listen()
    [request] = books.server.handling
    assert isinstance(books.acknowledge(request), Listener)
    assert books.server.handling == []
    assert isinstance(books.acknowledge(request), LocalProtocolError)
    books.deliver()
    assert len(books.server.listeners) == 1
    books.client.cancel(subscription)
    books.deliver()
    assert books.acknowledge(request) is None


def test_a_subscription_may_be_answered_with_an_error() -> None:
    """The caller that sent the error gets no event of the end."""
    books = Books(server_config=BY_HAND)
    books.listen()
    [request] = books.server.handling
    books.acknowledge(request)
    server = books.pair.server

    assert books.server.answer(request, lambda: server.send_error(request, -1, "no")) is True
    assert books.server.listeners == []
    books.deliver()
    assert books.client.waiting == []


def test_it_begins_with_subscriptions_that_are_served() -> None:
    """A checker may be attached in the middle of a conversation."""
    pair = Pair(revision=MODERN)
    pair.client.listen({"toolsListChanged": True})
    pair.deliver()
    pair.clear_events()

    assert len(Checker(pair.server).listeners) == 1


# ---------------------------------------------------------------------------------- what is wrong


def test_going_on_without_a_question_is_noticed() -> None:
    """Each ending with questions may have one retry, with a handle of its own."""
    books = Books()
    call, request = books.ask()
    broken(lambda: books.client.provide(call, lambda: call), "has no open questions, but")
    books.require(request)
    books.deliver()
    broken(lambda: books.client.provide(call, lambda: call), "has the handle of the last one")


def test_a_round_of_another_method_is_noticed() -> None:
    """The retry must have the method of the first round."""
    books = Books("2025-11-25")
    _, request = books.ask()
    books.require(request)
    twin = Books("2025-11-25")
    client = twin.pair.client
    twin.client.ask(lambda: client.send_request("prompts/get", {"name": "p"}))
    twin.deliver()
    [other] = twin.server.handling

    broken(lambda: books.server._see(RequestReceived(request=other)), "is not the next round of")


def test_a_refusal_with_a_state_is_noticed() -> None:
    """A state must either be valid, or end its request."""
    books = Books()
    _, request = books.ask()

    def both() -> str:
        books.pair.server.send_error(request, -1, "no")
        return "state"

    broken(lambda: books.server.read_state(request, both), "a state was returned, but")


def test_wrong_acknowledgements_are_noticed() -> None:
    """`acknowledge` must return a listener once, and None after the end."""
    books = Books(server_config=BY_HAND)
    books.listen()
    [request] = books.server.handling
    broken(lambda: books.server.acknowledge(request, lambda: None), "None for")
    books.server.handling.clear()
    broken(lambda: books.acknowledge(request), "is not open, but was acknowledged")


def test_wrong_ends_of_subscriptions_are_noticed() -> None:
    """The end must return True for an open subscription only."""
    books = Books()
    books.listen()
    [listener] = books.server.listeners
    broken(lambda: books.server.end_listener(listener, lambda: False), "could not be ended")
    broken(lambda: books.server.end_listener(listener, lambda: True), "is still open")
    books.server.listeners.clear()
    broken(lambda: books.end(listener), "did not return False")
    removed = ListenerRemoved(listener=listener, cause=CancelCause.PEER)
    broken(lambda: books.server._see(removed), "that was not served")


def test_subscriptions_behind_its_back_are_noticed() -> None:
    """A subscription that the checker does not know could not be checked."""
    books = Books()
    books.listen()
    books.server.listeners.clear()
    broken(books.server.check, "are served, but")

    books = Books()
    books.listen()
    books.pair.server.publish(ToolsListChanged())
    books.pair.deliver()
    books.client.waiting.clear()
    broken(books.client.take_events, "names a handle that is not open")


def test_subscriptions_have_bounds() -> None:
    """A server must not serve more subscriptions than its limit."""
    books = Books(server_config=Config(max_subscriptions=2))
    books.listen(toolsListChanged=True)
    books.listen(toolsListChanged=True)
    check_bounds(books.pair.server)
    broken(lambda: check_bounds(books.pair.server, Config(max_subscriptions=1)), "2 subscriptions")
