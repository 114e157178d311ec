"""Scripts for an exploration: short sequences of steps that one side takes, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from sansmcp import (
    Change,
    ClientConnection,
    Event,
    IncomingRequest,
    JSONObject,
    Listener,
    ListenerAdded,
    Listing,
    LocalProtocolError,
    OutgoingRequest,
    Phase,
    RequestReceived,
    ServerConnection,
    State,
    Subscription,
)

from ._books import Handle
from ._checker import Checker
from ._promises import demand


class Actor(Checker):
    """One side in an exploration, with what its steps need to remember.

    Attributes:
        asked: What this side has asked, by the names that its steps gave.
        received: Every request of the peer that was delivered, in order.
        served: Every subscription of the peer that was acknowledged, in order.
        positions: How many steps of each script were taken.
    """

    def __init__(self, connection: ClientConnection | ServerConnection, n_scripts: int) -> None:
        super().__init__(connection)
        self.asked: dict[str, Handle] = {}
        self.received: list[IncomingRequest] = []
        self.served: list[Listener] = []
        self.positions: list[int] = [0] * n_scripts

    def _see(self, event: Event) -> None:
        super()._see(event)
        if isinstance(event, RequestReceived):
            self.received.append(event.request)
        elif isinstance(event, ListenerAdded):
            self.served.append(event.listener)


def _always(_actor: Actor) -> bool:
    return True


@attrs.frozen
class Step:
    """One thing that a side does, at any moment from which on it can be done.

    Attributes:
        name: What the trace of a failure calls it.
        act: Does it. It is given a copy of the side, so all that it remembers has to be there.
        ready: Whether it can be done already. It must not change anything.
    """

    name: str
    act: Callable[[Actor], Any]
    ready: Callable[[Actor], bool] = _always


Script: TypeAlias = Sequence[Step]
"""Steps that are taken in order, with anything at all in between."""


def ask(name: str, send: Callable[[Any], Handle], ready: Callable[[Actor], bool] = _always) -> Step:
    """Send something that returns a handle; where the connection is over, it must raise.

    Args:
        name: What later steps call it.
        send: Is given the connection, and returns the handle.
        ready: Whether it can be sent already.
    """

    def act(actor: Actor) -> None:
        handle = actor.ask(lambda: send(actor.connection))
        is_open = actor.connection.state is State.OPEN
        demand(
            isinstance(handle, LocalProtocolError) != is_open,
            f"{name} gave {handle!r} while {actor.connection.state.name}",
        )
        if not isinstance(handle, LocalProtocolError):
            actor.asked[name] = handle

    return Step(f"ask {name}", act, ready)


def _may_ask(actor: Actor) -> bool:
    connection = actor.connection
    return connection.phase is Phase.OPERATING or connection.state is not State.OPEN


def request(name: str, method: str, params: JSONObject | None = None, **options: Any) -> Step:
    """`send_request`, from the end of the opening on.

    Args:
        name: What later steps call it.
        method: The method name.
        params: The params object.
        options: Those of the verb.
    """

    def send(connection: ClientConnection | ServerConnection) -> OutgoingRequest:
        return connection.send_request(method, params, **options)

    return ask(name, send, _may_ask)


def listen(name: str, notifications: JSONObject, **options: Any) -> Step:
    """`listen`, from the end of the opening on.

    Args:
        name: What later steps call it.
        notifications: What to listen to.
        options: Those of the verb.
    """
    return ask(name, lambda client: client.listen(notifications, **options), _may_ask)


def provide_input(
    name: str, responses: Mapping[str, JSONObject], *, renewed: str, **options: Any
) -> Step:
    """`provide_input`, once the server has asked about what was asked under this name.

    Args:
        name: Whose questions are answered.
        responses: The answers, by the server's keys.
        renewed: What later steps call the next round.
        options: Those of the verb.
    """

    def act(actor: Actor) -> None:
        call: Any = actor.asked[name]
        client: Any = actor.connection
        handle = actor.provide(call, lambda: client.provide_input(call, responses, **options))
        is_open = actor.connection.state is State.OPEN
        demand(
            isinstance(handle, LocalProtocolError) != is_open,
            f"{renewed} gave {handle!r} while {actor.connection.state.name}",
        )
        if not isinstance(handle, LocalProtocolError):
            actor.asked[renewed] = handle

    def is_asked(actor: Actor) -> bool:
        return any(actor.asked.get(name) is call for call in actor.questioned)

    return Step(f"provide input for {name}", act, is_asked)


def cancel(name: str) -> Step:
    """Cancel what was asked under this name. Where it could not even be asked, do nothing."""

    def act(actor: Actor) -> None:
        handle = actor.asked.get(name)
        if isinstance(handle, OutgoingRequest | Listing | Subscription):
            done = actor.cancel(handle)
            demand(not isinstance(done, LocalProtocolError), f"cancelling raised: {done}")

    return Step(f"cancel {name}", act)


def _of(number: int) -> Callable[[Actor], bool]:
    return lambda actor: len(actor.received) > number


def progress(number: int, value: float) -> Step:
    """Send progress for the request of the peer with this number, counted from 0."""

    def act(actor: Actor) -> None:
        handle = actor.received[number]
        done = actor.progress(handle, lambda: actor.connection.send_progress(handle, value))
        demand(not isinstance(done, LocalProtocolError), f"progress raised: {done}")

    return Step(f"progress {value} of #{number}", act, _of(number))


def answer(number: int, result: JSONObject) -> Step:
    """Answer the request of the peer with this number, counted from 0."""

    def act(actor: Actor) -> None:
        handle = actor.received[number]
        done = actor.answer(handle, lambda: actor.connection.send_result(handle, result))
        demand(not isinstance(done, LocalProtocolError), f"answering raised: {done}")

    return Step(f"answer #{number}", act, _of(number))


def refuse(number: int, code: int = -32603, message: str = "no") -> Step:
    """Answer the request of the peer with this number, counted from 0, with an error."""

    def act(actor: Actor) -> None:
        handle = actor.received[number]
        done = actor.answer(handle, lambda: actor.connection.send_error(handle, code, message))
        demand(not isinstance(done, LocalProtocolError), f"refusing raised: {done}")

    return Step(f"refuse #{number}", act, _of(number))


def require_input(number: int, questions: Mapping[str, JSONObject], **options: Any) -> Step:
    """`require_input` for the request of the peer with this number, counted from 0.

    Args:
        number: Which request; its next round has a number of its own.
        questions: What to ask, by keys.
        options: Those of the verb.
    """

    def act(actor: Actor) -> None:
        handle = actor.received[number]
        server: Any = actor.connection
        done = actor.require_input(
            handle, lambda: server.require_input(handle, questions, **options)
        )
        demand(not isinstance(done, LocalProtocolError), f"asking raised: {done}")

    return Step(f"ask about #{number}", act, _of(number))


def publish(change: Change) -> Step:
    """`publish` a change, whether or not anybody listens."""

    def act(actor: Actor) -> None:
        server: Any = actor.connection
        done = actor.attempt(lambda: server.publish(change))
        demand(not isinstance(done, LocalProtocolError), f"publishing raised: {done}")

    return Step(f"publish {change}", act)


def acknowledge(number: int, notifications: JSONObject | None = None) -> Step:
    """`acknowledge` the request of the peer with this number, which is for a subscription.

    Args:
        number: Which request, counted from 0 (they are delivered where `Config.manual` says so).
        notifications: What of it is honoured; all by default.
    """

    def act(actor: Actor) -> None:
        handle = actor.received[number]
        server: Any = actor.connection
        done = actor.acknowledge(handle, lambda: server.acknowledge(handle, notifications))
        demand(not isinstance(done, LocalProtocolError), f"acknowledging raised: {done}")

    return Step(f"acknowledge #{number}", act, _of(number))


def end_listener(number: int) -> Step:
    """End the subscription of the peer with this number, counted from 0."""

    def act(actor: Actor) -> None:
        listener = actor.served[number]
        server: Any = actor.connection
        done = actor.end_listener(listener, lambda: server.end_listener(listener))
        demand(not isinstance(done, LocalProtocolError), f"ending raised: {done}")

    return Step(f"end listener #{number}", act, lambda actor: len(actor.served) > number)


def close() -> Step:
    """Close the connection from this side."""
    return Step("close", lambda actor: actor.connection.close())


def fail_sending() -> Step:
    """Find that nothing can be sent any more."""
    return Step("sending fails", lambda actor: actor.connection.send_failed())
