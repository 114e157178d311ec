"""Tasks of a client: work of a handler that goes on after its request was answered."""

from __future__ import annotations

import itertools
import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast, final

import attrs

from sansmcp import (
    MISSING,
    MODERN_REVISIONS,
    ErrorCode,
    IncomingRequest,
    JSONObject,
    JSONValue,
    LocalProtocolError,
    Missing,
    Peer,
    Task,
    Tasks,
)

from .anomalies import LOGGER
from .call import (
    INTERNAL_ERROR,
    Continued,
    RequireInput,
    ServerCallBase,
    ServerSide,
    ends_program,
    object_of,
)
from .errors import McpError, RequestTimeout

DEFAULT_RUNNING_TASKS: Final = 100
ENDED: Final = "the server has ended before the task"
"""The error of a task that was not done when its server ended."""
NOT_TURNED_ON: Final = (
    "the handler returned CreateTask, and tasks are not turned on: pass tasks=True"
)
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
_NEEDS_TASKS: Final[JSONObject] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
_UNANSWERABLE: Final = "this tool asks questions while it works, so its client needs tasks"
_UNDECLARED: Final = frozenset({"CAP-001", "CAP-002", "ELIC-005", "SAMP-004"})
"""The rules on questions for which the client has not declared a capability."""
_UNREACHABLE: Final = "the process that could ask the client has ended"
_NO_LOCK: Final = nullcontext()


@final
@attrs.frozen
class CreateTask:
    """The return value of a handler whose result takes long.

    A client that takes tasks gets one at once, and fetches the result when it is there. For any
    other client the work is done within its request, and it waits for the response. `on_request` of
    a client may return this, too, for a server of 2025-11-25 that asks for a task, and for one that
    does not; but not for the questions of a server of 2026-07-28.

    Attributes:
        work: Called with a `RunningTask`; returns the result, or raises `McpError`, as a handler
            does. On a loop it may be an async function, which is cancelled with the task.
        ttl_ms: Milliseconds for which the task is kept, from now on; None: without end. If it is
            not given, what the client asks for (2025-11-25), or `sansmcp.Tasks.ttl_ms`.
        poll_ms: Milliseconds that the client is to wait between two polls; None: that is not said.
            If it is not given, `sansmcp.Tasks.poll_ms`.
        message: What the task does first, for people; see `RunningTask.update`.
        may_restart: Whether the handler may be called again with the same request, by another
            worker of a cluster, if the one that works on the task dies or ends before the result
            is there. The work is done from its beginning, and a worker that has only been silent
            for long may still be at it. Questions that the client has answered get the same
            answers. Without this the task fails then. Where there is no `cluster=`, or a
            `task_store=`, nothing is restarted.
    """

    work: Callable[[Any], Any]
    ttl_ms: int | Missing | None = attrs.field(default=MISSING, kw_only=True)
    poll_ms: int | Missing | None = attrs.field(default=MISSING, kw_only=True)
    message: str | None = attrs.field(default=None, kw_only=True)
    may_restart: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not callable(self.work):
            raise TypeError(f"CreateTask takes a function of one argument, not {self.work!r:.80}")


@attrs.define(eq=False, kw_only=True)
class KeptRequest:
    """A request whose task another worker has begun, as calls see it.

    It has the properties of `sansmcp.IncomingRequest` that calls read, and stands for one.

    Attributes:
        method: The method name.
        params: The params object.
        peer: The client, as far as the task tells.
        principal: The principal of the request.
        data: The work on the task.
    """

    method: str
    params: JSONObject
    peer: Peer
    principal: object = attrs.field(repr=False)
    data: Any = attrs.field(default=None, repr=False)
    context: Final[None] = attrs.field(default=None, init=False, repr=False)
    log_level: Final[None] = attrs.field(default=None, init=False, repr=False)
    open: Final[bool] = attrs.field(default=False, init=False, repr=False)

    @property
    def revision(self) -> str | None:
        """The revision that the request is served at."""
        return self.peer.revision

    @property
    def peer_capabilities(self) -> JSONObject:
        """The capabilities of the client."""
        return self.peer.capabilities


