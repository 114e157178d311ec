"""`sansmcp` obeys signals at any time: during its start, with blocked output, and twice."""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command_line import BIN, PROGRAMS, SECONDS, scripted

HEARD = "server| received"
LEGACY = "2025-11-25"  # where a server is not asked for a newer revision first


def start(
    *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [BIN, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True
    )


@contextmanager
def unread_pipe() -> Generator[tuple[int, int], None, None]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        os.close(reading)
        os.close(writing)


def wait_until_full(writing: int, process: "subprocess.Popen[str]") -> None:
    """Wait until a pipe without a reader has no room."""
    poller = select.poll()
    poller.register(writing, select.POLLOUT)
    end = time.monotonic() + SECONDS
    while poller.poll(0):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)  # a pipe that fills wakes nobody


def fill(writing: int) -> None:
    """Write until a pipe has no room."""
    poller = select.poll()
    poller.register(writing, select.POLLOUT)
    while poller.poll(0):
        os.write(writing, b"x" * select.PIPE_BUF)  # no more than there is room for


# ------------------------------------------------------------------------ output nobody reads


@pytest.mark.parametrize("json_", [(), ("--json",)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_command_while_nobody_reads_the_result(
    number: signal.Signals, json_: tuple[str, ...]
) -> None:
    """`sansmcp read URI | less` and Ctrl-C: the blocked write must not hold up the end."""
    content = [{"type": "text", "text": "x" * 100_000}]
    server = scripted(answers={"tools/call": {"content": content}})
    with unread_pipe() as (_, writing):
        process = start("call", "t", *json_, "--", *server, stdout=writing)
        wait_until_full(writing, process)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=SECONDS)

    assert process.returncode == 128 + number
    assert f"error: interrupted by {number.name}: while no request was open" in stderr
    assert "Traceback" not in stderr


def test_params_that_look_like_a_cancellation_are_none() -> None:
    """The request was answered before the signal came, so no cancellation may be reported."""
    server = scripted(answers={"x/y": {"text": "x" * 100_000}})
    params = json.dumps({"a": {"method": "notifications/cancelled"}, "b": "\n"})
    with unread_pipe() as (_, writing):
        process = start("request", "x/y", params, "--", *server, stdout=writing)
        wait_until_full(writing, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS)

    assert "error: interrupted by SIGINT: while no request was open" in stderr


def test_signal_ends_the_command_while_nobody_reads_its_messages() -> None:
    """A server with much output fills standard error while the result waits on the other stream."""
    server = scripted(stderr=["x" * 1000] * 100, silent=["tools/call"])
    with unread_pipe() as (_, writing):
        process = start("call", "t", "--json", "--", *server, stderr=writing)
        wait_until_full(writing, process)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 128 + signal.SIGTERM
    assert '"kind": "interrupted"' in stdout


def test_signal_ends_the_command_before_it_writes_where_nobody_reads(tmp_path: Path) -> None:
    """The message about the signal must not block the end."""
    heard = tmp_path / "methods"
    server = [sys.executable, str(PROGRAMS / "bad_servers.py"), "recorder", str(heard)]
    with unread_pipe() as (_, writing):
        fill(writing)
        process = start("call", "t", "--json", "--revision", LEGACY, "--", *server, stderr=writing)
        while not heard.exists() or "tools/call" not in heard.read_text():
            assert process.poll() is None
            time.sleep(0.01)  # a file that grows wakes nobody
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 128 + signal.SIGTERM
    assert '"kind": "interrupted"' in stdout


# -------------------------------------------------------------------------- more than a signal


def wait_for(text: str, process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    while text not in process.stderr.readline():
        assert process.poll() is None


def test_second_signal_does_not_wait_for_the_server() -> None:
    """A user who presses Ctrl-C again wants the prompt back at once."""
    server = shlex.join(scripted(log=True, silent=["tools/call"]))
    process = start("call", "t", "--", "sh", "-c", f"{server}; sleep 1.8; echo over >&2")
    wait_for(f"{HEARD} tools/call", process)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)  # as somebody who keeps pressing it
    _, stderr = process.communicate(timeout=SECONDS)

    assert process.returncode == -signal.SIGINT  # the patient end has 128 + SIGINT
    assert "over" not in stderr


def test_signal_that_comes_twice_at_once_is_one() -> None:
    """`timeout 5 sansmcp ...` sends two signals at once, and the server must still get a clean
    end."""
    server = scripted(log=True, silent=["tools/call"])
    process = start("call", "t", "--json", "--", *server)
    wait_for(f"{HEARD} tools/call", process)
    process.send_signal(signal.SIGTERM)
    wait_for(f"{HEARD} notifications/cancelled", process)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=SECONDS)

    assert process.returncode == 128 + signal.SIGTERM
    assert '"kind": "interrupted"' in stdout
    assert "tools/call was cancelled, and the server was told so" in stderr


# ---------------------------------------------------------------------------------- the start

INTERRUPTED_BY_AN_IMPORT = """
import signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
from sansmcp_io.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("module", ["sansmcp_io.cli._parser", "trio"])
def test_ctrl_c_while_it_starts_is_no_traceback(module: str) -> None:
    """Users notice a typing error sooner than the modules are loaded."""
    command = [sys.executable, "-c", INTERRUPTED_BY_AN_IMPORT, module, "call", "t", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
