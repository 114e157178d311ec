"""The turns of tasks: how many work at a time, on a loop with `async`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .loop import Event


class Turn:
    """The turn of one task, which its work holds except while it waits for answers.

    Args:
        begin: Called once, when the task has its turn for the first time.

    Attributes:
        is_held: Whether the task has its turn.
        is_over: Whether the task has ended: it needs no turn any more.
        has_come: Set when a task that waits for answers may go on. None before the first wait.
    """

    __slots__ = ("_begin", "has_come", "is_held", "is_over")

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin: Callable[[], object] | None = begin
        self.is_held: bool = False
        self.is_over: bool = False
        self.has_come: Event | None = None

    def come(self) -> None:
        """Let the work of the task begin, or go on."""
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()
        elif self.has_come is not None:
            self.has_come.set()


class Turns:
    """Gives turns to a limited number of tasks; the others wait, in the order of their requests.

    Tasks that go on come before those that have not begun: people have answered their questions.

    Args:
        most: The number of turns.
        new_event: Makes an event of the loop.
    """

    def __init__(self, most: int, new_event: Callable[[], Event]) -> None:
        self._most: Final = most
        self._new_event: Final = new_event
        self._n_held = 0
        self._going_on: dict[Turn, None] = {}  # those that have begun, which come first
        self._waiting: dict[Turn, None] = {}
        self._is_giving = False

    def request(self, turn: Turn) -> None:
        """Let a task begin now, or after those that wait for their turn."""
        self._waiting[turn] = None
        self._give()

    def pause(self, turn: Turn) -> None:
        """Give the turn of a task that waits for answers to another task."""
        if turn.is_held:
            turn.is_held = False
            turn.has_come = self._new_event()
            self._n_held -= 1
            self._give()

    async def resume(self, turn: Turn) -> None:
        """Wait for the turn of a task that goes on, after those that want to go on before it."""
        while not (turn.is_held or turn.is_over):
            assert turn.has_come is not None
            self._going_on[turn] = None
            self._give()
            await turn.has_come.wait()

    def take(self, turn: Turn) -> None:
        """Let a task go on at once, since its wait was cancelled: it cannot wait for its turn.

        There may be more than the limit then; the next task waits until there are fewer.
        """
        if not (turn.is_held or turn.is_over):
            self._going_on.pop(turn, None)
            self._hold(turn)

    def end(self, turn: Turn) -> None:
        """Note the end of a task, which has its turn, or waits for it."""
        turn.is_over = True
        self._going_on.pop(turn, None)
        self._waiting.pop(turn, None)
        if turn.has_come is not None:
            turn.has_come.set()
        if turn.is_held:
            turn.is_held = False
            self._n_held -= 1
            self._give()

    def _hold(self, turn: Turn) -> None:
        turn.is_held = True
        self._n_held += 1
        try:
            turn.come()
        except BaseException:
            self.end(turn)  # nobody else can give it back
            raise

    def _give(self) -> None:
        """Give the turns that are free. A call within another one leaves that to it."""
        if self._is_giving:
            return
        self._is_giving = True
        try:
            while self._n_held < self._most and (queue := self._going_on or self._waiting):
                turn = next(iter(queue))
                del queue[turn]
                self._hold(turn)
        finally:
            self._is_giving = False
