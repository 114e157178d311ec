"""Runs one conversation with a server process, from start to end."""

from __future__ import annotations

import argparse
import logging
import math
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
)
from importlib.metadata import version
from typing import Any, Final

import attrs
import trio

from sansmcp import ALL_REVISIONS, MODERN_REVISIONS, Config, JSONObject, JSONValue, Peer
from sansmcp.http import ClientEndpoint

from .._common.errors import TaskCancelledError, TaskLost, check_extra
from .._common.http_client_settings import proxy_of
from .._common.trace import HTTPClientTrace
from ..oauth import OAuth
from ..trio import (
    DEFAULT_PROBE_TIMEOUT,
    DEFAULT_REQUEST_TIMEOUT,
    DEFAULT_START_TIMEOUT,
    Client,
    ClientTask,
    connect_http,
    connect_stdio,
)
from ._arguments import DEFAULT_MAX_MESSAGE_BYTES, check_url, environment, headers
from ._diagnosis import Context, Reported, explain, interrupted
from ._errors import Advised, Failure, OutputFailed, TaskProblem, UsageError
from ._output.output import Output
from ._output.printing import Label
from ._output.visible import shortened
from ._server_watch import Watch
from ._values import member

_INFO: Final[JSONObject] = {"name": "sansmcp", "version": version("sansmcp")}
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
_DEFAULT_LOG_LEVEL: Final = "info"
_LONGEST_STATUS: Final = 400
_PROBE_PART: Final = 1 / 3
"""At most so much of the time to start is for server/discover: the rest is for initialize."""
_ONE_WISH_SECONDS: Final = 1.0
"""`timeout`, and whatever else hands signals on, sends one to the group and one to the process."""


@attrs.frozen(kw_only=True)
class Settings:
    """The server of a conversation, and the settings of the client.

    Attributes:
        url: The URL of the server; None: it is started.
        headers: Headers of each request to it.
        command: Starts the server.
        env: Variables for it.
        revisions: The revisions to speak.
        timeout: Seconds for each answer; None: the defaults.
        quiet: Do not show what the server writes to standard error, logs and notifies.
        log_level: The least severe log messages to ask for; None: nothing was said about it.
        max_message_bytes: The longest answer that is read.
        auth: How it is authorized; None: by the headers, if at all.
        trace: Gets the events of a conversation over HTTP.
        checked: Whether params and results must have the members that their method demands.
        shows_tasks: Whether the command shows the states of tasks.
    """

    url: str | None
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    command: tuple[str, ...]
    env: dict[str, str]
    revisions: tuple[str, ...]
    timeout: float | None
    quiet: bool
    log_level: str | None
    max_message_bytes: int
    checked: bool
    auth: OAuth | None = attrs.field(default=None, repr=False)
    trace: HTTPClientTrace | None = attrs.field(default=None, repr=False)
    shows_tasks: bool = False

    @classmethod
    def from_options(cls, options: argparse.Namespace, auth: OAuth | None) -> Settings:
        """The settings of the command line.

        Raises:
            UsageError: A variable for the server has no value, or its URL or a field cannot be
                used.
        """
        url = None if options.url is None else check_url(options.url)
        fields = headers(options.header)
        if auth is not None and any(name.lower() == "authorization" for name, _ in fields):
            raise UsageError("a header Authorization and a token that is stored exclude each other")
        if url is not None:
            if proxy_of(url) is not None:
                check_extra("httpx", "httpx2")
            try:
                ClientEndpoint(url, info=_INFO, headers=fields)
            except ValueError as error:
                raise UsageError(str(error)) from None
        return cls(
            url=url,
            headers=fields,
            command=tuple(options.server),
            env=environment(options.env),
            revisions=ALL_REVISIONS if options.revision is None else (options.revision,),
            timeout=options.timeout,
            quiet=options.quiet,
            log_level=options.log_level,
            max_message_bytes=options.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES,
            # `request` sends what it is given, and shows what comes: a fault may be the point.
            checked=options.name != "request",
            auth=auth,
            shows_tasks=options.name == "tasks" or getattr(options, "task", None) is not None,
        )


