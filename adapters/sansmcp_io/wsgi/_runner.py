"""An endpoint that threads share, with one lock; a thread that waits is woken by its own news.

The lock is held for calls into the core, which never wait, and never for functions of the
application. Work that belongs to a certain thread is left to it as a job. No thread is started to
keep time: one of the threads that wait does so for all, and so does each new request.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final, Protocol

from sansmcp import (
    ErrorReceived,
    ErrorWithoutIdReceived,
    IncomingRequest,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TaskCancelled,
    TaskInputReceived,
)
from sansmcp.http import (
    EventToStore,
    HTTPEvent,
    ReplayWanted,
    ServerEndpoint,
    Session,
    SessionEnded,
    ToolSchemaWanted,
)

from .._common.anomalies import LOGGER, AnomalyLog
from .._common.bounds import limit_of
from .._common.call import (
    NotificationHandler,
    not_async,
)
from .._common.endings import result_of, seconds_of
from .._common.errors import CallCancelled
from .._common.lookups import LookupOptions
from .._common.requests import RequestArguments
from ..blocking._mailbox import Item, Mailbox
from ..blocking._tasks import TaskThreads
from ._lookups import ThreadLookups

_Answer = ResponseReceived | ErrorReceived | RequestFailed


class ExchangeThread(Protocol):
    """The thread of one exchange, which is the `context` of the requests of that exchange."""

    jobs: list[Callable[[], None]]
    is_over: bool  # the thread of the exchange has ended its work

    def serve(self, request: IncomingRequest) -> None:
        """Let the handler answer a request."""
        ...

    def flush(self) -> None:
        """Write all output, if this is its thread."""
        ...


class _Sleeper:
    """A thread that sleeps until it is woken."""

    __slots__ = ("condition", "has_news")

    def __init__(self, lock: threading.RLock) -> None:
        self.condition: Final = threading.Condition(lock)
        self.has_news = False


class ThreadRunner:
    """Runs an endpoint in the threads of a WSGI server. All of them share it."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        *,
        on_notification: NotificationHandler | None,
        request_timeout: float,
        lookups: LookupOptions,
        handler: Callable[[Any], Any],
        make_call: Callable[[ThreadRunner, IncomingRequest], Any],
        most_running: int,
    ) -> None:
        self.endpoint: Final = endpoint
        self.tasks: Final = TaskThreads(
            self, endpoint, handler, partial(make_call, self), most_running
        )
        # It can be taken again by the thread that has it: what is logged under it may be sent to a
        # client by a handler of `logging`.
        self.lock: Final = threading.RLock()
        self._on_notification: Final = on_notification
        self._request_timeout: Final = request_timeout
        self._anomalies: Final = AnomalyLog()
        self.lookups: Final = ThreadLookups(self, lookups)
        # Each thread that waits, by what it waits for; one of them keeps the time for all.
        self._sleepers: Final[dict[object, dict[_Sleeper, None]]] = {}
        self._asleep: Final[dict[_Sleeper, None]] = {}
        self._keeper: _Sleeper | None = None
        self._planned = math.inf  # when the keeper will call `keep_time`

    # ---------------------------------------------------------------------------- turning

    def turn(self, here: ExchangeThread | None = None) -> None:
        """Hand out all events, and wake the threads that they concern. Called with the lock held.

        To be called after each call into the core.

        Args:
            here: The exchange of this thread, which does the work that belongs to no other.
        """
        endpoint = self.endpoint
        while (event := endpoint.next_event()) is not None:
            self._handle_event(event, here)
        ready = endpoint.ready()
        if not self._asleep:
            return
        for exchange in ready:
            self.wake(exchange.context)
        if self in self._sleepers and not self._is_busy:
            self.wake(self)
        deadline = endpoint.next_timeout()
        if self._keeper is not None and deadline is not None and deadline < self._planned:
            self._keeper.condition.notify()

    @property
    def _is_busy(self) -> bool:
        """Whether requests or tasks are open whose results the end of the server waits for."""
        return bool(self.endpoint.open_requests) or self.tasks.is_working

    def wake(self, subject: object) -> None:
        """Wake the threads that wait for this, if there are any. Called with the lock held."""
        for sleeper in self._sleepers.get(subject, ()):
            sleeper.has_news = True
            sleeper.condition.notify()

    def _handle_event(self, event: HTTPEvent, here: ExchangeThread | None) -> None:
        match event:
            case RequestReceived():
                thread: ExchangeThread = event.request.context
                if thread.is_over and here is not None:
                    thread = here  # another round of a request whose client has let go
                thread.jobs.append(partial(thread.serve, event.request))
                self.wake(thread)
            case RequestCancelled():
                self.wake(event.request.context)
            case TaskInputReceived():
                self.tasks.answered(event)
            case TaskCancelled():
                self.tasks.ended(event)
            case NotificationReceived():
                if self._on_notification is not None:
                    function = partial(self._on_notification, event.method, event.params)
                    self._tell("on_notification", function, here)
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                event.request.data.items.append(event)
                self.wake(event.request.data)
            case PingEnded():
                event.ping.data.items.append(event)
                self.wake(event.ping.data)
            case ProgressReceived():
                self._progressed(event, here)
            case ToolSchemaWanted() | EventToStore() | ReplayWanted() | SessionEnded():
                self.lookups.handle(event)
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, time.monotonic())
            case _:
                pass

    def _progressed(self, event: ProgressReceived, here: ExchangeThread | None) -> None:
        mailbox: Mailbox[_Answer] = event.request.data
        on_progress = mailbox.on_progress
        if on_progress is None:
            return
        progress = (event.progress, event.total, event.message)
        if mailbox.is_closed:  # of a task, whose request was answered
            self._tell("on_progress", partial(on_progress, *progress), here)
        else:
            mailbox.put_progress(progress)
            self.wake(mailbox)

    def _tell(self, what: str, function: Callable[[], object], here: ExchangeThread | None) -> None:
        """Let the thread that has brought a notification call a function of the application."""
        if here is not None:
            here.jobs.append(partial(self._call_logged, what, function))

    def _call_logged(self, what: str, function: Callable[[], object]) -> None:
        try:
            not_async(function(), what)
        except Exception as error:
            LOGGER.error("%s failed", what, exc_info=error)

    # ---------------------------------------------------------------------------- time

    def keep_time(self) -> None:
        """Handle timeouts that are due. Called with the lock held."""
        deadline, now = self.endpoint.next_timeout(), time.monotonic()
        if deadline is not None and deadline <= now:
            self.endpoint.handle_timeout(now)
            self.turn()

    def wait(self, *subjects: object, until: float = math.inf) -> None:
        """Wait for news, or until a time. Called with the lock held, which is released meanwhile.

        Args:
            subjects: The objects for which `wake` is called, if any of them changes.
            until: On the clock of `time.monotonic`.
        """
        sleeper = _Sleeper(self.lock)
        for subject in subjects:
            self._sleepers.setdefault(subject, {})[sleeper] = None
        self._asleep[sleeper] = None
        if self._keeper is None:
            self._keeper = sleeper
        try:
            while not sleeper.has_news:
                earliest = until
                if self._keeper is sleeper:
                    self.keep_time()
                    deadline = self.endpoint.next_timeout()
                    self._planned = math.inf if deadline is None else deadline
                    earliest = min(until, self._planned)
                seconds = min(earliest - time.monotonic(), threading.TIMEOUT_MAX)
                if seconds > 0 and not sleeper.has_news:
                    sleeper.condition.wait(seconds)
                elif earliest == until:
                    break
        finally:
            self._forget(sleeper, subjects)

    def _forget(self, sleeper: _Sleeper, subjects: tuple[object, ...]) -> None:
        """A thread waits no more. If it has kept the time, another one does that now."""
        for subject in subjects:
            self._sleepers[subject].pop(sleeper, None)
            if not self._sleepers[subject]:
                del self._sleepers[subject]
        del self._asleep[sleeper]
        if self._keeper is sleeper:
            self._keeper = next(iter(self._asleep), None)
            if self._keeper is not None:
                self._keeper.condition.notify()

    # ---------------------------------------------------------------------------- asking

    def request(
        self,
        arguments: RequestArguments,
        *,
        serving: IncomingRequest | None,
        session: Session | None,
    ) -> JSONObject:
        """Send a request to a client, wait, and cancel the request if the wait is interrupted."""
        method = arguments.method
        timeout, max_timeout = arguments.times(self._request_timeout)
        mailbox = Mailbox[_Answer](arguments.on_progress)
        with self.lock:
            if serving is not None and not serving.open:
                raise CallCancelled(f"{method} was not sent: the call has ended")
            call = arguments.send(
                self.endpoint.send_request,
                timeout,
                max_timeout,
                request=serving,
                session=session,
                data=mailbox,
                now=time.monotonic(),
            )
            self.turn()
        try:
            return result_of(self._take(mailbox, serving))
        except BaseException:
            with self.lock:
                mailbox.is_closed = True
                with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                    self.endpoint.cancel(call, now=time.monotonic())
                self.turn()
            raise

    def _take(self, mailbox: Mailbox[Item], serving: IncomingRequest | None) -> Item:
        """Wait for the ending of a request, and report the progress before the ending."""
        while True:
            self.lookups.work()
            if serving is not None:
                serving.context.flush()
            with self.lock:
                if not mailbox.has_mail:
                    if serving is not None and not serving.open:
                        raise CallCancelled(f"{serving.method} has ended")
                    self.wait(*((mailbox,) if serving is None else (mailbox, serving.context)))
                    continue
                if not mailbox.progress:
                    mailbox.is_closed = True
                    return mailbox.items.popleft()
                progress = mailbox.take_progress()
            assert mailbox.on_progress is not None  # or progress would not be put there
            not_async(mailbox.on_progress(*progress), "on_progress")

    def ping(self, session: Session, timeout: float | None) -> float:
        """Ping the client of a session, and return the seconds that the answer took."""
        mailbox = Mailbox[PingEnded]()
        timeout = self._request_timeout if timeout is None else timeout
        with self.lock:
            self.endpoint.ping(
                session, timeout=limit_of(timeout), data=mailbox, now=time.monotonic()
            )
            self.turn()
        return seconds_of(self._take(mailbox, None))

    def sleep(self, serving: IncomingRequest, seconds: float) -> None:
        """Wait, and write the output of this call meanwhile."""
        until = time.monotonic() + seconds
        while True:
            serving.context.flush()
            with self.lock:
                if not serving.open:
                    raise CallCancelled(f"{serving.method} has ended")
                if time.monotonic() >= until:
                    return
                self.wait(serving.context, until=until)

    # ---------------------------------------------------------------------------- telling

    def verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        """Call a method of the core with the time, and handle its events and output."""
        with self.lock:
            outcome = function(*args, now=time.monotonic(), **options)
            self.turn()
        self.lookups.work()
        return outcome

    # ---------------------------------------------------------------------------- tasks

    def task_lock(self) -> AbstractContextManager[object]:
        """The lock of the endpoint."""
        return self.lock

    def look_for_tasks(self) -> float:
        """Keep the time: there may be no other thread."""
        self.keep_time()
        deadline = self.endpoint.next_timeout()
        return math.inf if deadline is None else deadline

    def after_task_step(self) -> None:
        """Store events, where they are stored outside of this process."""
        self.lookups.work()

    def end_program(self, failure: BaseException) -> None:
        """Do nothing: the log says it, and no call of the server waits that could raise it."""

    # ---------------------------------------------------------------------------- ending

    def close(self, drain: float) -> None:
        """Give open requests `drain` seconds to finish, then end them."""
        until = time.monotonic() + drain
        with self.lock:
            while self._is_busy and time.monotonic() < until:
                self.wait(self, until=until)
            self.tasks.end_all()
            self.endpoint.close(now=time.monotonic())
            self.turn()
        self.lookups.work()
