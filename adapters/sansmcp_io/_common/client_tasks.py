"""Tasks of the server that a client follows: what is known of one, and what is told of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Generic, TypeVar, final

import attrs

from sansmcp import (
    ErrorReceived,
    FailureReason,
    InputRequired,
    JSONObject,
    OutgoingRequest,
    ResponseReceived,
    TaskUpdated,
)

from .call import ProgressHandler
from .endings import Outcome, result_of
from .errors import Refusal
from .stderr import StderrTail

_CANCELLATIONS: Final = (FailureReason.CANCELLED, FailureReason.TASK_CANCELLED)


@final
@attrs.frozen
class TaskUpdate:
    """The state of a task at one time.

    Attributes:
        status: `working`, `input_required`, `completed`, `failed` or `cancelled`.
        message: What the server says about it, for people; or None.
        task: The task as the server has told it, whose members differ between revisions.
    """

    status: str
    message: str | None
    task: JSONObject


class FollowedTask(ABC):
    """What is known of a task: the `data` of its request, which takes the events about it.

    Attributes:
        on_progress: Called with the progress that comes before the ending.
        is_closed: Whether exceptions of `on_progress` are logged, and end nothing.
        refusal: The refusal over HTTP, which is known before the ending that it causes.
        call: The request; None: it has no answer yet.
        task: The task as the server has told it last; None: there is none.
        changes: How often that has changed.
    """

    def __init__(self, method: str, on_progress: ProgressHandler | None) -> None:
        self.on_progress = on_progress
        self.is_closed: bool = False
        self.refusal: Refusal = Refusal()
        self.method = method
        self.call: OutgoingRequest | None = None
        self.task: JSONObject | None = None
        self.changes: int = 0
        self._asked: InputRequired | None = None
        self._ending: Outcome | None = None
        self._failure: BaseException | None = None

    # --------------------------------------------------------------------------- from the events

    def put(self, item: Outcome | InputRequired) -> None:
        """Take an answer to the request, or its ending."""
        self.call = item.request
        if isinstance(item, InputRequired):
            self._asked = item
        else:
            self._ending = item
        self._wake()

    def update(self, event: TaskUpdated) -> None:
        """Take a change of the task."""
        self.call, self.task = event.request, event.task
        self.changes += 1
        self._wake()

    def fail(self, error: BaseException) -> None:
        """Let the task end with an exception of the application."""
        if self._failure is None and self._ending is None:
            self._failure = error
            if self.call is not None:
                self._cancel(self.call)
            self._wake()

    @abstractmethod
    def _wake(self) -> None:
        """Wake all that wait for a change."""

    @abstractmethod
    def _cancel(self, call: OutgoingRequest) -> None:
        """Cancel the request, from within the handling of its events."""

    # -------------------------------------------------------------------------------- to waiters

    @property
    def is_over(self) -> bool:
        """Whether there is a result, or will be none."""
        return self._ending is not None or self._failure is not None

    @property
    def has_answer(self) -> bool:
        """Whether the request was answered: by a question, a task, or for good."""
        return self._asked is not None or self.task is not None or self.is_over

    def take_answer(self) -> Any:
        """Return the question about the request, or raise; None: there is a task, or the ending."""
        asked, self._asked = self._asked, None
        if self._failure is not None:
            raise self._failure
        return asked

    def is_newer(self, changes: int) -> bool:
        """Whether there were more changes than so many, or there will be none."""
        return self.changes > changes or self.is_over

    def update_after(self, changes: int) -> TaskUpdate | None:
        """The state of the task, if it has changed more often than this; else None."""
        task = self.task
        if task is None or self.changes <= changes:
            return None
        return TaskUpdate(task["status"], task.get("statusMessage"), task)

    def check_start(self, stderr: StderrTail | None) -> None:
        """Raise if the request has ended without a task, and without a result."""
        if self.task is None:
            self.result(stderr)

    def result(self, stderr: StderrTail | None) -> JSONObject:
        """Return the result, or raise the exception that says why there is none."""
        if self._failure is not None:
            raise self._failure
        assert self._ending is not None  # the caller has waited for it
        return result_of(self._ending, stderr)

    @property
    def status(self) -> str:
        """The status of the task, as far as it is known."""
        ending = self._ending
        if isinstance(ending, ResponseReceived):
            return "completed"
        if isinstance(ending, ErrorReceived):
            return "failed"
        if self._failure is not None or (ending is not None and ending.reason in _CANCELLATIONS):
            return "cancelled"
        status: str = "working" if self.task is None else self.task["status"]
        return status


FollowedT = TypeVar("FollowedT", bound=FollowedTask)


class ClientTaskBase(Generic[FollowedT]):
    """A task of the server that is followed: what is known of it."""

    _followed: FollowedT

    @property
    def id(self) -> str | None:
        """The id for `resume_task`. It is a secret. None: the server answered without a task."""
        call = self._followed.call
        return None if call is None else call.task_id

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._followed.method

    @property
    def status(self) -> str:
        """The status that is known last; of a task that was lost, the one before.

        `working`, `input_required`, `completed`, `failed` or `cancelled`.
        """
        return self._followed.status

    @property
    def message(self) -> str | None:
        """What the server says about the task, for people; or None."""
        task = self._followed.task
        return None if task is None else task.get("statusMessage")

    @property
    def open(self) -> bool:
        """Whether the task is still followed: there is no result, and there may be one."""
        return not self._followed.is_over

    def __repr__(self) -> str:  # without the id
        return f"<{type(self).__name__} {self.method} {self.status}>"