class ServerConversation:
    """A client that shows the events of a conversation on standard error.

    Attributes:
        method: The request that is open, or was sent last; None: there was none.
        ended_task: What has become of a task that was followed when a signal came; None: there was
            none.
        output: The streams to print on.
    """

    def __init__(self, client: Client, settings: Settings, output: Output, watch: Watch) -> None:
        self.method: str | None = None
        self.ended_task: str | None = None
        self._client = client
        self._watch = watch
        self._timeout = settings.timeout
        self._quiet = settings.quiet
        self._log_level = None if settings.quiet else settings.log_level or _DEFAULT_LOG_LEVEL
        self._says_level_first = settings.log_level is not None and not settings.quiet
        self.output: Final = output

    @property
    def peer(self) -> Peer:
        """The server: its revision, info, capabilities and instructions."""
        return self._client.peer

    @property
    def length_hints(self) -> tuple[str, ...]:
        """Hints for a response that was too long to be read."""
        return self._watch.length_hints

    async def request(self, method: str, params: JSONObject | None) -> JSONObject:
        """Send a request to the server, and show progress meanwhile.

        Progress is requested whether or not it is shown, since it restarts the timeout of the
        request: `--timeout` must not mean something else on a terminal.
        """
        await self._wish_for_logs()
        self.method = method
        with self.output.progress() as progress:
            return await self._client.request(
                method,
                params,
                timeout=self._timeout,
                log_level=self._level_for(params),
                on_progress=progress.show,
            )

    @asynccontextmanager
    async def started_task(
        self, method: str, params: JSONObject, task: bool | float
    ) -> AsyncGenerator[ClientTask, None]:
        """Send a request that may become a task, and show progress for the time of a block.

        The task is cancelled if the block is.

        Args:
            method: The method.
            params: Its params.
            task: The seconds for which the server is to keep the task; True: that is not said.
        """
        await self._wish_for_logs()
        self.method = method
        with self.output.progress() as progress:
            started = await self._client.start_task(
                method,
                params,
                task=task,
                timeout=self._timeout,
                log_level=self._level_for(params),
                on_progress=progress.show,
            )
            try:
                yield started
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    if await started.cancel():
                        self.ended_task = "was cancelled, and the server was told so"
                raise

    async def resume_task(self, task_id: str, method: str) -> ClientTask:
        """Follow a task of another conversation; it goes on if this one ends.

        Raises:
            TaskProblem: The server does not know the task.
        """
        self.method = method
        with _task_problems():
            resumed = await self._client.resume_task(task_id, method, timeout=self._timeout)
        self.ended_task = "goes on at the server"
        return resumed

    async def result_of(self, task: ClientTask, *, quiet: bool = False) -> JSONObject:
        """Wait for the result of a task, and show its states meanwhile, unless `quiet`.

        Raises:
            TaskProblem: The server does not know the task any more, or has cancelled it.
        """
        async with aclosing(task.updates()) as updates:
            async for update in updates:
                if not (quiet or self._quiet):
                    text = ", ".join(part for part in (update.status, update.message) if part)
                    self.output.line(Label.TASK, shortened(text, _LONGEST_STATUS))
        with _task_problems():
            return await task.result()

    def _level_for(self, params: JSONObject | None) -> str | None:
        """The log level for a request, if the revision has one there and the user gave none."""
        if self.peer.revision not in MODERN_REVISIONS or "logging" not in self.peer.capabilities:
            return None
        given = member(params, "_meta")
        return None if member(given, _LOG_LEVEL) is not None else self._log_level

    async def _wish_for_logs(self) -> None:
        """Request the log level for all requests, as before 2026-07-28."""
        if not self._says_level_first or self.peer.revision in MODERN_REVISIONS:
            return
        self._says_level_first = False
        if "logging" in self.peer.capabilities:
            self.method = "logging/setLevel"
            params: JSONObject = {"level": self._log_level}
            await self._client.request(self.method, params, timeout=self._timeout)

    async def items(self, method: str) -> AsyncGenerator[JSONValue, None]:
        """All items of a listing, from all its pages."""
        self.method = method
        listing: Any = self._client.items(method, timeout=self._timeout)
        async with aclosing(listing) as items:
            async for item in items:
                yield item


@contextmanager
def _task_problems() -> Generator[None, None, None]:
    """Say what has become of a task that has no result.

    Raises:
        TaskProblem: In the place of the exceptions of the client.
    """
    try:
        yield
    except TaskLost as error:
        raise TaskProblem(f"has no such task: {error}", kind="no-task") from None
    except TaskCancelledError:
        text = "has no result: the task was cancelled"
        raise TaskProblem(text, kind="task-cancelled") from None


Work = Callable[[ServerConversation], Awaitable[int]]


Described = Callable[[Exception], JSONObject | None]
"""Gives the document for a failure, where it is not the usual one."""


def converse(
    settings: Settings, output: Output, work: Work, described: Described | None = None
) -> int:
    """Start the server, call `work` with a client, end the server, and return the exit status."""
    return trio.run(_Run(settings, output, work, described).run)


