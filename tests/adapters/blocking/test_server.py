"""The blocking server: plain functions as handlers, on real file descriptors."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.blocking import (
    Call,
    Client,
    ConnectionLost,
    PeerError,
    RequestTimeout,
    connect_stdio,
)
from tests.support.adapters.blocking_talk import INFO, InThread, call_tool, text
from tests.support.processes import ROOT

LEGACY = LEGACY_REVISIONS[-1]
MODERN = MODERN_REVISIONS[-1]
SECONDS = 60


def ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    pass


def no_roots(call: Call) -> JSONObject:
    return {"roots": []}


def command(name: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.programs.blocking_server", name]


@contextmanager
def served(name: str = "one thread", **options: Any) -> Generator[Client, None, None]:
    with connect_stdio(command(name), info=INFO, cwd=ROOT, **options) as client:
        yield client


# ------------------------------------------------------------------------------------- handlers


def test_handlers_run_at_once_in_as_many_threads_as_are_wanted() -> None:
    """Two handlers that wait for each other would wait for ever in one thread."""
    with served("threads") as client:
        calls = [InThread(partial(text, client, "meet")) for _ in range(2)]
        assert [call.result() for call in calls] == ["met", "met"]


@pytest.mark.parametrize("name", ["one thread", "threads"])
def test_busy_handler_learns_of_cancellation_when_it_reports(name: str) -> None:
    """With one thread, input is read only when the handler calls the library; with several, another
    thread reads.
    """
    lines: list[str] = []
    with served(name, on_stderr=lines.append) as client:
        with pytest.raises(RequestTimeout):
            client.request(*call_tool("work"), on_progress=ignore_progress, max_timeout=0.5)
        assert text(client, "echo", text="on") == "on"
    assert lines == ["gave up", "served"]


def test_call_that_is_over_asks_nobody_and_does_not_sleep() -> None:
    """A question outside of an open call would mean nothing to the client."""
    lines: list[str] = []
    with served(
        revisions=[LEGACY],
        capabilities={"roots": {}},
        on_request=no_roots,
        on_stderr=lines.append,
    ) as client:
        with pytest.raises(RequestTimeout):
            client.request(*call_tool("ask when cancelled"), timeout=0.3)
        assert text(client, "echo", text="on") == "on"
    assert lines == ["asked nobody", "slept not", "served"]


def test_handler_that_hangs_does_not_keep_a_server_whose_input_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A thread cannot be ended from outside, but the process must not wait for it."""
    with served("threads", terminate_after=30) as client:
        with pytest.raises(RequestTimeout):
            client.request(*call_tool("block"), timeout=0.1)
        assert text(client, "echo", text="on") == "on"
    assert caplog.records == []


@pytest.mark.parametrize("name", ["one thread", "threads"])
def test_handler_that_ends_the_program_ends_it(name: str) -> None:
    """`sys.exit` in a handler must end the program, whichever thread it runs in."""
    with served(name, stderr="capture", terminate_after=30) as client:
        with pytest.raises(PeerError):  # it is the handler that has failed
            text(client, "exit")
        caught: ConnectionLost | None = None
        while caught is None:
            try:
                text(client, "echo", text="on")
            except ConnectionLost as error:
                caught = error
    assert caught.exit_status == 5


def test_server_logs_and_publishes_outside_of_calls() -> None:
    """Records of `logging` must go to the client, and changes to its subscriptions, without an open
    call.
    """
    told: list[tuple[str, object]] = []

    def on_notification(method: str, params: JSONObject) -> None:
        told.append((method, params.get("data", params.get("uri"))))

    with served(revisions=[LEGACY], on_notification=on_notification) as client:
        client.request("logging/setLevel", {"level": "warning"})
        client.request("resources/subscribe", {"uri": "file:///a"})
        assert text(client, "log") == "file:///a"
    assert told[-2:] == [
        ("notifications/message", "look out"),
        ("notifications/resources/updated", "file:///a"),
    ]