def kept_call(call: ServerCallBase, principal: JSONValue) -> JSONObject:
    """What a task keeps, so that another worker can call its handler again.

    Args:
        call: The call of the handler.
        principal: The principal of its request, in the form in which workers carry it.
    """
    kept: JSONObject = {"params": call.params, "principal": principal}
    if call.input_responses:
        kept["input_responses"] = call.input_responses
    if (state := call.state) is not None:
        kept["state"] = state
    return kept


def read_kept(task: Task) -> JSONObject | None:
    """What `kept_call` has returned for a task; None: its handler may not be called again."""
    kept: JSONObject | None = json.loads(task.record.keep or b"null")
    return kept


class Asked:
    """Questions about a task that wait for their answers.

    Attributes:
        keys: The keys that the work has chosen, by those that the client sees.
        answers: The answers that have come, by the keys of the work.
        notify: Called when all answers have come.
    """

    __slots__ = ("answers", "keys", "notify")

    def __init__(self, keys: dict[str, str], notify: Callable[[], object]) -> None:
        self.keys = keys
        self.answers: JSONObject = {}
        self.notify = notify

    @property
    def is_answered(self) -> bool:
        """Whether all answers have come."""
        return len(self.answers) == len(self.keys)


class RunningTaskBase(Continued):
    """The work on a task of a client, or on a request of a client that takes no tasks.

    Args:
        connection: The core object that has the task.
        request: The request that became the task.
        task: The task; None: the client takes none, and waits for the response.
        clock: Tells the time, in seconds.
        wake: Called when output was added.

    Attributes:
        data: A slot for the runner of the work.
        request: The request that became the task.
        task: The task; None: the client takes none.
    """

    def __init__(
        self,
        connection: ServerSide,
        request: IncomingRequest,
        task: Task | None,
        clock: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._connection: Final = connection
        self._clock: Final = clock
        self._wake: Final = wake
        self._asked: list[Asked] = []
        self._used: set[str] = set()  # keys of questions
        self.request: Final = request
        self.task: Final = task
        self.data: Any = None
        self.input_responses: JSONObject = {}
        self.state: str | None = None
        self.is_restarted: bool = False
        self._is_released = False
        self._before: JSONObject = {}  # answers to questions that an earlier worker has asked
        self._waiting_before: JSONObject = {}  # such questions without an answer

    def restart(self, kept: JSONObject) -> None:
        """Go on where the handler of an earlier worker was called.

        Args:
            kept: What `read_kept` has returned.
        """
        assert self.task is not None
        record = self.task.record
        self.is_restarted = True
        self.input_responses = kept.get("input_responses", {})
        self.state = kept.get("state")
        self._before = json.loads(record.answers or b"{}")
        self._waiting_before = json.loads(record.questions or b"{}")
        # Other questions have been withdrawn, or had another answer than an object.
        self._used.update(key for key in record.keys if not self._was_asked(key))

    def release(self) -> None:
        """Leave the task to another worker: nothing that the work does here counts any more."""
        self._is_released = True

    @property
    def _lock(self) -> AbstractContextManager[object]:
        """The lock of the connection; without threads, a lock that does nothing."""
        return _NO_LOCK

    @property
    def id(self) -> str | None:
        """The id of the task; None if the client takes no tasks. It is a secret of the client."""
        return None if self.task is None else self.task.id

    @property
    def method(self) -> str:
        """The method of the request."""
        return self.request.method

    @property
    def params(self) -> JSONObject:
        """The params of the request, as `call.params` of its handler."""
        return self.request.params

    @property
    def capabilities(self) -> JSONObject:
        """The capabilities of the client: whether it can be asked something."""
        return self.request.peer.capabilities

    @property
    def open(self) -> bool:
        """Whether the result is still wanted."""
        if self.task is None:
            return self.request.open
        return self.task.open and not self._is_released

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Report how far the work is. Never blocks.

        It is sent as progress of the request where the client wants that and its revision allows it
        for tasks; and it becomes the status message of the task, which polls show.

        Args:
            progress: How much is done.
            total: How much there is to do, in the same unit.
            message: What is being done, for people; without it the numbers are the message.

        Returns:
            Whether the result is still wanted.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        with self._lock:
            if not self.is_restarted:
                self._connection.send_progress(
                    self.request, progress, total=total, message=message, now=self._clock()
                )
            if message is None:
                message = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        return self.update(message=message)

    def update(
        self, *, message: str | Missing | None = MISSING, ttl_ms: int | Missing | None = MISSING
    ) -> bool:
        """Change what the client is told about the task. Never blocks.

        Args:
            message: What the task does now, for people; None: nothing is said.
            ttl_ms: As for `CreateTask`. It counts from the creation of the task.

        Returns:
            Whether the result is still wanted.

        Raises:
            LocalProtocolError: A value is not valid.
        """
        with self._lock:
            if self.task is not None and not self._is_released:
                self._connection.update_task(
                    self.task, message=message, ttl_ms=ttl_ms, at=time.time(), now=self._clock()
                )
            self._wake()
            return self.open

    def take_settings(self, wanted: CreateTask, keep: JSONValue) -> None:
        """Take the settings that a handler gives a task which was made before it has returned.

        Args:
            wanted: What the handler has returned.
            keep: What the task keeps, so that its handler can be called again; None: nothing.

        Raises:
            LocalProtocolError: A setting is not valid.
        """
        settings: dict[str, Any] = {}
        if wanted.message is not None:
            settings["message"] = wanted.message
        if not self.is_restarted:
            settings |= {"ttl_ms": wanted.ttl_ms, "poll_ms": wanted.poll_ms}
            settings |= {} if keep is None else {"keep": keep}
        settings = {name: value for name, value in settings.items() if value is not MISSING}
        if self.task is None or not settings or not self.open:
            return
        with self._lock:
            update = self._connection.update_task
            try:
                update(self.task, **settings, at=time.time(), now=self._clock())
            except LocalProtocolError as error:
                if error.rule != "OWN-075":
                    raise
                # The client has been told a shorter time to live, and there is a limit to more.
                LOGGER.warning("a task of %.80r: %s", self.method, error.text)
                del settings["ttl_ms"]
                update(self.task, **settings, at=time.time(), now=self._clock())
            self._wake()

    # ------------------------------------------------------------------------------- questions

    def _ask(self, questions: Mapping[str, JSONObject], notify: Callable[[], object]) -> Asked:
        """Ask the client of a task. Called with the lock held.

        Raises:
            LocalProtocolError: A question is malformed.
            McpError: The client cannot answer.
            TypeError: This is the work on a task of a client.
        """
        assert self.task is not None
        if not hasattr(self._connection, "require_task_input"):
            raise TypeError("only the work on a task of a server can ask questions")
        keys = {self._unused(key, questions[key]): key for key in questions}
        asked = Asked(keys, notify)
        sent = {key: questions[own] for key, own in keys.items() if not self._was_asked(key)}
        if sent and self.is_restarted and self.request.revision not in MODERN_REVISIONS:
            raise McpError(ErrorCode.INTERNAL_ERROR, _UNREACHABLE)
        try:
            if sent or not questions:
                self._connection.require_task_input(
                    self.task, sent, at=time.time(), now=self._clock()
                )
        except LocalProtocolError as error:
            if error.needed is None:
                raise
            raise self._undeclared(error.text, error.needed) from None
        self._used.update(keys)
        self._asked.append(asked)
        self._wake()
        self.receive({key: answer for key, answer in self._before.items() if key in keys})
        return asked

    def _was_asked(self, key: str) -> bool:
        """Whether an earlier worker has asked the question with this key."""
        return key in self._before or key in self._waiting_before

    def _give_up(self, asked: Asked, method: str) -> RequestTimeout:
        """Wait no more for answers; return the exception. Called with the lock held."""
        if asked in self._asked:
            self._asked.remove(asked)
        return RequestTimeout(f"{method} was not answered in time")

    def _undeclared(self, text: str, needed: JSONObject) -> McpError:
        """The error for a client that has not declared what it needs to answer."""
        if self.request.revision in MODERN_REVISIONS:
            data: JSONObject = {"requiredCapabilities": needed}
            return McpError(ErrorCode.MISSING_CLIENT_CAPABILITY, text, data)
        return McpError(ErrorCode.INVALID_PARAMS, text)

    def _not_asked(self, error: LocalProtocolError) -> Exception:
        """The error for a question within a request that could not be sent."""
        return self._undeclared(error.text, {}) if error.rule in _UNDECLARED else error

    def _unused(self, key: Any, question: JSONObject) -> str:
        """A key that this task has not used: a key may be used once in the life of a task.

        An earlier worker may have used it for the same question, which is not asked again then.
        """
        names = itertools.chain((cast(str, key),), (f"{key}-{n}" for n in itertools.count(2)))
        return next(
            name
            for name in names
            if name not in self._used and self._waiting_before.get(name, question) == question
        )

    def receive(self, responses: Mapping[str, JSONObject]) -> None:
        """Take answers of the client."""
        for asked in self._asked:
            asked.answers |= {
                own: responses[key] for key, own in asked.keys.items() if key in responses
            }
        for asked in [asked for asked in self._asked if asked.is_answered]:
            self._asked.remove(asked)
            asked.notify()

    # ------------------------------------------------------------------------------- endings

    def finish(self, result: object) -> None:
        """End the task with the result of the work; one that cannot be sent is a failure."""
        assert self.task is not None
        if self._is_released:
            return
        try:
            self._connection.complete_task(
                self.task, object_of(result), at=time.time(), now=self._clock()
            )
        except Exception as error:
            self.fail(error)

    def fail(self, failure: BaseException) -> None:
        """End the task with an error, for an exception of the work: as that of a handler."""
        assert self.task is not None
        if self._is_released:
            return
        now, at = self._clock(), time.time()
        if isinstance(failure, McpError):
            try:
                self._connection.fail_task(
                    self.task, failure.code, failure.message, failure.data, at=at, now=now
                )
            except Exception as error:  # its code, message or data have no JSON form
                failure = error
            else:
                return
        if ends_program(failure):
            text = "the task of %.80r raised %.200r, which ends the program"
            LOGGER.warning(text, self.method, failure)
        else:
            LOGGER.error("the task of %.80r failed", self.method, exc_info=failure)
        self._connection.fail_task(
            self.task, ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR, at=at, now=now
        )

    @abstractmethod
    def ask(self, questions: Mapping[str, JSONObject]) -> Any:
        """Ask the client questions, and wait for all answers.

        The client may take as long as the task is kept. The same key may be used again later.

        Args:
            questions: As for `RequireInput`.

        Returns:
            The answers, by the keys of the questions.

        Raises:
            McpError: The client cannot answer: it has not declared the capability; or it takes no
                tasks, and its revision has no questions within a request.
            LocalProtocolError: There are no questions, or one is malformed.
        """

    def __repr__(self) -> str:
        return f"<RunningTask {self.task or self.request!r}>"


def check_questions(request: IncomingRequest, questions: Mapping[str, JSONObject]) -> None:
    """Raise unless a client without tasks can be asked these within its request.

    Raises:
        LocalProtocolError: There are none.
        McpError: The revision has no questions within a request.
    """
    if not questions:
        raise LocalProtocolError("XTASK-106", "no questions were given")
    if request.revision in MODERN_REVISIONS:
        raise McpError(ErrorCode.MISSING_CLIENT_CAPABILITY, _UNANSWERABLE, _NEEDS_TASKS)


def new_task(
    connection: ServerSide,
    request: IncomingRequest,
    wanted: object,
    now: float,
    keep: JSONValue = None,
) -> Task | None:
    """Answer a request with a new task.

    Args:
        connection: The core object.
        request: A request that accepts a task.
        wanted: What the handler has returned: its settings are used if it is a `CreateTask`.
        now: The time, in seconds.
        keep: What the task keeps, so that another worker can call the handler again; or None.

    Returns:
        The task; None: there are too many, and the request was refused.
    """
    settings: dict[str, Any] = {}
    if isinstance(wanted, CreateTask):
        names = ("ttl_ms", "poll_ms", "message")
        settings = {name: getattr(wanted, name) for name in names}
    return connection.create_task(request, **settings, keep=keep, at=time.time(), now=now)


def is_result(value: object) -> bool:
    """Whether a handler has returned a result, and no wish for input or for a task."""
    return not isinstance(value, RequireInput | CreateTask)


def task_settings(tasks: bool | Tasks) -> Tasks | None:
    """Return the settings for tasks; None if there are none.

    Raises:
        ValueError: The settings need a store that is not there.
    """
    if isinstance(tasks, Tasks):
        if tasks.store != "memory":
            raise ValueError("tasks are kept in memory here: Tasks.store must be 'memory'")
        return tasks
    return Tasks(entropy=os.urandom) if tasks else None
