"""The tasks that were seen, and what was told of each.

A *moment* is the number of a request or of news of a task, among all that share a table: the
exchanges of 2026-07-28 over HTTP are conversations of their own, and share one. The state in a
response was read after its request had passed. So it is certainly newer than all that was seen
before that request, and possibly older than what was seen since.
"""

from __future__ import annotations

import json
from binascii import crc32
from typing import Any, Final

import attrs

from .._rules.sending import Breach
from .._rules.state_tables import TaskStatus
from .._rules.tasks import judge_change
from .._spec.methods import Method
from .._wire.values import MISSING, JSONObject, Missing, Side

_NONE: Final[frozenset[str]] = frozenset()


@attrs.define(eq=False, repr=False)
class SeenQuestion:
    """A question of a task of 2026-07-28.

    Attributes:
        method: Its method.
        digest: A number that two different questions hardly share; None: it has none.
        moment: When it was first seen.
        gone: When the task was first seen without it; 0: it was not.
    """

    method: str
    digest: int | None
    moment: int
    gone: int = 0


@attrs.define(eq=False, repr=False)
class SeenTask:
    """What was told of one task.

    Attributes:
        id: Its id.
        is_modern: Whether it is a task of 2026-07-28.
        method: The method of its request; None where that was not seen.
        spec: The definition of that method; None where that was not seen.
        asked_at: When its request was seen, in seconds; None without times.
        place: The place of its `CreateTaskResult` in the conversation; 0 where that was not seen.
        ttl_ms: Its time to live as it was told last; None: without end.
        was_found: Whether a `tasks/get` for it has succeeded.
        status: Its status as it was told last; None: some final one, or none was told.
        final: The moment at which it was first told as over; 0: it was not.
        final_by: The conversation in which that was told.
        result_is_error: Whether its result, which was seen, says that it is an error.
        gates: The gates that the client has opened with any request that names it.
        questions: By key: the questions that were seen; None where one was forgotten, and after the
            end.
        waiting: The keys of those that the latest state had.
    """

    id: str
    is_modern: bool
    method: str | None = None
    spec: Method | None = None
    asked_at: float | None = None
    place: int = 0
    ttl_ms: Any = MISSING
    was_found: bool = False
    status: TaskStatus | None = None
    final: int = 0
    final_by: object = None
    result_is_error: bool = False
    gates: frozenset[str] = _NONE
    questions: dict[str, SeenQuestion] | None = attrs.field(factory=dict[str, SeenQuestion])
    waiting: dict[str, SeenQuestion] = attrs.field(factory=dict[str, SeenQuestion])

    def is_kept(self, now: float | None) -> bool:
        """Whether its time to live is certainly not over.

        It was made after its request had passed, so it is not older than that.
        """
        ttl: float | Missing | None = self.ttl_ms
        if ttl is None:
            return True
        if isinstance(ttl, Missing) or now is None or self.asked_at is None:
            return False
        return (now - self.asked_at) * 1000 < ttl

    def tell(self, status: TaskStatus | None, since: int, moment: int, by: object) -> Breach | None:
        """Take news of the status.

        Args:
            status: The status; None: some final one.
            since: The news are certainly newer than what was seen up to this moment.
            moment: The present moment.
            by: The conversation.

        Returns:
            The breach, if the task cannot have come to this status.
        """
        if self.final:
            if self.status is None and (status is None or status.is_final):
                self.status = status
            elif status is not None and since >= self.final:
                return judge_change(self.status, status, self.is_modern)
            return None
        self.status = status
        if status is None or status.is_final:
            self.final, self.final_by = moment, by
        return None


class TaskTable:
    """The latest tasks of a side, or of all conversations with an HTTP endpoint.

    Attributes:
        n_questions: The questions of all tasks.
    """

    __slots__ = ("_max", "_moment", "_tasks", "n_questions")

    def __init__(self, max_tasks: int) -> None:
        self._max = max_tasks
        self._tasks: dict[tuple[Side, bool, str], SeenTask] = {}
        self._moment = 0
        self.n_questions = 0

    def next_moment(self) -> int:
        """The number of the present moment."""
        self._moment += 1
        return self._moment

    def find(self, owner: Side, is_modern: bool, task_id: str) -> SeenTask | None:
        """A task of this side; None: it was not seen, or was forgotten."""
        return self._tasks.get((owner, is_modern, task_id))

    def add(self, owner: Side, task: SeenTask) -> bool:
        """Remember a task, also in place of one with the same id.

        Returns:
            Whether there was room; if not, the oldest was forgotten.
        """
        key = owner, task.is_modern, task.id
        former = self._tasks.pop(key, None)
        if former is not None:
            self.drop_questions(former)
        self._tasks[key] = task
        if len(self._tasks) <= self._max:
            return True
        self.drop_questions(self._tasks.pop(next(iter(self._tasks))))
        return False

    def add_question(self, task: SeenTask, key: str, question: SeenQuestion) -> bool:
        """Remember a question of a task.

        Returns:
            Whether there was room; if not, all questions of the task were forgotten.
        """
        assert task.questions is not None  # else they are not judged
        if self.n_questions >= self._max:
            self.drop_questions(task)
            return False
        self.n_questions += 1
        task.questions[key] = question
        return True

    def drop_questions(self, task: SeenTask) -> None:
        """Forget the questions of a task."""
        self.n_questions -= len(task.questions or ())
        task.questions = None
        task.waiting.clear()


def digest_of(question: JSONObject) -> int | None:
    """A number that two different questions hardly share; None for one that is too deep."""
    try:
        return crc32(json.dumps(question, sort_keys=True).encode())
    except (ValueError, RecursionError):
        return None
