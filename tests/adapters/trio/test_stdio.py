"""stdio on trio with real processes, pipes and file descriptors."""

import contextlib
import fcntl
import itertools
import json
import math
import os
import select
import shlex
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
import trio
from trio.testing import MockClock

from sansmcp import JSONObject
from sansmcp_io.trio import ConnectionLost, RequestTimeout, connect_stdio
from tests.support.adapters.on_trio import on_trio
from tests.support.processes import ROOT, descriptors, has_children, is_running

INFO = {"name": "test", "version": "1.0"}
SECONDS = 20
quickly = partial(on_trio, seconds=200, clock=lambda: MockClock(rate=10))
"""Ten seconds of waiting take one."""


def server(name: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.programs.trio_server", name]


def call_tool(name: str, **arguments: object) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": arguments}


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


# ------------------------------------------------------------------------ the child process


@on_trio()
async def test_server_process_ends_with_the_block_and_leaves_nothing() -> None:
    """No zombie, no descriptor: a program may open thousands of servers in its life."""
    # The first one makes trio open what it keeps.
    for number in range(2):
        before = descriptors()
        lines: list[str] = []
        async with connect_stdio(
            server("honest"), info=INFO, cwd=ROOT, on_stderr=lines.append
        ) as client:
            result = await client.request(*call_tool("echo", text="hi"))
            assert result["content"] == text("hi")["content"]
        assert lines == ["served"]
        assert not has_children()
        if number:
            assert descriptors() <= before


@on_trio()
async def test_server_gets_the_directory_and_environment_it_is_given() -> None:
    """Servers are configured by both."""
    env = {**os.environ, "SANSMCP_TEST": "given", "PYTHONPATH": str(ROOT)}
    async with connect_stdio(server("honest"), info=INFO, cwd="/", env=env) as client:
        result = await client.request(*call_tool("environment", variable="SANSMCP_TEST"))
    assert result["content"] == text("/ given")["content"]


@on_trio()
async def test_messages_larger_than_a_pipe_arrive_whole() -> None:
    """A pipe takes 64 KiB; whoever writes more must be ready to wait in between."""
    large = "x" * 1_000_000
    async with connect_stdio(server("honest"), info=INFO, cwd=ROOT) as client:
        result = await client.request(*call_tool("echo", text=large))
        assert result["content"] == text(large)["content"]


@on_trio()
async def test_program_that_cannot_be_started_raises_what_the_system_says() -> None:
    """A wrong path is the commonest mistake in a configuration."""
    with pytest.raises(FileNotFoundError):
        async with connect_stdio(["/does/not/exist"], info=INFO):
            pytest.fail("it must not open")


@on_trio()
async def test_program_that_ends_at_once_is_reported_as_lost() -> None:
    """A server that crashes while it starts must not be waited for half a minute."""
    with pytest.raises(ConnectionLost):
        async with connect_stdio(["true"], info=INFO):
            pytest.fail("it must not open")
    assert not has_children()


@on_trio()
async def test_shell_is_not_involved() -> None:
    """Arguments often come from a configuration: they must not be read as commands."""
    code = "import sys; sys.stderr.write(repr(sys.argv[1:]))"
    arguments = ["$(echo 1)", "a b", "; echo 2"]
    lines: list[str] = []
    with pytest.raises(ConnectionLost):
        async with connect_stdio(
            [sys.executable, "-c", code, *arguments], info=INFO, on_stderr=lines.append
        ):
            pytest.fail("it must not open")
    assert lines == [repr(arguments)]


@on_trio()
async def test_standard_error_is_handed_on_line_by_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Text without an end, in the wrong encoding, or that the handler chokes on harms nobody."""
    code = (
        "import sys; sys.stderr.buffer.write("
        r"b'one\r\n\xff\nbad\n' + b'x' * 200_000 + b'\nno newline')"
    )
    lines: list[str] = []

    def on_stderr(line: str) -> None:
        lines.append(line)
        if line == "bad":
            raise ZeroDivisionError

    with pytest.raises(ConnectionLost):
        async with connect_stdio([sys.executable, "-c", code], info=INFO, on_stderr=on_stderr):
            pytest.fail("it must not open")

    assert lines[:3] == ["one", "\N{REPLACEMENT CHARACTER}", "bad"]
    assert "".join(lines[3:-1]) == "x" * 200_000
    assert lines[-1] == "no newline"
    assert [record.exc_info is not None for record in caplog.records].count(True) == 1


@pytest.mark.parametrize(("name", "ended_by"), [("lingering", "terminate"), ("stubborn", "kill")])
@quickly()
async def test_server_that_stays_is_ended_by_signals(
    name: str, ended_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Servers that ignore the end of their input must not pile up."""
    async with connect_stdio(server(name), info=INFO, cwd=ROOT, start_timeout=math.inf) as client:
        await client.request(*call_tool("echo", text=""))
    assert not has_children()
    assert caplog.messages[-1].endswith(ended_by)


@on_trio()
async def test_cancellation_does_not_leave_the_process_behind() -> None:
    """The end of the process is shielded, and its handler hears of the cancellation."""
    lines: list[str] = []
    with trio.CancelScope() as scope:
        async with (
            connect_stdio(server("honest"), info=INFO, cwd=ROOT, on_stderr=lines.append) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(partial(client.request, *call_tool("sleep")))
            await client.request(*call_tool("echo", text="the other one was read before"))
            scope.cancel()
    assert scope.cancelled_caught
    assert lines == ["sleep: cancelled", "served"]
    assert not has_children()


@on_trio()
async def test_process_that_the_server_leaves_behind_ends_with_it() -> None:
    """It holds the other ends of the pipes, and nobody else knows of it."""
    lines: list[str] = []
    async with connect_stdio(
        server("haunted"), info=INFO, cwd=ROOT, on_stderr=lines.append
    ) as client:
        await client.request(*call_tool("echo", text=""))
    assert not is_running(int(lines[0].removeprefix("ghost ")))


@quickly()
async def test_server_that_does_not_read_is_given_up() -> None:
    """Neither the caller nor the end of the block waits for a pipe that stays full."""
    with pytest.raises(RequestTimeout):
        async with connect_stdio(["sleep", "60"], info={**INFO, "title": "x" * 1_000_000}):
            pytest.fail("it must not open")
    assert not has_children()


# ------------------------------------------------------------------------------- the server


def line(id: int | None, method: str, **params: object) -> bytes:
    message: JSONObject = {"jsonrpc": "2.0", "method": method, "params": params}
    if id is not None:
        message["id"] = id
    return json.dumps(message).encode() + b"\n"


HANDSHAKE = line(
    0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO
) + line(None, "notifications/initialized")


def script(*names: str, **arguments: object) -> bytes:
    """What a client writes that calls these tools."""
    calls = [
        line(number, "tools/call", name=name, arguments=arguments)
        for number, name in enumerate(names, 1)
    ]
    return HANDSHAKE + b"".join(calls)


@contextmanager
def running(
    stdin: int | IO[Any] = subprocess.PIPE,
    stdout: int | IO[Any] = subprocess.PIPE,
    name: str = "honest",
) -> Generator[subprocess.Popen[bytes], None, None]:
    """The server as a process, killed if it has not ended by itself."""
    with subprocess.Popen(
        server(name), cwd=ROOT, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def messages(data: bytes) -> list[JSONObject]:
    return [json.loads(line) for line in data.splitlines()]


def test_everything_that_was_read_is_answered_at_the_end_of_a_file(tmp_path: Path) -> None:
    """`server < file > file`: no descriptor can be waited for, and input ends before output."""
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(script(*["echo"] * 50, text="hi"))
    with source.open("rb") as stdin, sink.open("wb") as stdout, running(stdin, stdout) as process:
        _, errors = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, errors
    answers = messages(sink.read_bytes())
    assert sorted(answer["id"] for answer in answers) == list(range(51))
    assert [answer["result"] for answer in answers[1:]] == [text("hi")] * 50


def test_everything_that_was_read_is_answered_through_a_pipe(tmp_path: Path) -> None:
    """`cat session.jsonl | server > out.jsonl` is how people try a server for the first time."""
    session, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl"
    session.write_bytes(script(*["echo"] * 2000, text="x" * 200))
    command = f"cat {session} | {shlex.join(server('honest'))} > {out}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, timeout=SECONDS, capture_output=True)

    assert done.returncode == 0, done.stderr
    assert sorted(answer["id"] for answer in messages(out.read_bytes())) == list(range(2001))


def test_answers_are_written_to_the_last_for_a_client_that_reads_slowly() -> None:
    """The end of input does not mean that nobody reads the output any more."""
    with running() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(script(*["echo"] * 8, text="x" * 100_000))
        process.stdin.close()
        output = b""
        while piece := os.read(process.stdout.fileno(), 65_536):
            output += piece
            time.sleep(0.2)  # no sleep would be no slow reader
        assert process.wait(timeout=SECONDS) == 0
    assert sorted(answer["id"] for answer in messages(output)) == list(range(9))


def test_large_answers_to_all_that_is_in_a_file_get_through_a_slow_pipeline(
    tmp_path: Path,
) -> None:
    """Requests that wait for nothing but room in the output are not cut off by the drain."""
    session, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl"
    session.write_bytes(script(*["fill"] * 1000, size=20_000))
    serving = shlex.join(server("plain"))
    command = f"cat {session} | {serving} | (sleep 2; cat) > {out}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, timeout=SECONDS, capture_output=True)

    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in messages(out.read_bytes())] == list(range(1001))


@pytest.mark.parametrize("after", [0, 0.5])
def test_large_answers_of_async_handlers_get_through_a_slow_pipeline(
    after: float, tmp_path: Path
) -> None:
    """All handlers run at once; what they return waits for room, however long that takes.

    Those that finish only after the end of the input are read by somebody who takes longer than
    the drain.
    """
    session, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl"
    session.write_bytes(script(*["fill"] * 100, size=1_000_000, after=after))
    serving = shlex.join(server("honest"))
    command = f"cat {session} | {serving} | (sleep 2; cat) > {out}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, timeout=SECONDS, capture_output=True)

    assert done.returncode == 0, done.stderr
    assert sorted(answer["id"] for answer in messages(out.read_bytes())) == list(range(101))


def test_handler_that_reports_for_ever_does_not_keep_a_server_whose_client_reads_slowly() -> None:
    """Output that is always on its way is no reason to put off the end of the drain."""
    call = line(1, "tools/call", name="flood", _meta={"progressToken": 1})
    with running() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HANDSHAKE + call)
        process.stdin.flush()
        for reads in itertools.count():
            if reads == 30:  # the handler is ahead of the reader by now, and stays so
                process.stdin.close()
            if not os.read(process.stdout.fileno(), 65_536):
                break
            assert reads < 1000
            time.sleep(0.02)  # no sleep would be no slow reader
        assert process.wait(timeout=SECONDS) == 0


def test_requests_held_back_are_served_as_soon_as_the_client_reads() -> None:
    """A client that looks away for a moment must not find its later requests forgotten."""
    calls = 1500
    with running(name="plain") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):  # a larger pipe lets the client read faster
            fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, 1_048_576)
        process.stdin.write(script(*["fill"] * calls, size=20_000))
        process.stdin.flush()
        time.sleep(0.5)  # no sleep would be no client that looks away
        answered = 0
        while answered < calls + 1:
            ready, _, _ = select.select([process.stdout], [], [], SECONDS)
            assert ready, f"answered {answered} of {calls + 1}"
            answered += os.read(process.stdout.fileno(), 1_048_576).count(b"\n")


