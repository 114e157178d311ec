"""Ctrl-C cancels a blocking call, tells the server, and leaves a client that still works."""

import gc
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import IO

import pytest

from sansmcp import Event
from sansmcp_io.blocking import Client, ConnectionLost, connect_http, connect_stdio
from tests.adapters.everywhere.shims import listening, server
from tests.support.adapters.blocking_talk import INFO, call_tool, talking
from tests.support.processes import ROOT, bad, call_bad, descriptors, has_children

SECONDS = 60
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])


@contextmanager
def calling(
    what: str, transport: str = "stdio"
) -> Generator[tuple["subprocess.Popen[str]", IO[str]], None, None]:
    """A program that makes a call and prints a line as soon as it waits."""
    command = [sys.executable, "-m", "tests.support.programs.interrupted_caller", what, transport]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "waiting\n"
            yield process, process.stdout
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


@TRANSPORTS
@pytest.mark.parametrize("what", ["waiting", "waiting_for_another_thread"])
def test_interrupted_call_is_cancelled_and_the_next_one_is_answered(
    what: str, transport: str
) -> None:
    """The handler of the server must see the cancellation before the next call is served."""
    with calling(what, transport) as (process, output):
        process.send_signal(signal.SIGINT)
        assert output.read().split("\n") == ["interrupted cancelled", "end", ""]


@TRANSPORTS
def test_interruption_of_a_handler_ends_the_call_and_answers_the_server(transport: str) -> None:
    """A user who is asked may press Ctrl-C: the server must still get a response."""
    with calling("asked", transport) as (process, output):
        process.send_signal(signal.SIGINT)
        assert output.read().split("\n") == ["at the question", "interrupted on", "end", ""]


def test_interruption_of_the_start_leaves_nothing() -> None:
    """Users press Ctrl-C when a server does not answer: no process may be left."""
    with calling("opening") as (process, output):
        process.send_signal(signal.SIGINT)
        assert output.read().split("\n") == ["KeyboardInterrupt", "end", ""]


def test_handler_of_the_application_is_called_and_put_back() -> None:
    """An application with its own SIGINT handler must keep it."""
    with calling("own_handler") as (_, output):
        assert output.read().split("\n") == ["heard", "heard", "heard", "3 3 True", "end", ""]


@TRANSPORTS
def test_interruptions_at_any_point_break_nothing(transport: str) -> None:
    """A signal may come between any two instructions, also within the core."""
    with calling("storm", transport) as (process, output):
        said = ""
        while not said:
            os.kill(process.pid, signal.SIGINT)
            if select.select([output], [], [], 0.002)[0]:
                said = output.readline()
        assert said == "calm calm\n"
        assert output.readline() == "end\n"


class Interrupting:
    """Raises SIGINT once, at one of the points at which Python looks for signals: at the start of a
    function, and when a C function returns.
    """

    def __init__(self, point: int) -> None:
        self._left = point

    def begin(self) -> None:
        sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, value: object) -> None:
        if event not in ("call", "c_return"):
            return
        self._left -= 1
        if self._left == 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)


def interrupted_at_its_end(connecting: Callable[[], AbstractContextManager[Client]]) -> int:
    """Open clients and interrupt the end of each at another point; returns how many raised."""
    heard = 0
    for point in range(1, 25, 2):
        interrupting = Interrupting(point)
        try:
            with connecting():
                interrupting.begin()
        except KeyboardInterrupt:
            heard += 1
        finally:
            sys.setprofile(None)
        gc.collect()  # what was interrupted before it was told of the end
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return heard


def test_interruption_of_the_end_leaves_no_process() -> None:
    """Impatient users press Ctrl-C twice: the second signal comes while the first is being
    handled."""
    before = descriptors()
    assert interrupted_at_its_end(partial(connect_stdio, bad("fragile"), info=INFO)) == 12
    assert not has_children()
    assert descriptors() <= before


def test_interruption_of_the_end_leaves_no_session() -> None:
    """An interrupted end must wake the other threads and end the session on the server."""
    with listening(server("trio", "http")) as url:
        before = descriptors()
        assert interrupted_at_its_end(partial(connect_http, url, info=INFO)) == 12
        assert descriptors() <= before


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.proof)])
def test_interruption_while_a_client_is_made_leaves_no_sockets(step: int) -> None:
    """If Ctrl-C comes before the block is entered, the sockets must be closed all the same."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"  # and nobody is there
    with pytest.raises(ConnectionLost), connect_http(url, info=INFO):  # imports what it needs
        pass
    before = descriptors()
    ends = 0
    for point in count(1, step):
        interrupting = Interrupting(point)
        try:
            interrupting.begin()
            with connect_http(url, info=INFO):
                pass
        except KeyboardInterrupt:
            pass
        except ConnectionLost:
            ends = point  # it was at its end before
        finally:
            sys.setprofile(None)
        gc.collect(0)
        assert descriptors() <= before, point
        if ends:
            break
    assert ends > 100


def test_handler_that_goes_on_is_interrupted_again() -> None:
    """A prompt that asks once more after Ctrl-C must be interruptible again."""
    heard: list[int] = []

    def on_progress(*_: object) -> None:
        for number in range(2):
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                heard.append(number)

    with talking() as client:
        client.request(*call_tool("count"), on_progress=on_progress)
    assert heard == [0, 1] * 3


class Opening:
    """A trace that interrupts the handshake."""

    def __init__(self) -> None:
        self.interrupts = False

    def sent(self, data: bytes) -> None:
        if self.interrupts:
            self.interrupts = False
            signal.raise_signal(signal.SIGINT)

    def received(self, data: bytes | bytearray) -> None: ...
    def happened(self, event: Event) -> None: ...


def test_interrupted_start_of_a_server_anew_is_not_counted(tmp_path: Path) -> None:
    """An interrupted restart is not the server's fault, so the next call must start it again."""
    broken, trace = tmp_path / "broken", Opening()
    with connect_stdio(bad("fragile", str(broken)), info=INFO, restarts=1, trace=trace) as client:
        with pytest.raises(ConnectionLost):
            client.request(*call_bad("die"))
        trace.interrupts = True
        with pytest.raises(KeyboardInterrupt):
            client.request(*call_bad())
        assert client.request(*call_bad())["content"]
    assert not has_children()


@TRANSPORTS
def test_process_that_is_forked_leaves_the_connection_alone(transport: str) -> None:
    """The end of a forked process must not end the server or the session of its parent."""
    command = [sys.executable, "-m", "tests.support.programs.forking_caller", transport]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    forked = "the connection belongs to the process that has forked this one"
    assert run.stdout.splitlines() == [forked, forked, "left", "3 on", "end"]
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("what", "said"),
    [("restart", ["the connection has ended", "left", "1", "end"]), ("other", ["True", "end"])],
)
def test_process_that_is_forked_waits_for_no_thread_of_the_other_one(
    what: str, said: list[str]
) -> None:
    """Locks that another thread held at the time of the fork stay locked in the forked process for
    ever.
    """
    command = [sys.executable, "-m", "tests.support.programs.forking_caller", what]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    assert run.stdout.splitlines() == said
    assert run.returncode == 0


def test_sub_interpreter_can_call() -> None:
    """Below mod_wsgi, code runs in the main thread of a sub-interpreter, where signal handlers
    cannot be set.
    """
    command = [sys.executable, "-m", "tests.support.programs.sub_interpreter"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert run.stdout.splitlines() == ["echo over stdio", "echo over http", "end"], run.stderr
