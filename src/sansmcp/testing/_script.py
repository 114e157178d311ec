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
    InputRequired,
    JSONObject,
    Listener,
    ListenerAdded,
    Listing,
    LocalProtocolError,
    OutgoingRequest,
    Phase,
    Ping,
    RequestReceived,
    ServerConnection,
    Start,
    State,
    Subscription,
    Task,
    TaskInputRequired,
    TaskQuestion,
    TaskRecord,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)

from ._pair import drain

Handle: TypeAlias = OutgoingRequest | Listing | Ping | Start | Subscription
"""What a side has asked for; each has one ending."""


class Actor:
    """One side in an exploration, with what its steps need to remember.

    The steps of this module go through `ask` and `call`, so a subclass can look at each verb.

    Attributes:
        connection: The connection of this side.
        asked: What this side has asked, by the names that its steps gave.
        questioned: The requests of this side that ended with questions which are not answered yet.
        received: Every request of the peer that was delivered, in order.
        served: Every subscription of the peer that was acknowledged, in order.
        tasks: The tasks that this side has made, in order.
        task_questions: By request: the questions of its task that are not answered yet.
        lookups: What was asked of the store of tasks and is not answered yet, oldest first.
        records: The store: the records of tasks by id.
        positions: How many steps of each script were taken.
    """

    def __init__(self, connection: ClientConnection | ServerConnection, n_scripts: int) -> None:
        self.connection = connection
        self.asked: dict[str, Handle] = {}
        self.questioned: list[OutgoingRequest] = []
        self.received: list[IncomingRequest] = []
        self.served: list[Listener] = []
        self.tasks: list[Task] = []
        self.task_questions: dict[OutgoingRequest, list[str]] = {}
        self.lookups: list[TaskQuestion] = []
        self.records: dict[str, TaskRecord] = {}
        self.positions: list[int] = [0] * n_scripts

    def ask(self, send: Callable[[Any], Handle]) -> Handle:
        """Call a verb that returns a handle.

        Args:
            send: Is given the connection, and returns the handle.

        Raises:
            LocalProtocolError: The verb has refused.
        """
        return send(self.connection)

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """Call any other verb of the connection, by its name.

        Returns:
            What the verb returns.

        Raises:
            LocalProtocolError: The verb has refused.
        """
        return getattr(self.connection, verb)(*arguments, **options)

    def take_events(self) -> list[Event]:
        """Take all events of the connection, and remember what steps need of them."""
        events = drain(self.connection)
        for event in events:
            self.note(event)
        return events

    def note(self, event: Event) -> None:
        """Remember what steps need of an event."""
        match event:
            case RequestReceived():
                self.received.append(event.request)
            case ListenerAdded():
                self.served.append(event.listener)
            case InputRequired():
                self.questioned.append(event.request)
            case TaskInputRequired():
                self.task_questions.setdefault(event.request, []).extend(event.questions)
            case TaskWanted() | TasksWanted() | TaskToStore():
                self.lookups.append(event)
            case _:
                pass


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
    """Send something that returns a handle; where the connection is over, do nothing.

    Args:
        name: What later steps call it.
        send: Is given the connection, and returns the handle.
        ready: Whether it can be sent already.
    """

    def act(actor: Actor) -> None:
        _remember(actor, name, lambda: actor.ask(send))

    return Step(f"ask {name}", act, ready)


def _remember(actor: Actor, name: str, send: Callable[[], Handle]) -> None:
    """Send something, unless the connection is over, and remember its handle."""
    try:
        actor.asked[name] = send()
    except LocalProtocolError:
        if actor.connection.state is State.OPEN:
            raise


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
        actor.questioned.remove(call)
        _remember(actor, renewed, lambda: actor.call("provide_input", call, responses, **options))

    def is_asked(actor: Actor) -> bool:
        return any(actor.asked.get(name) is call for call in actor.questioned)

    return Step(f"provide input for {name}", act, is_asked)


def cancel(name: str) -> Step:
    """Cancel what was asked under this name. Where it could not even be asked, do nothing."""

    def act(actor: Actor) -> None:
        handle = actor.asked.get(name)
        if isinstance(handle, OutgoingRequest | Listing | Subscription):
            actor.call("cancel", handle)

    return Step(f"cancel {name}", act)


def _of(number: int) -> Callable[[Actor], bool]:
    return lambda actor: len(actor.received) > number


def progress(number: int, value: float) -> Step:
    """Send progress for the request of the peer with this number, counted from 0."""

    def act(actor: Actor) -> None:
        actor.call("send_progress", actor.received[number], value)

    return Step(f"progress {value} of #{number}", act, _of(number))


def answer(number: int, result: JSONObject) -> Step:
    """Answer the request of the peer with this number, counted from 0."""

    def act(actor: Actor) -> None:
        actor.call("send_result", actor.received[number], result)

    return Step(f"answer #{number}", act, _of(number))