def test_requests_that_are_cancelled_while_held_back_are_forgotten() -> None:
    """A client that asks, cancels and reads nothing must not fill the server's memory."""
    with running(name="plain") as process:
        assert process.stdin is not None
        process.stdin.write(script(*["fill"] * 39, size=100_000))
        for number in range(1000, 6000):
            call = line(number, "tools/call", name="fill", arguments={"size": 1, "x": "x" * 10_000})
            cancellation = line(None, "notifications/cancelled", requestId=number)
            process.stdin.write(call + cancellation)
        process.stdin.write(line(6000, "tools/call", name="memory"))
        process.stdin.close()
        assert process.stdout is not None
        answers = messages(process.stdout.read())
    assert sorted(answer["id"] for answer in answers) == [*range(40), 6000]
    most = int(answers[-1]["result"]["content"][0]["text"])
    assert most < 80_000_000, f"{most} bytes in memory"


def test_handler_that_hangs_does_not_keep_a_server_whose_input_has_ended() -> None:
    """It is cancelled after the drain, and the process ends with what could be answered."""
    with running() as process:
        output, errors = process.communicate(script("sleep", "echo", text="hi"), timeout=SECONDS)

    assert process.returncode == 0
    assert [answer["id"] for answer in messages(output)] == [0, 2]
    assert errors.splitlines() == [b"sleep: cancelled", b"served"]


