"""Handles each event of a conversation, on any transport, without a loop.

Functions of the application are called by the threads that wait for something, never under the
lock. Requests of the peer may be handled by several threads at once, and by one thread while it
waits within the handler of another; notifications are handled one after the other, in order.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, cast

from sansmcp import (
    ConnectionClosed,
    ConnectionFailed,
    ErrorReceived,
    ErrorWithoutIdReceived,
    Event,
    IncomingRequest,
    InputRequired,
    LimitReached,
    ListenerAdded,
    ListenerRemoved,
    ListingEnded,
    MessageIgnored,
    NotificationReceived,
    PageReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestAnswered,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    State,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    TaskCancelled,
    TaskInputReceived,
    TaskInputRequired,
    TasksWanted,
    TaskToStore,
    TaskUpdated,
    TaskWanted,
)

from .._common.anomalies import LOGGER, AnomalyLog
from .._common.bounds import Allowance, memory_of
from .._common.call import HandlerResult, RequireInput, answer_failure, ends_program, not_async
from .._common.errors import CallCancelled
from .._common.tasks import CreateTask
from .._options.checks import SessionOptions
from ._mailbox import Mailbox
from ._tasks import TaskThreads
from ._waiting import WaitingThreads

if TYPE_CHECKING:
    from .._common.call import RequestingSide

Result: TypeAlias = HandlerResult | RequireInput | CreateTask

_MOST_NESTED: Final = 20
"""The number of handlers that may be nested in one thread. More would fill its stack."""
_NOTIFICATION: Final = "on_notification"
_PROGRESS: Final = "on_progress"
_MOST_NOTIFICATIONS: Final = 1_000
"""The number of notifications that may wait. Of more, the oldest is dropped."""
_ToTell: TypeAlias = tuple[str, Callable[[], object], int | None]
"""The name of a function for the log, the function, and the memory of a notification."""


class EventDispatcher(WaitingThreads):
    """Hands events to handlers and to callers that wait."""

    def __init__(
        self,
        side: RequestingSide,
        options: SessionOptions,
    ) -> None:
        super().__init__(side)
        self.handler: Final = options.handler
        self.context: Final = options.context
        self.request_timeout: Final = options.request_timeout
        self.tasks: Final = TaskThreads(
            self,
            side,
            options.handler,
            partial(options.call_type, self),
            options.most_running,
        )
        self.exit: BaseException | None = None  # of the work on a task, which ends the program
        self._on_notification = options.on_notification
        self._on_ready: Callable[[], object] | None = None
        self.is_ready: bool = False
        self.news: int = 0  # number of calls of functions of the application
        self.polls: int = 0  # number of threads in `poll`, which wait for such a call
        self._anomalies = AnomalyLog()
        self._requests: OrderedDict[IncomingRequest, None] = OrderedDict()
        self._asked: deque[TaskInputRequired] = deque()  # the questions of tasks
        self._allowance = Allowance(_MOST_NOTIFICATIONS, "notifications")
        self._to_tell: deque[_ToTell] = deque()
        self._is_telling = False

    def when_ready(self, function: Callable[[], object]) -> None:
        """Set the function that is called at the end of the handshake."""
        self._on_ready = function

    def tell(self, what: str, function: Callable[[], object]) -> None:
        """Call a function after the functions that were added before. Exceptions are logged."""
        self._to_tell.append((what, function, None))

    # ------------------------------------------------------------------------------ events

    def _dispatch(self) -> None:
        while (event := self._next_event()) is not None:
            self._handle_event(event)

    @abstractmethod
    def _next_event(self) -> Any:
        """Take the next event from the core, and trace it."""

    def _handle_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._requests[event.request] = None
            case RequestCancelled():
                self._requests.pop(event.request, None)
                for mailbox in event.request.data or ():
                    self._put(mailbox, event)
            case NotificationReceived():
                self._notified(event)
            case ResponseReceived() | ErrorReceived() | RequestFailed() | InputRequired():
                self._put(event.request.data, event)
            case ProgressReceived():
                self._progressed(event)
            case PageReceived() | ListingEnded():
                self._put(event.listing.data, event)
            case Ready():
                self._became_ready(event)
            case ConnectionFailed():
                self._put(event.start.data, event)
            case ConnectionClosed():
                self.sending.ended_by = event.cause
                self._requests.clear()
                self._asked.clear()
                self.ring_all()
            case PingEnded():
                self._put(event.ping.data, event)
            case SubscriptionAcknowledged() | SubscriptionEnded():
                event.subscription.data.put(event)
            case RequestAnswered() | ListenerAdded() | ListenerRemoved():
                pass
            case TaskInputReceived():
                self.tasks.answered(event)
            case TaskCancelled():
                self.tasks.ended(event)
            case TaskWanted() | TasksWanted() | TaskToStore():
                pass  # tasks are kept in memory here
            case TaskUpdated():
                event.request.data.update(event)
            case TaskInputRequired():
                self._asked.append(event)
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, time.monotonic())
            case _:
                assert_never(event)

    def _put(self, mailbox: Mailbox[Any], item: object) -> None:
        mailbox.put(item)
        self.ring(mailbox)

    def _progressed(self, event: ProgressReceived) -> None:
        mailbox: Mailbox[Any] = event.request.data
        on_progress = mailbox.on_progress
        if on_progress is None:
            return
        progress = (event.progress, event.total, event.message)
        if mailbox.is_closed:  # of a task, whose request was answered
            self._tell_notified(_PROGRESS, partial(on_progress, *progress), event.message)
        else:
            mailbox.put_progress(progress)
            self.ring(mailbox)

    def _became_ready(self, event: Ready) -> None:
        self.is_ready = True
        on_ready, self._on_ready = self._on_ready, None  # a handshake may follow requests
        if on_ready is not None:
            self.tell("on_ready", on_ready)
        if event.start is not None:
            self._put(event.start.data, event)
        self.ring_all()

    def _notified(self, event: NotificationReceived) -> None:
        if event.subscription is not None:
            event.subscription.data.put(event)
            self.news += 1
            return
        handler = self._on_notification
        if handler is not None:
            function = partial(handler, event.method, event.params)
            self._tell_notified(_NOTIFICATION, function, event.params)

    def _tell_notified(self, what: str, function: Callable[[], object], content: object) -> None:
        """Let a notification wait for its handler; with too many, the oldest is dropped."""
        size = memory_of(content)
        if self._allowance.admit(size, self._drop_oldest):
            self._to_tell.append((what, function, size))

    def _drop_oldest(self) -> int:
        for index, (_, _, size) in enumerate(self._to_tell):
            if size is not None:
                del self._to_tell[index]
                return size
        raise AssertionError  # not called while no notification waits

    # -------------------------------------------------------------------------------- jobs

    def _next_callback(self) -> Callable[[], None] | None:
        if getattr(self._local, "only_reads", False):
            self._ring_some(len(self._requests) + len(self._asked) + self._has_to_tell)
            return None
        if self._is_ending:
            return None
        if self._has_to_tell:
            return self._tell_next
        if not (self._requests or self._asked) or self._nesting >= _MOST_NESTED:
            return None
        if not self.sending.has_room:
            self._is_crowded = True  # the thread that makes room wakes the reading one
            return None
        if self._asked:
            return partial(self._nested, self._answer_task, self._asked.popleft())
        request, _ = self._requests.popitem(last=False)
        return partial(self._nested, self._serve, request)

    def work(self) -> None:
        """Call all functions of the application that can be called now."""
        while (job := self._next_callback()) is not None:
            self._pass_on()
            job()

    def tell_all(self) -> None:
        """Call all functions that wait, unless this or another thread is inside one of them."""
        while self._has_to_tell:
            self._pass_on()
            self._tell_next()

    @property
    def _has_to_tell(self) -> bool:
        return bool(self._to_tell) and not self._is_telling

    @property
    def _nesting(self) -> int:
        """The number of handlers that this thread is within."""
        nesting: int = getattr(self._local, "nesting", 0)
        return nesting

    def _tell_next(self) -> None:
        what, function, size = self._to_tell.popleft()
        if size is not None:
            self._allowance.begin()
        self._is_telling = True
        try:
            self._call_logged(what, function)
        finally:
            self._is_telling = False
            if size is not None:
                self._allowance.end(size)
            self._add_news()

    def _add_news(self) -> None:
        """Count a call of a function of the application, and wake the threads in `poll`."""
        self.news += 1
        if self.polls:
            self.ring_all()
            self._wake_reader()

    def _call_logged(self, what: str, function: Callable[[], object]) -> None:
        """Call a function of the application for which no caller waits."""
        try:
            not_async(self._without_lock(function), what)
        except Exception as error:
            LOGGER.error("%s failed", what, exc_info=error)

    def _nested(self, function: Callable[[Any], None], subject: object) -> None:
        """Call a function that calls the handler."""
        self._local.nesting = self._nesting + 1
        try:
            function(subject)
        finally:
            self._local.nesting -= 1
            self._add_news()
        self.turn()

    @abstractmethod
    def _answer_task(self, asked: TaskInputRequired) -> None:
        """Let the handler answer questions of a task of the server."""

    def _serve(self, request: IncomingRequest) -> None:
        """Let the handler answer a request of the peer."""
        request.data = list[Mailbox[Any]]()  # of the requests that belong to this request
        try:
            result = self._without_lock(self.tasks.handle, request)
        except BaseException as error:
            if request.open or not isinstance(error, CallCancelled):  # else no response is expected
                answer_failure(self.side, request, error, time.monotonic())
            if ends_program(error):
                self.turn()
                raise
        else:
            self.tasks.answer(request, result, time.monotonic())

    # ------------------------------------------------------------------------------- tasks

    def task_lock(self) -> AbstractContextManager[object]:
        """The lock of the session."""
        return self

    def look_for_tasks(self) -> float:
        """Read what has come, unless another thread does so."""
        self.look()
        return math.inf

    def after_task_step(self) -> None:
        """Do nothing: output is written when it is made."""

    def end_program(self, failure: BaseException) -> None:
        """End the connection; `serve_stdio` raises the exception of the work on a task."""
        if self.exit is None:
            self.exit = failure
        self.side.close(now=time.monotonic())

    def call(self, call: object) -> Result:
        """Let the handler answer a question."""
        self._pass_on()
        return cast(Result, not_async(self._without_lock(self.handler, call), "the handler"))

    def serve(self, *, only_reads: bool = False) -> None:
        """Serve until the connection has ended. If a handler raises SystemExit, all threads end.

        Args:
            only_reads: Let other threads that serve call the handlers.
        """
        self._local.only_reads = only_reads
        with self:
            try:
                self.wait(lambda: self.side.state is State.CLOSED)
            finally:
                self.side.close(now=time.monotonic())
                self.turn()