def refuse(number: int, code: int = -32603, message: str = "no") -> Step:
    """Answer the request of the peer with this number, counted from 0, with an error."""

    def act(actor: Actor) -> None:
        actor.call("send_error", actor.received[number], code, message)

    return Step(f"refuse #{number}", act, _of(number))


def require_input(number: int, questions: Mapping[str, JSONObject], **options: Any) -> Step:
    """`require_input` for the request of the peer with this number, counted from 0.

    Args:
        number: Which request; its next round has a number of its own.
        questions: What to ask, by keys.
        options: Those of the verb.
    """

    def act(actor: Actor) -> None:
        actor.call("require_input", actor.received[number], questions, **options)

    return Step(f"ask about #{number}", act, _of(number))


def create_task(number: int, **options: Any) -> Step:
    """`create_task` for the request of the peer with this number, counted from 0.

    Args:
        number: Which request.
        options: Those of the verb.
    """

    def act(actor: Actor) -> None:
        task = actor.call("create_task", actor.received[number], **options)
        if task is not None:
            actor.tasks.append(task)

    return Step(f"make a task of #{number}", act, _of(number))


def _with_task(name: str, act: Callable[[Actor, Task], Any]) -> Step:
    """A step on the first task that this side has made; where its request is over, nothing."""

    def do(actor: Actor) -> None:
        if actor.tasks:
            act(actor, actor.tasks[0])

    def is_made(actor: Actor) -> bool:
        return bool(actor.tasks) or any(not request.open for request in actor.received)

    return Step(name, do, is_made)


def complete_task(result: JSONObject) -> Step:
    """`complete_task` with the first task that this side has made."""
    return _with_task("complete the task", lambda actor, task: _complete(actor, task, result))


def _complete(actor: Actor, task: Task, result: JSONObject) -> None:
    actor.call("complete_task", task, result)


def require_task_input(questions: Mapping[str, JSONObject]) -> Step:
    """`require_task_input` about the first task that this side has made."""

    def act(actor: Actor, task: Task) -> None:
        if actor.connection.state is State.OPEN:
            actor.call("require_task_input", task, questions)

    return _with_task("ask about the task", act)


def provide_task_input(name: str, responses: Mapping[str, JSONObject]) -> Step:
    """`provide_task_input`, once the task of what was asked under this name asks for it.

    Args:
        name: Whose task has asked.
        responses: The answers, by the keys of the questions.
    """

    def act(actor: Actor) -> None:
        call: Any = actor.asked[name]
        del actor.task_questions[call]
        actor.call("provide_task_input", call, responses)

    def is_asked(actor: Actor) -> bool:
        return actor.asked.get(name) in actor.task_questions

    return Step(f"answer the task of {name}", act, is_asked)


def answer_lookup() -> Step:
    """Answer the oldest question to the store of tasks, from the records of the actor."""

    def act(actor: Actor) -> None:
        asked = actor.lookups.pop(0)
        if isinstance(asked, TaskWanted):
            actor.call("provide_task", asked, actor.records.get(asked.task_id))
        elif isinstance(asked, TasksWanted):
            own = [one for one in actor.records.values() if one.owner == asked.owner]
            actor.call("provide_tasks", asked, own[: asked.limit])
        else:
            record, old = asked.record, actor.records.get(asked.record.id)
            fits = (0 if old is None else old.version) == record.version - 1
            if fits:
                actor.records[record.id] = record
            actor.call("task_stored", asked, fits)

    return Step("the store answers", act, lambda actor: bool(actor.lookups))


def fail_lookup() -> Step:
    """Fail the oldest question to the store of tasks, which cannot be reached."""

    def act(actor: Actor) -> None:
        actor.call("fail_task_lookup", actor.lookups.pop(0), "the store is gone")

    return Step("the store fails", act, lambda actor: bool(actor.lookups))


def lose_records() -> Step:
    """Lose all records of tasks: the store has begun anew."""
    return Step("the store loses its records", lambda actor: actor.records.clear())


def publish(change: Change) -> Step:
    """`publish` a change, whether or not anybody listens."""
    return Step(f"publish {change}", lambda actor: actor.call("publish", change))


def acknowledge(number: int, notifications: JSONObject | None = None) -> Step:
    """`acknowledge` the request of the peer with this number, which is for a subscription.

    Args:
        number: Which request, counted from 0 (they are delivered where `Config.manual` says so).
        notifications: What of it is honoured; all by default.
    """

    def act(actor: Actor) -> None:
        actor.call("acknowledge", actor.received[number], notifications)

    return Step(f"acknowledge #{number}", act, _of(number))


def end_listener(number: int) -> Step:
    """End the subscription of the peer with this number, counted from 0."""

    def act(actor: Actor) -> None:
        actor.call("end_listener", actor.served[number])

    return Step(f"end listener #{number}", act, lambda actor: len(actor.served) > number)


def close() -> Step:
    """Close the connection from this side."""
    return Step("close", lambda actor: actor.call("close"))


def fail_sending() -> Step:
    """Find that nothing can be sent any more."""
    return Step("sending fails", lambda actor: actor.call("send_failed"))
