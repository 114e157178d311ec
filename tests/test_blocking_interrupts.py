"""Ctrl-C cancels a call, goes out as a cancellation, and leaves a client that can be used."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

import pytest

from tests.support.processes import ROOT

SECONDS = 60
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])


@contextmanager
def calling(
    what: str, transport: str = "stdio"
) -> Generator[tuple["subprocess.Popen[str]", IO[str]], None, None]:
    """A program that calls, until it says that it waits."""
    command = [sys.executable, "-m", "tests.support.blocking_caller", what, transport]
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
    """The handler of the server has seen the cancellation when the next call is served."""
    with calling(what, transport) as (process, output):
        process.send_signal(signal.SIGINT)
        assert output.read().split("\n") == ["interrupted cancelled", "end", ""]


@TRANSPORTS
def test_interruption_of_a_handler_ends_the_call_and_answers_the_server(transport: str) -> None:
    """A person who is asked presses Ctrl-C: the server must not wait for ever."""
    with calling("asked", transport) as (process, output):
        process.send_signal(signal.SIGINT)
        assert output.read().split("\n") == ["at the question", "interrupted on", "end", ""]


def test_interruption_of_the_start_leaves_nothing() -> None:
    """The commonest moment: the server does not answer, and its user sees that."""
    with calling("opening") as (process, output):
        process.send_signal(signal.SIGINT)
        assert output.read().split("\n") == ["KeyboardInterrupt", "end", ""]


def test_handler_of_the_application_is_called_and_put_back() -> None:
    """Programs with a SIGINT of their own keep it."""
    with calling("own_handler") as (_, output):
        assert output.read().split("\n") == ["heard", "heard", "heard", "3 3 True", "end", ""]


@TRANSPORTS
def test_interruptions_at_any_point_break_nothing(transport: str) -> None:
    """The signal comes between any two instructions, also within the core."""
    with calling("storm", transport) as (process, output):
        said = ""
        while not said:
            os.kill(process.pid, signal.SIGINT)
            if select.select([output], [], [], 0.002)[0]:
                said = output.readline()
        assert said == "calm calm\n"
        assert output.readline() == "end\n"