def test_what_a_handler_prints_goes_to_standard_error() -> None:
    """Noise on standard output is what breaks servers most; children of a handler make it, too."""
    with running() as process:
        output, errors = process.communicate(script("print"), timeout=SECONDS)

    assert [message["id"] for message in messages(output)] == [0, 1]
    assert sorted(errors.splitlines()) == [
        b"printed",
        b"printed by a child",
        b"served",
        b"written to the descriptor",
        b"written to the original",
    ]


@pytest.mark.parametrize("make", ["a_pipe", "a_socket_pair", "a_nonblocking_socket_pair"])
def test_server_whose_client_does_not_read_ends_with_its_input(make: str) -> None:
    """What stays full must not keep the process, whichever way it is written to."""
    unread, their_output = globals()[make]()
    with open(unread, "rb"), open(their_output, "wb") as stdout, running(stdout=stdout) as process:
        assert process.stdin is not None
        process.stdin.write(script("echo", text="x" * 1_000_000))
        process.stdin.close()
        assert process.wait(timeout=SECONDS) == 0


def test_server_whose_client_is_gone_ends_quietly() -> None:
    """A broken pipe is an everyday end, not a traceback."""
    with running() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(script("echo", text="hi"))
        process.stdin.close()
        errors = process.stderr.read()
        assert process.wait(timeout=SECONDS) == 0
    assert errors == b"served\n"