def test_handler_of_log_records_does_not_stand_in_the_way_of_what_the_library_logs() -> None:
    """The reading thread would wait for a thread that logs, and that thread for the reading one."""
    process = subprocess.Popen(
        command("threads"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        try:
            process.stdin.write(script("log slowly"))
            process.stdin.flush()
            assert process.stderr.readline() == b"formatting\n"
            output, _ = process.communicate(b"no message\n", timeout=SECONDS)
        finally:
            process.kill()
    assert 1 in ids(output)


def test_server_ends_a_subscription() -> None:
    """When the server ends a subscription, the loop over its changes must end without an error."""
    with (
        served(revisions=[MODERN]) as client,
        client.listen({"resourceSubscriptions": ["file:///a"]}) as changes,
    ):
        text(client, "log")
        assert text(client, "end") == "True"
        assert [params["uri"] for _, params in changes] == ["file:///a"]


# ---------------------------------------------------------------------------------- descriptors


def line(id: int, method: str, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def script(name: str, *, calls: int = 1, **arguments: object) -> bytes:
    """The lines of a client: a handshake and some calls."""
    opening = line(0, "initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=INFO)
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n"
    return (
        opening
        + ready
        + b"".join(
            line(number, "tools/call", name=name, arguments=arguments)
            for number in range(1, calls + 1)
        )
    )


def ids(output: bytes) -> list[int]:
    return [message["id"] for text in output.splitlines() if "id" in (message := json.loads(text))]


@pytest.mark.parametrize("kind", ["pipe", "file", "socket"])
def test_everything_that_was_read_is_answered_whatever_the_streams_are(
    kind: str, tmp_path: Path
) -> None:
    """A shell may connect pipes, files or terminals; every request must get a complete response on
    each.
    """
    data = script("echo", calls=20, text="x" * 100_000)

    launch: Any = subprocess.run
    run = partial(launch, command("streams"), cwd=ROOT, timeout=SECONDS, check=True)
    if kind == "pipe":
        output: bytes = run(input=data, capture_output=True).stdout
    elif kind == "file":
        (tmp_path / "in").write_bytes(data)
        with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as sink:
            run(stdin=source, stdout=sink)
        output = (tmp_path / "out").read_bytes()
    else:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            served = InThread(partial(run, stdin=theirs, stdout=theirs))

            def send() -> None:
                ours.sendall(data)
                ours.shutdown(socket.SHUT_WR)

            sent = InThread(send)
            output = b""
            while len(ids(output[: output.rfind(b"\n") + 1])) < 21:
                output += ours.recv(1_000_000)
            sent.result()
            served.result()
    assert ids(output) == list(range(21))


def test_what_a_handler_prints_goes_to_standard_error() -> None:
    """One stray `print` to standard output would break the conversation."""
    done = subprocess.run(
        command("printing"), input=script("print"), capture_output=True, cwd=ROOT, timeout=SECONDS
    )
    assert ids(done.stdout) == [0, 1]
    for said in (b"printed\n", b"written to the descriptor\n", b"printed by a child\n"):
        assert said in done.stderr


def test_server_whose_client_reads_nothing_holds_requests_back_and_ends() -> None:
    """Memory must be bounded while the client does not read, and the end of the client must be
    noticed.
    """
    process = subprocess.Popen(
        command("unread"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin as requests:
        requests.write(script("echo", calls=50, text="x" * 100_000))
        requests.close()
        assert process.wait(SECONDS) == 0


def test_server_whose_client_is_gone_ends_quietly() -> None:
    """A broken pipe at the end must not print a traceback."""
    process = subprocess.Popen(
        command("gone"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdout.close()
        process.stdin.write(script("echo", calls=50, text="x" * 1000))
        process.stdin.flush()
        assert process.wait(SECONDS) == 0  # although its input goes on
        assert process.stderr.read() == b"served\n"


def test_interrupted_server_ends() -> None:
    """Ctrl-C in the terminal must end the server."""
    process = subprocess.Popen(
        command("interrupted"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdin.write(script("echo", text="x"))
        process.stdin.flush()
        assert ids(process.stdout.readline()) == [0]
        os.kill(process.pid, signal.SIGINT)
        process.wait(SECONDS)
        assert process.stderr.read().endswith(b"KeyboardInterrupt\n")


def test_server_without_standard_input_says_so() -> None:
    """Descriptor 0 may belong to some other file by then, which must not be read."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command("closed")],
        capture_output=True,
        cwd=ROOT,
        timeout=SECONDS,
    )
    assert b"standard input and standard output must be open" in done.stderr
