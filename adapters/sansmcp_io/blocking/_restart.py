"""A server process and its session. Starts the process again after an unexpected end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from sansmcp import State

from .._common.anomalies import LOGGER
from .._common.endings import with_stderr
from .._common.errors import ConnectionLost
from .._options.clients import StdioClientOptions
from ._interrupts import Uninterrupted
from ._lock import Forkable
from ._process import Child
from ._requests import RequestSender


class RunningServer(Forkable):
    """A running process and its session. `close` ends both, once."""

    def __init__(
        self, options: StdioClientOptions[Any], make_session: Callable[[Child], RequestSender]
    ) -> None:
        child = Child(options)
        self._child: Final = child
        try:
            self.session: Final = make_session(child)
        except BaseException:
            child.stop()
            raise
        self.session.sending.stderr = child.stderr
        child.on_lines = lambda call: self.session.tell("on_stderr", call)
        self._is_closed = False
        self._closing = threading.Lock()
        Forkable.__init__(self)

    def _leave_to_parent(self) -> None:
        self._closing = threading.Lock()

    def close(self) -> None:
        """End the conversation, then the process. A second caller waits for that."""
        with Uninterrupted(), self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                with self.session:
                    self.session.finish()
            finally:  # also stop the process if the trace has failed
                if self.session.is_forked:
                    self._child.leave_to_parent()
                else:
                    self._child.stop()


class Restarter(Forkable):
    """Keeps one server process running, within a number of restarts.

    A process is started for the next request, not when the old one ends: a server that always
    crashes must not be run without need.

    Keeps STDIO-017.

    Args:
        make: Starts a process.
        start: Opens the conversation with it.
        restarts: How often it may be started again.
    """

    def __init__(
        self,
        make: Callable[[], RunningServer],
        start: Callable[[RequestSender], None],
        restarts: int,
    ) -> None:
        self._make: Final = make
        self._start: Final = start
        self._restarts: Final = restarts
        self._left = restarts
        self._is_over = False
        self._running: RunningServer | None = None
        self._coming: RunningServer | None = None  # being opened
        self._turnstile = threading.Lock()
        self._opener = 0  # the thread that starts a process anew
        Forkable.__init__(self)

    def _leave_to_parent(self) -> None:
        self._is_over = True  # a process that is started anew is the parent's
        self._turnstile = threading.Lock()
        self._opener = 0

    @property
    def session(self) -> RequestSender:
        """The session with the process that was started last."""
        assert self._running is not None  # there is no client before `open`
        return self._running.session

    def open(self) -> None:
        """Start a process."""
        with Uninterrupted():
            self._coming = running = self._make()
            try:
                if self._is_over:  # `close` may have been called before `_coming` was set
                    raise ConnectionLost("the connection has ended")
                self._start(running.session)
            except BaseException:
                running.close()
                raise
            self._running = running

    def live(self) -> RequestSender:
        """Return the session with the running process. A process that has ended is started again.

        Raises:
            ConnectionLost: No restart is left, or the restart failed, or is under way.
        """
        if self._restarts == 0 or self._is_open:
            return self.session
        if self._opener == threading.get_ident():  # in a handler within `open`
            raise ConnectionLost("the server is being started again")
        with self._turnstile:
            if not self._is_open:
                self._opener = threading.get_ident()
                try:
                    self._start_again()
                finally:
                    self._opener = 0
            return self.session

    @property
    def _is_open(self) -> bool:
        return self.session.side.state is State.OPEN

    def _start_again(self) -> None:
        if self._is_over:
            raise ConnectionLost("the connection has ended")
        former = self.session
        if self._left == 0:
            lost = ConnectionLost(f"the server has ended again after {self._restarts} restarts")
            raise with_stderr(lost, former.sending.stderr)
        LOGGER.warning("the server has ended unexpectedly and is started again")
        former_running = self._running
        assert former_running is not None
        former_running.close()
        self._left -= 1
        try:
            self.open()
        except Exception as error:
            LOGGER.warning("the server could not be started again: %s", error)
            lost = ConnectionLost(f"the server could not be started again: {error}")
            raise with_stderr(lost, getattr(error, "_tail", None)) from error
        except BaseException:  # Ctrl-C is no fault of the server
            self._left += 1
            raise

    def close(self) -> None:
        """End the process for good, also if another thread is about to start it again."""
        with Uninterrupted():
            self._is_over = True
            for running in (self._coming, self._running):
                if running is not None:
                    running.close()
            with self._turnstile:  # the opener has noticed
                pass
