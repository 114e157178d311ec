"""Runs an endpoint on any loop: hands its events to handlers and to callers that wait.

Calls into the core are synchronous and happen in the loop's thread, so there is no lock. When an
exchange has output, `flush` of its wire is called.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from sansmcp import (
    Change,
    ErrorReceived,
    ErrorWithoutIdReceived,
    IncomingRequest,
    JSONObject,
    LimitReached,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    Peer,
    PingEnded,
    ProgressReceived,
    ProtocolViolation,
    Ready,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Task,
    TaskCancelled,
    TaskInputReceived,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)
from sansmcp.http import (
    EventToStore,
    HTTPEvent,
    LookupEnded,
    RelayEnded,
    ReplayWanted,
    ServerEndpoint,
    ServerExchange,
    Session,
    SessionEnded,
    SessionRequested,
    SessionWanted,
    ToolSchemaWanted,
)

from .._common.anomalies import LOGGER, AnomalyLog
from .._common.bounds import limit_of
from .._common.call import ServerCallBase
from .._common.cluster import ClusterHost, ClusterMember
from .._common.endings import result_of, seconds_of
from .._common.lookups import LookupOptions
from .._common.requests import RequestArguments
from .._common.tasks import kept_call, read_kept
from .._common.trace import HTTPTrace
from .._options.checks import SessionOptions
from .background import NotificationRunner, call_on_progress, logged
from .handlers import HandlerRunner
from .http_lookups import LookupRunner
from .loop import Loop
from .task_lookups import TaskLookups

if TYPE_CHECKING:
    from .._options.servers import HTTPServerOptions
    from .access import AccessChecker
    from .one_shot import OneShotSender


class ExchangeWire(Protocol):
    """Writes the output of an open exchange of a client."""

    def flush(self) -> None:
        """Write the output of the exchange."""
        ...


class Cancellable(Protocol):
    """A task, or its cancel scope."""

    def cancel(self) -> object:
        """Cancel the task."""
        ...


class EndpointRunner(ABC):
    """Runs an endpoint: calls handlers, and wakes callers that wait.

    Attributes:
        lookups: Answers the questions of the endpoint.
        loop: The primitives of the loop.
        now: The clock of the endpoint.
        tasks: The tasks of the loop.
        wires: The object that writes the output of each open exchange.
    """

    loop: Loop
    tasks: Any

    def __init__(
        self,
        endpoint: ServerEndpoint,
        options: SessionOptions,
        *,
        new_handler_runner: type[HandlerRunner],
        now: Callable[[], float],
        trace: HTTPTrace | None,
        lookups: LookupOptions,
        new_member: Callable[[ClusterHost], ClusterMember | None],
    ) -> None:
        self.endpoint: Final = endpoint
        self.now: Final = now
        self.trace: Final = trace
        self.session_tasks: SessionTasks | None = None
        self.context: Final = options.context
        self.wires: Final[dict[ServerExchange, ExchangeWire]] = {}
        # No `until_room`: clients do not share an output, so no response waits for room.
        self._handler_runner = new_handler_runner(
            endpoint,
            options.handler,
            partial(options.call_type, self),
            clock=self.now,
            most_running=options.most_running,
            until_room=None,
            wake=self.turn,
            keep=self._keep if lookups.shares_tasks else None,
            release=self._release,
            end_program=self._end_program,
        )
        on_notification = options.on_notification
        self._notifications = (
            None if on_notification is None else NotificationRunner(on_notification)
        )
        self._request_timeout = options.request_timeout
        self._anomalies = AnomalyLog()
        self.lookups: Final = LookupRunner(self, lookups)
        self.shares_tasks: Final = lookups.shares_tasks
        self.most_tasks: Final = lookups.most_tasks
        self._task_lookups = (
            None
            if lookups.task_store is None
            else TaskLookups(self, lookups.task_store, self.lookups.bounded)
        )
        self.cluster: Final = new_member(self)
        self._is_turning = False

    @abstractmethod
    def _end_program(self, request: IncomingRequest, failure: BaseException) -> None:
        """Let the server raise the exception of a handler that ends the program.

        Args:
            request: The request of the handler, which was answered.
            failure: SystemExit, KeyboardInterrupt, or a group with one of them.
        """

    @abstractmethod
    def _new_one_shot_sender(self) -> OneShotSender:
        """Make the object that makes HTTP requests for the verifier of tokens."""

    def _new_access(self, options: HTTPServerOptions[Any]) -> AccessChecker | None:
        """Make the check of tokens; None: the options have none."""
        if options.access is None:
            return None
        # Imported here: most servers need nothing of authorization.
        from .access import AccessChecker

        return AccessChecker(self, options.access, options.verify_token, self._new_one_shot_sender)

    @abstractmethod
    def _turned(self) -> None:
        """Update the timer after a turn: the endpoint's deadline may have changed."""

    # ---------------------------------------------------------------------------- turning

    def turn(self) -> None:
        """Handle all events, and write output as far as that needs no waiting.

        Call this after each call into the endpoint. A call within a turn does nothing, since the
        turn goes on until all events are handled.
        """
        if self._is_turning:
            return
        self._is_turning = True
        endpoint, wires, trace = self.endpoint, self.wires, self.trace
        next_event = endpoint.next_event
        try:
            while True:
                while (event := next_event()) is not None:
                    if trace is not None:
                        with logged("the trace"):
                            trace.happened(event)
                    if type(event) is RequestReceived:
                        self._handler_runner.begin(event.request, self.tasks)
                    else:
                        self._handle_event(event)
                ready = endpoint.ready()
                if not ready:
                    break
                for exchange in ready:
                    wire = wires.get(exchange)
                    if wire is not None:
                        wire.flush()
        finally:
            self._is_turning = False
        if self.cluster is not None:
            self.cluster.turned()
        self._turned()

    def _handle_event(self, event: HTTPEvent) -> None:
        match event:
            case RequestCancelled():
                self._handler_runner.cancel(event.request)
            case TaskInputReceived():
                self._handler_runner.answered(event)
            case TaskCancelled():
                self._handler_runner.ended(event)
            case NotificationReceived():
                if self._notifications is not None:
                    self._notifications.handle(event, self.tasks)
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                event.request.data.put(event)
            case PingEnded():
                event.ping.data.put(event)
            case ProgressReceived():
                call_on_progress(event)
            case Ready():
                if self.session_tasks is not None and event.peer.session is not None:
                    self.session_tasks.begin(event.peer.session, self.tasks)
            case SessionEnded():
                if self.session_tasks is not None:
                    self.session_tasks.end(event.session)
                self.lookups.session_ended(event.session)
                if self.cluster is not None:
                    self.cluster.handle(event)
            case EventToStore() | ReplayWanted():
                if self.cluster is not None:
                    self.cluster.handle(event)
                else:
                    self.lookups.handle(event)
            case SessionRequested() | SessionWanted() | RelayEnded():
                assert self.cluster is not None  # else the endpoint does not ask
                self.cluster.handle(event)
            case TaskWanted() | TasksWanted() | TaskToStore():
                if self._task_lookups is not None:
                    self._task_lookups.handle(event)
                else:
                    assert self.cluster is not None  # else the endpoint does not ask
                    self.cluster.handle(event)
            case ToolSchemaWanted() | LookupEnded():
                self.lookups.handle(event)
            case ProtocolViolation() | MessageIgnored() | LimitReached() | ErrorWithoutIdReceived():
                self._anomalies.note(event, self.now())
            case _:
                pass  # sessions that begin, and requests that the core has answered

    # ---------------------------------------------------------------------------- sending

    async def request(
        self,
        arguments: RequestArguments,
        *,
        serving: IncomingRequest | None,
        session: Session | None,
    ) -> JSONObject:
        """Send a request to a client, wait, and cancel the request if the wait is cancelled."""
        timeout, max_timeout = arguments.times(self._request_timeout)
        mailbox = self.loop.new_mailbox(arguments.on_progress)
        call = arguments.send(
            self.endpoint.send_request,
            timeout,
            max_timeout,
            request=serving,
            session=session,
            data=mailbox,
            now=self.now(),
        )
        self.turn()
        try:
            outcome = await mailbox.take()
        except BaseException:
            with suppress(LocalProtocolError):  # a request for a task is ended by tasks/cancel
                self.endpoint.cancel(call, now=self.now())
            self.turn()
            raise
        finally:
            mailbox.is_closed = True
        return result_of(outcome)

    async def ping(self, session: Session, timeout: float | None) -> float:
        """Ping the client of a session, and return the seconds that the answer took."""
        mailbox = self.loop.new_mailbox()
        timeout = self._request_timeout if timeout is None else timeout
        self.endpoint.ping(session, timeout=limit_of(timeout), data=mailbox, now=self.now())
        self.turn()
        return seconds_of(await mailbox.take())

    # ---------------------------------------------------------------------------- the cluster

    def carried_context(
        self, method: str, target: str, headers: Sequence[tuple[bytes, bytes]]
    ) -> Any:
        """The context of a request that another worker has carried here."""
        return self.context

    def resume_task(self, task: Task) -> bool:
        """Call the handler of a task again that another worker has begun, if it may be."""
        kept = read_kept(task)
        if kept is None:
            return False
        assert self.cluster is not None  # which calls this
        try:
            principal = self.cluster.load_principal(kept["principal"])
        except Exception as error:  # of the application
            LOGGER.error("the principal of a task cannot be loaded", exc_info=error)
            return False
        self._handler_runner.restart(task, principal, self.tasks)
        return True

    def _keep(self, call: ServerCallBase) -> JSONObject:
        """What the task of a call keeps, so that another worker can call its handler again."""
        assert self.cluster is not None  # else the tasks are not shared
        return kept_call(call, self.cluster.dump_principal(call.principal))

    def _release(self, task: Task) -> None:
        assert self.cluster is not None
        self.cluster.release_task(task)

    @property
    def is_busy(self) -> bool:
        """Whether requests or tasks are open whose results the end of the server waits for."""
        if self.endpoint.open_requests or self._handler_runner.is_working or self.is_storing:
            return True
        return self.cluster is not None and self.cluster.is_busy

    async def join_cluster(self) -> None:
        """Have the other workers know this one, if there is a cluster.

        Raises:
            ClusterError: That is not possible.
        """
        if self.cluster is not None:
            await self.cluster.join(self.loop)

    @property
    def is_storing(self) -> bool:
        """Whether tasks wait to be stored outside of this process."""
        if self._task_lookups is not None:
            return self._task_lookups.is_storing
        return self.cluster is not None and self.cluster.is_storing

    def drain_cluster(self) -> None:
        """The end of the server begins: serve no new requests that other workers carry here."""
        if self.cluster is not None:
            self.cluster.drain()

    async def leave_cluster(self) -> None:
        """Tell the other workers, if there are any, that this one ends."""
        if self.cluster is not None:
            await self.cluster.leave(self.loop)

    def publish(self, change: Change, *, meta: JSONObject | None, now: float) -> bool:
        """Tell all clients of a change: those of this worker now, and those of others soon."""
        told = self.endpoint.publish(change, meta=meta, now=now)
        if self.cluster is not None:
            self.cluster.publish(change, meta)
        return told

    # ------------------------------------------------------------------- other calls

    def close_endpoint(self) -> None:
        """End the work on all tasks, then all requests, streams and sessions."""
        self._handler_runner.end_tasks()
        self.endpoint.close(now=self.now())
        self.turn()

    def verb(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        """Call a method of the endpoint with the time, and run a turn."""
        outcome = function(*args, now=self.now(), **options)
        self.turn()
        return outcome


class SessionTasks(ABC):
    """Calls a function for each session that is ready; an async one is cancelled with its session.

    Args:
        function: Called with the server of a session.
        make_server: Makes the server of a session, from its peer.
    """

    def __init__(
        self, function: Callable[[Any], object], make_server: Callable[[Peer], Any]
    ) -> None:
        self._function: Final = function
        self._make_server: Final = make_server
        self._running: Final[dict[Session, Cancellable]] = {}

    @abstractmethod
    def _start(self, awaitable: Awaitable[object], session: Session, tasks: Any) -> Cancellable:
        """Start a task that runs `_run`."""

    def begin(self, session: Session, tasks: Any) -> None:
        """Call the function for a session whose client is ready."""
        with logged("on_ready"):
            outcome = self._function(self._make_server(session.peer))
            if inspect.isawaitable(outcome):
                self._running[session] = self._start(outcome, session, tasks)

    def end(self, session: Session) -> None:
        """Cancel the task of a session that has ended."""
        if running := self._running.pop(session, None):
            running.cancel()

    async def _run(self, awaitable: Awaitable[object], session: Session) -> None:
        with logged("on_ready"):
            await awaitable
        self._running.pop(session, None)