class _Run:
    def __init__(
        self, settings: Settings, output: Output, work: Work, described: Described | None
    ) -> None:
        self._settings = settings
        self._output = output
        self._work = work
        self._watch = Watch(
            output,
            quiet=settings.quiet,
            max_message_bytes=settings.max_message_bytes,
            shows_tasks=settings.shows_tasks,
        )
        self._described = described
        self._document: JSONObject | None = None  # of the failure
        self._scope = trio.CancelScope()
        self._conversation: ServerConversation | None = None
        self._signal: int | None = None

    async def run(self) -> int:
        handler = self._watch.log_handler()
        logger = logging.getLogger("sansmcp")
        logger.addHandler(handler)
        try:
            with self._obeying():
                outcome = await self._converse()
                if not isinstance(outcome, Failure):
                    return outcome
                try:
                    self._output.failure(outcome, self._document)
                except OutputFailed as error:
                    return self._undeliverable(error) or outcome.status
                return outcome.status
        finally:
            logger.removeHandler(handler)

    @contextmanager
    def _obeying(self) -> Generator[None, None, None]:
        """Let signals end the conversation, also while a write blocks.

        After the first one, the server has its time to end as well. A second one means not to wait
        for that.
        """
        token = trio.lowlevel.current_trio_token()
        patient_until = math.inf

        def obey(number: int, _frame: object) -> None:
            nonlocal patient_until
            if time.monotonic() > patient_until:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            if self._signal is None:
                self._signal = number
                patient_until = time.monotonic() + _ONE_WISH_SECONDS
            token.run_sync_soon(self._scope.cancel)
            self._output.interrupt()

        kept = {number: signal.signal(number, obey) for number in _signals()}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def _undeliverable(self, error: OutputFailed) -> int | None:
        """Return the exit status for output that cannot be written; None after a signal."""
        return None if self._signal is not None else self._output.undeliverable(error)

    async def _converse(self) -> int | Failure:
        settings = self._settings
        start_timeout = settings.timeout or DEFAULT_START_TIMEOUT
        outcome: int | Failure | None = None
        failed: Exception | None = None
        with self._scope:
            try:
                async with self._connect(start_timeout) as client:
                    self._conversation = ServerConversation(
                        client, settings, self._output, self._watch
                    )
                    try:
                        outcome = await self._work(self._conversation)
                    except (Advised, TaskProblem) as error:
                        failed = error
                    except OutputFailed as error:
                        outcome = self._undeliverable(error)
            except Reported as error:
                failed = failed or error
        if outcome is None and failed is not None:
            # Not before the server has ended: only now is all here that it wrote, and its status.
            return self._explained(failed)
        if outcome is None:
            assert self._signal is not None  # cancelled by a signal
            return interrupted(self._signal, self._context())
        return outcome

    def _connect(self, start_timeout: float) -> AbstractAsyncContextManager[Client]:
        settings, watch = self._settings, self._watch
        common: Any = {
            "info": _INFO,
            "revisions": settings.revisions,
            "on_notification": watch.notified,
            "config": Config(
                check="shape" if settings.checked else "none",
                max_message_bytes=settings.max_message_bytes,
            ),
            "start_timeout": start_timeout,
            "probe_timeout": min(DEFAULT_PROBE_TIMEOUT, start_timeout * _PROBE_PART),
        }
        if settings.url is not None:
            given: Any = {
                "headers": settings.headers,
                "auth": settings.auth,
                "trace": settings.trace,
            }
            return connect_http(settings.url, **given, **common)
        return connect_stdio(
            settings.command,
            trace=watch,
            env=settings.env,
            on_stderr=watch.stderr_line,
            **common,
        )

    def _explained(self, error: Exception) -> Failure:
        if self._described is not None:
            self._document = self._described(error)
        if isinstance(error, Advised):
            failure = explain(error.error, attrs.evolve(self._context(), method=error.method))
            hints = error.hints or failure.hints
        else:
            failure = explain(error, self._context())
            hints = failure.hints
        return attrs.evolve(failure, hints=(*self._watch.length_hints, *hints))

    def _context(self) -> Context:
        method = None if self._conversation is None else self._conversation.method
        default = DEFAULT_START_TIMEOUT if method is None else DEFAULT_REQUEST_TIMEOUT
        return Context(
            url=self._settings.url,
            command=self._settings.command,
            path=self._settings.env.get("PATH"),
            timeout=self._settings.timeout or default,
            watch=self._watch,
            method=method,
            peer=None if self._conversation is None else self._conversation.peer,
            ended_task=None if self._conversation is None else self._conversation.ended_task,
        )


def _signals() -> list[signal.Signals]:
    """The signals that end a command, without the signals that were ignored at its start."""
    known = [signal.Signals[name] for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]
