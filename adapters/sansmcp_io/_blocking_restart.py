"""A server process with its session, started again when it has ended unexpectedly."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from sansmcp import State

from ._anomalies import LOGGER
from ._blocking_asking import Asking
from ._blocking_interrupts import Uninterrupted
from ._blocking_process import Child, ProcessOptions
from ._errors import ConnectionLost
from ._outcomes import with_stderr


class Running:
    """A process that runs, and the conversation with it. `close` ends both, once."""

    def __init__(
        self,
        options: ProcessOptions,
        make_session: Callable[[Child], Asking],
        start: Callable[[Asking], None],
    ) -> None:
        child = Child(options)
        self._child: Final = child
        try:
            self.session: Final = make_session(child)
        except BaseException:
            child.stop()
            raise
        self.session.stderr = child.stderr
        child.on_lines = lambda call: self.session.tell("the handler of standard error", call)
        self._is_closed = False
        try:
            start(self.session)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the conversation, then the process."""
        if self._is_closed:
            return
        self._is_closed = True
        with Uninterrupted():
            try:
                with self.session:
                    self.session.finish()
            finally:  # a trace that has failed is no reason to leave a process behind
                self._child.stop()


class Keeper:
    """Keeps one process running, as long as it may be started again.

    A new process is started when something is to be sent, not when the old one ends: a server
    that crashes whenever it runs must not be run for nobody.
    """

    def __init__(self, opening: Callable[[], Running], restarts: int) -> None:
        self._opening: Final = opening
        self._restarts: Final = restarts
        self._left = restarts
        self._is_over = False
        self._running: Running | None = None
        self._turnstile = threading.Lock()
        self._opener = 0  # the thread that starts a process anew

    @property
    def session(self) -> Asking:
        """The session with the process that was started last."""
        assert self._running is not None  # nobody has a client before it was opened
        return self._running.session

    def open(self) -> None:
        """Start the first process."""
        with Uninterrupted():
            self._running = self._opening()

    def live(self) -> Asking:
        """The session with the process that runs; a new one if it has ended.

        Raises:
            ConnectionLost: It may not, or could not, be started again, or is about to be.
        """
        if self._restarts == 0 or self._is_open:
            return self.session
        if self._opener == threading.get_ident():  # a handler, called while that one waits
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
            raise with_stderr(lost, former.stderr)
        self._left -= 1
        LOGGER.warning("the server has ended unexpectedly and is started again")
        self.close_running()
        try:
            self.open()
        except Exception as error:
            LOGGER.warning("the server could not be started again: %s", error)
            lost = ConnectionLost(f"the server could not be started again: {error}")
            raise with_stderr(lost, getattr(error, "_tail", None)) from error

    def close_running(self) -> None:
        """End the process that runs, if there is one."""
        if self._running is not None:
            self._running.close()

    def close(self) -> None:
        """End it for good."""
        self._is_over = True
        with self._turnstile:
            self.close_running()
