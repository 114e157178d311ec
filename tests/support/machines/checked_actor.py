"""An actor for explorations that checks every verb against the promises of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sansmcp import ClientConnection, Event, LocalProtocolError, ServerConnection, State
from sansmcp.testing import Actor, Handle
from tests.support.machines.checker import Checker
from tests.support.machines.promises import demand

_CHECKED_BY: Final[dict[str, Callable[..., Any]]] = {
    "acknowledge": Checker.acknowledge,
    "complete_task": Checker.change_task,
    "create_task": Checker.create_task,
    "end_listener": Checker.end_listener,
    "provide_input": Checker.provide,
    "require_input": Checker.require_input,
    "require_task_input": Checker.change_task,
    "send_error": Checker.answer,
    "send_progress": Checker.progress,
    "send_result": Checker.answer,
}
"""Calls a verb and checks it. The first argument is the handle of the verb."""


class CheckedActor(Actor):
    """An actor that records its side, and compares the record with the connection all the time.

    Attributes:
        checker: The record, with the checks.
    """

    def __init__(self, connection: ClientConnection | ServerConnection, n_scripts: int) -> None:
        super().__init__(connection, n_scripts)
        self.checker = Checker(connection)

    def ask(self, send: Callable[[Any], Handle]) -> Handle:
        return self._sent(self.checker.ask(lambda: send(self.connection)))

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        def act() -> Any:
            return getattr(self.connection, verb)(*arguments, **options)

        if verb in ("close", "send_failed"):
            return act()
        if verb == "cancel":
            done = self.checker.cancel(*arguments, **options)
        elif verb in _CHECKED_BY:
            done = _CHECKED_BY[verb](self.checker, arguments[0], act)
        else:
            done = self.checker.attempt(act)
        if verb == "provide_input":
            return self._sent(done)
        if isinstance(done, LocalProtocolError):
            raise done
        return done

    def _sent(self, handle: Handle | LocalProtocolError) -> Handle:
        """The handle of a message that was sent, which needs an open connection."""
        if isinstance(handle, LocalProtocolError):
            raise handle
        state = self.connection.state
        demand(state is State.OPEN, f"{handle!r} was sent while {state.name}")
        return handle

    def take_events(self) -> list[Event]:
        events = self.checker.take_events()
        for event in events:
            self.note(event)
        return events