def test_server_that_can_no_longer_speak_ends_although_its_input_goes_on() -> None:
    """`(cat session.jsonl; sleep 1000) | server | head -1`: nobody will ever hear it again."""
    with running() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(script("echo", text="hi"))
        process.stdin.flush()
        assert process.wait(timeout=SECONDS) == 0


def run_without(descriptor: str) -> subprocess.CompletedProcess[bytes]:
    """The server with a standard descriptor closed by the shell."""
    command = f"exec {shlex.join(server('honest'))} {descriptor}&-"
    return subprocess.run(
        ["sh", "-c", command], cwd=ROOT, input=script("print"), capture_output=True, timeout=SECONDS
    )


def test_server_without_standard_error_works() -> None:
    """Descriptor 2 is some other file by then: what handlers print must not go there."""
    done = run_without("2>")
    assert done.returncode == 0
    assert [message["id"] for message in messages(done.stdout)] == [0, 1]
    assert messages(done.stdout)[1]["result"] == text("quiet")


@pytest.mark.parametrize("descriptor", ["<", ">"])
def test_server_without_standard_input_or_output_says_so(descriptor: str) -> None:
    """The free descriptor is trio's own by then: to use it would break something else."""
    done = run_without(descriptor)
    assert done.returncode == 1
    assert b"standard input and standard output must be open" in done.stderr


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_nonblocking_pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    return read, write


def a_socket_pair() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def a_nonblocking_socket_pair() -> tuple[int, int]:
    one, other = a_socket_pair()
    os.set_blocking(one, False)
    os.set_blocking(other, False)
    return one, other


@pytest.mark.parametrize(
    "make", [a_pipe, a_nonblocking_pipe, a_socket_pair, a_nonblocking_socket_pair]
)
def test_inherited_descriptors_work_and_keep_their_blocking_mode(make: Any) -> None:
    """The mode belongs to everyone who shares the open file: the shell, or standard error."""
    their_input, our_output = make()
    our_input, their_output = make()
    modes = os.get_blocking(their_input), os.get_blocking(their_output)
    os.set_blocking(our_input, True)
    os.set_blocking(our_output, True)
    large = "x" * 300_000
    with running(their_input, their_output) as process, open(our_input, "rb") as answers:
        with open(our_output, "wb") as requests:
            requests.write(script("echo", text=large))
            requests.flush()
            assert json.loads(answers.readline())["id"] == 0
            assert json.loads(answers.readline())["result"] == text(large)
            assert (os.get_blocking(their_input), os.get_blocking(their_output)) == modes
        assert process.wait(timeout=SECONDS) == 0
        os.close(their_input)
        os.close(their_output)
        assert answers.read() == b""


def test_numbers_of_descriptors_may_be_large() -> None:
    """A server that has thousands of files open still writes to a terminal that is slow; `select`
    knows 1024."""
    code = (
        "import os, resource, sys\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
        "for _ in range(1100): os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    reading, terminal = os.openpty()
    tty.setraw(terminal)
    os.set_blocking(terminal, False)
    large = "x" * 100_000
    command = [sys.executable, "-c", code, *server("honest")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=terminal) as process:
        os.close(terminal)
        assert process.stdin is not None
        process.stdin.write(script("echo", text=large))
        process.stdin.close()
        output = b""
        with contextlib.suppress(OSError):  # the end of a terminal, once nobody has it open
            while piece := os.read(reading, 65_536):
                output += piece
        os.close(reading)
        assert process.wait(timeout=SECONDS) == 0
    assert messages(output)[1]["result"] == text(large)


# ------------------------------------------------------------------------ the event loop

COUNTING_SERVER = """
import trio
from sansmcp_io.trio import serve_stdio

class Waits(trio.abc.Instrument):
    count = 0

    def before_io_wait(self, timeout):
        self.count += timeout > 0

waits = Waits()

def handle(call):
    return {"content": [{"type": "text", "text": str(waits.count)}]}

async def main():
    await serve_stdio(handle, info={"name": "x", "version": "1"}, capabilities={"tools": {}})

trio.run(main, instruments=[waits])
"""


@on_trio()
async def test_server_waits_for_each_request_in_the_loop_and_nowhere_else() -> None:
    """A program's other tasks, and threads that report back, would wait as long as it does."""
    command = [sys.executable, "-c", COUNTING_SERVER]
    async with connect_stdio(command, info=INFO, cwd=ROOT) as client:
        results = [await client.request(*call_tool("waits")) for _ in range(50)]
    counts = [int(result["content"][0]["text"]) for result in results]
    assert len(set(counts)) == len(counts)
