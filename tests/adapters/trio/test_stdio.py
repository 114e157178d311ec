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
from trio.testing import MockClock, wait_all_tasks_blocked

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
    """A program may start thousands of servers: no zombie and no descriptor may be left."""
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
    """Servers are configured by their directory and environment."""
    env = {**os.environ, "SANSMCP_TEST": "given", "PYTHONPATH": str(ROOT)}
    async with connect_stdio(server("honest"), info=INFO, cwd="/", env=env) as client:
        result = await client.request(*call_tool("environment", variable="SANSMCP_TEST"))
    assert result["content"] == text("/ given")["content"]


@on_trio()
async def test_messages_larger_than_a_pipe_arrive_whole() -> None:
    """A pipe holds 64 KiB, so the writer of a larger message has to wait in between."""
    large = "x" * 1_000_000
    async with connect_stdio(server("honest"), info=INFO, cwd=ROOT) as client:
        result = await client.request(*call_tool("echo", text=large))
        assert result["content"] == text(large)["content"]


@on_trio()
async def test_program_that_cannot_be_started_raises_what_the_system_says() -> None:
    """A wrong path is the commonest mistake in a configuration, and its error must say so."""
    with pytest.raises(FileNotFoundError):
        async with connect_stdio(["/does/not/exist"], info=INFO):
            pytest.fail("it must not open")


@on_trio()
async def test_program_that_ends_at_once_is_reported_as_lost() -> None:
    """The crash of a server at its start must not be waited for half a minute."""
    with pytest.raises(ConnectionLost):
        async with connect_stdio(["true"], info=INFO):
            pytest.fail("it must not open")
    assert not has_children()


@on_trio()
async def test_shell_is_not_involved() -> None:
    """Arguments often come from a configuration, and must not be run as shell commands."""
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
    """Text without an end, in a wrong encoding, or with a handler that raises must not break the
    conversation.
    """
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
    """The end of the process is shielded from the cancellation, and the server's handler sees the
    cancellation.
    """
    lines: list[str] = []
    with trio.CancelScope() as scope:
        async with (
            connect_stdio(server("honest"), info=INFO, cwd=ROOT, on_stderr=lines.append) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(partial(client.request, *call_tool("sleep")))
            await wait_all_tasks_blocked()  # which task trio runs first is a matter of chance
            await client.request(*call_tool("echo", text="the other one was read before"))
            scope.cancel()
    assert scope.cancelled_caught
    assert lines == ["sleep: cancelled", "served"]
    assert not has_children()


@on_trio()
async def test_process_that_the_server_leaves_behind_ends_with_it() -> None:
    """A child of the server holds the pipes open, and no other program would end it."""
    lines: list[str] = []
    async with connect_stdio(
        server("haunted"), info=INFO, cwd=ROOT, on_stderr=lines.append
    ) as client:
        await client.request(*call_tool("echo", text=""))
    assert not is_running(int(lines[0].removeprefix("ghost ")))


@quickly()
async def test_server_that_does_not_read_is_given_up() -> None:
    """Neither a caller nor the end of the block may wait for a pipe that stays full."""
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
    """The lines of a client that calls these tools."""
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
    """The server as a process, which is killed if it has not ended by itself."""
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
    """`server < file > file`: no descriptor can be waited for, and the input ends before the
    output.
    """
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(script(*["echo"] * 50, text="hi"))
    with source.open("rb") as stdin, sink.open("wb") as stdout, running(stdin, stdout) as process:
        _, errors = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, errors
    answers = messages(sink.read_bytes())
    assert sorted(answer["id"] for answer in answers) == list(range(51))
    assert [answer["result"] for answer in answers[1:]] == [text("hi")] * 50


def test_everything_that_was_read_is_answered_through_a_pipe(tmp_path: Path) -> None:
    """`cat session.jsonl | server > out.jsonl` is the usual first try of a server."""
    session, out = tmp_path / "session.jsonl", tmp_path / "out.jsonl"
    session.write_bytes(script(*["echo"] * 2000, text="x" * 200))
    command = f"cat {session} | {shlex.join(server('honest'))} > {out}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, timeout=SECONDS, capture_output=True)

    assert done.returncode == 0, done.stderr
    assert sorted(answer["id"] for answer in messages(out.read_bytes())) == list(range(2001))


def test_answers_are_written_to_the_last_for_a_client_that_reads_slowly() -> None:
    """After the end of input the output may still be read, so it must be complete."""
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
    """Requests that only wait for room in the output must not be cut off by the drain."""
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
    """All handlers run at once, and their results must wait for room, however long it takes.

    Results that are finished after the end of the input are read by a client that takes longer than
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
    """Output that never stops must not extend the drain for ever."""
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
    """A client that stops reading for a moment must get responses to its later requests."""
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
    """A client that asks, cancels and never reads must not fill the server's memory."""
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
    """The handler must be cancelled after the drain, and the process end with the other responses
    written.
    """
    with running() as process:
        output, errors = process.communicate(script("sleep", "echo", text="hi"), timeout=SECONDS)

    assert process.returncode == 0
    assert [answer["id"] for answer in messages(output)] == [0, 2]
    assert errors.splitlines() == [b"sleep: cancelled", b"served"]


def test_what_a_handler_prints_goes_to_standard_error() -> None:
    """Output of a handler or its child processes on standard output would break the
    conversation."""
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
    """Output that cannot be written must not keep the process, whatever kind of file it is."""
    unread, their_output = globals()[make]()
    with open(unread, "rb"), open(their_output, "wb") as stdout, running(stdout=stdout) as process:
        assert process.stdin is not None
        process.stdin.write(script("echo", text="x" * 1_000_000))
        process.stdin.close()
        assert process.wait(timeout=SECONDS) == 0


def test_server_whose_client_is_gone_ends_quietly() -> None:
    """A broken pipe is a usual end, and must not print a traceback."""
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
    """`(cat session.jsonl; sleep 1000) | server | head -1`: no response can be delivered any
    more."""
    with running() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(script("echo", text="hi"))
        process.stdin.flush()
        assert process.wait(timeout=SECONDS) == 0


def run_without(descriptor: str) -> subprocess.CompletedProcess[bytes]:
    """Run the server with a standard descriptor closed by the shell."""
    command = f"exec {shlex.join(server('honest'))} {descriptor}&-"
    return subprocess.run(
        ["sh", "-c", command], cwd=ROOT, input=script("print"), capture_output=True, timeout=SECONDS
    )


def test_server_without_standard_error_works() -> None:
    """Descriptor 2 may belong to some other file by then, and output of handlers must not go
    there."""
    done = run_without("2>")
    assert done.returncode == 0
    assert [message["id"] for message in messages(done.stdout)] == [0, 1]
    assert messages(done.stdout)[1]["result"] == text("quiet")


@pytest.mark.parametrize("descriptor", ["<", ">"])
def test_server_without_standard_input_or_output_says_so(descriptor: str) -> None:
    """The free descriptor may belong to trio by then, and must not be used."""
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
    """The shell and standard error share the open file, so its blocking mode must be restored."""
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
    """A server with thousands of open files must still write to a slow terminal; `select` fails for
    descriptors above 1023.
    """
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
    """Waiting outside of the loop would hold up the program's other tasks and threads."""
    command = [sys.executable, "-c", COUNTING_SERVER]
    async with connect_stdio(command, info=INFO, cwd=ROOT) as client:
        results = [await client.request(*call_tool("waits")) for _ in range(50)]
    counts = [int(result["content"][0]["text"]) for result in results]
    assert len(set(counts)) == len(counts)
