"""stdio on asyncio: timeouts, task groups, cancellation and the debug mode of the loop."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, Event, JSONObject
from sansmcp_io.asyncio import Client, ConnectionLost, PeerError, connect_stdio
from tests.adapters.everywhere.shims import server
from tests.support.adapters.loops import ASYNCIO
from tests.support.adapters.on_asyncio import SECONDS, on_asyncio
from tests.support.processes import ROOT

INFO = {"name": "test", "version": "1.0"}
LEGACY = LEGACY_REVISIONS[-1]
ODD = [sys.executable, "-m", "tests.support.programs.asyncio_server"]


@asynccontextmanager
async def talking(command: list[str] | None = None, **options: Any) -> AsyncGenerator[Client, None]:
    command = server("asyncio") if command is None else command
    async with connect_stdio(command, info=INFO, cwd=ROOT, **options) as client:
        yield client


def call_tool(name: str, **arguments: object) -> tuple[str, JSONObject]:
    return "tools/call", {"name": name, "arguments": arguments}


async def text(client: Client, name: str, **arguments: object) -> str:
    value: str = (await client.request(*call_tool(name, **arguments)))["content"][0]["text"]
    return value


def ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    pass


async def time_out_once_begun(client: Client, name: str) -> None:
    """Let a call run into its timeout as soon as its handler, which tells progress, has begun."""
    limit = asyncio.timeout(None)

    def begun(progress: float, total: float | None, message: str | None) -> None:
        limit.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        async with limit:
            await client.request(*call_tool(name), on_progress=begun)


async def until_seen(client: Client, expected: str) -> None:
    while await text(client, "seen") != expected:
        await asyncio.sleep(0.01)  # a server is asked again, not at once


# ---------------------------------------------------------------------------------- cancellation


@on_asyncio
async def test_timeout_of_asyncio_cancels_the_request() -> None:
    """`asyncio.timeout` is the usual way to limit a call, so it must cancel the request too."""
    async with talking() as client:
        await time_out_once_begun(client, "hang")
        await until_seen(client, "cancelled")


@on_asyncio
async def test_group_that_fails_cancels_the_requests_of_its_tasks() -> None:
    """A task group that fails must cancel the requests of its tasks on the server too."""

    async def ask(client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(client.request(*call_tool("hang")))
            group.create_task(client.request(*call_tool("break")))

    async with talking() as client:
        with pytest.raises(ExceptionGroup) as caught:
            await ask(client)
        assert isinstance(caught.value.exceptions[0], PeerError)
        await until_seen(client, "cancelled")


@on_asyncio
async def test_task_that_is_cancelled_before_it_begins_asks_nothing() -> None:
    """A task that was cancelled before it ran must send nothing, and a request that was answered
    must not be cancelled.
    """
    async with talking() as client:
        early = asyncio.create_task(client.request(*call_tool("hang")))
        early.cancel()
        late = asyncio.create_task(client.request(*call_tool("echo", text="here")))
        await asyncio.wait([early, late])
        assert early.cancelled()
        assert not late.cancel()
        assert late.result()["content"][0]["text"] == "here"
        assert await text(client, "seen") == ""


@on_asyncio
async def test_cancellation_at_any_turn_of_the_loop_leaves_the_client_usable() -> None:
    """Whenever the cancellation comes, the caller must get either the response or the
    cancellation."""
    async with talking() as client:
        for turns in range(12):
            task = asyncio.create_task(text(client, "echo", text="on"))
            for _ in range(turns):
                await asyncio.sleep(0.0001)  # turns of the loop in which things happen
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() or task.result() == "on"
        assert await text(client, "echo", text="on") == "on"


@on_asyncio
async def test_opening_can_be_cancelled() -> None:
    """A server that never answers must be ended when its caller is cancelled."""
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3), talking(silent, terminate_after=5):
            raise AssertionError


@pytest.mark.parametrize("restarts", [0, 1])
@on_asyncio
async def test_all_tasks_may_be_cancelled_at_once(restarts: int) -> None:
    """`asyncio.run` cancels all remaining tasks, and waits for ever for one that does not end.

    A task that is cancelled before it has begun runs no code at all, not even a `finally`.
    """
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]

    async def stay() -> None:
        async with talking(silent, restarts=restarts):
            raise AssertionError

    for turns in range(1, 5):
        task = asyncio.create_task(stay())
        for _ in range(turns):
            await asyncio.sleep(0)
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


@pytest.mark.parametrize("restarts", [0, 1])
@on_asyncio
async def test_block_that_is_cancelled_ends_the_server_and_stays_cancelled(restarts: int) -> None:
    """The end of the block must not swallow a cancellation of the task around it."""

    async def stay() -> None:
        async with talking(restarts=restarts) as client:
            opened.set()
            await client.request(*call_tool("hang"))

    opened = asyncio.Event()
    task = asyncio.create_task(stay())
    await opened.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize("restarts", [0, 1])
@on_asyncio
async def test_trace_that_fails_ends_the_block_and_is_raised(restarts: int) -> None:
    """A trace that failed may have lost events, so the connection must not go on without it."""

    class Failing:
        is_to_fail = False

        def sent(self, data: bytes) -> None:
            pass

        def received(self, data: bytes | bytearray) -> None:
            if self.is_to_fail:
                raise ZeroDivisionError("in the trace")

        def happened(self, event: Event) -> None:
            pass

    trace = Failing()

    async def talk() -> None:
        async with talking(trace=trace, restarts=restarts) as client:
            trace.is_to_fail = True
            await client.request(*call_tool("hang"), on_progress=ignore_progress)

    with pytest.raises(ZeroDivisionError, match="in the trace"):
        await talk()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


# -------------------------------------------------------------------------------------- handlers


@on_asyncio
async def test_handler_that_swallows_its_cancellation_answers_nobody() -> None:
    """A result of a cancelled request must not be sent, and the connection must go on."""
    async with talking(ODD) as client:
        await time_out_once_begun(client, "swallow")
        await until_seen(client, "swallowed")


@on_asyncio
async def test_handler_that_goes_on_does_not_keep_the_server_from_ending() -> None:
    """A handler that survives the cancellation by the client must be cancelled again at the end."""
    lines: list[str] = []
    async with talking(ODD, on_stderr=lines.append, terminate_after=30) as client:
        await time_out_once_begun(client, "ignore")
        await until_seen(client, "ignored")
    assert lines == ["served"]


@on_asyncio
async def test_handler_that_cancels_itself_is_answered_for() -> None:
    """Without a response the client would wait for ever."""
    async with talking(ODD, stderr="ignore") as client:
        with pytest.raises(PeerError, match="internal error"):
            await client.request(*call_tool("cancel itself"))


@on_asyncio
async def test_whatever_can_be_awaited_is_a_result() -> None:
    """Handlers may return any awaitable, not only coroutines."""
    async with talking(ODD) as client:
        assert await text(client, "later") == "later"


@on_asyncio
async def test_handler_that_exits_ends_its_server() -> None:
    """`sys.exit` in a handler must end the process with the status that it names."""
    async with talking(ODD) as client:
        with pytest.raises(PeerError, match="internal error"):
            await client.request(*call_tool("exit"))
        lost: ConnectionLost | None = None
        while lost is None:
            try:
                await text(client, "later")
            except ConnectionLost as error:
                lost = error
    assert lost.exit_status == 3


@on_asyncio
async def test_records_of_threads_are_sent() -> None:
    """Libraries log from any thread, and their records must reach the client."""
    told: list[str] = []

    def on_notification(method: str, params: JSONObject) -> None:
        told.append(params["data"])

    async with talking(ODD, revisions=[LEGACY], on_notification=on_notification) as client:
        assert await text(client, "log") == "logged"
        while len(told) < 2:
            await asyncio.sleep(0.01)  # nothing else tells of it
    assert sorted(told) == ["out of a thread", "out of the loop"]


@pytest.mark.parametrize("loop_there", ASYNCIO)
@on_asyncio
async def test_servers_run_on_each_loop(loop_there: str) -> None:
    """With eager tasks, a handler may have ended before its task is registered."""
    async with talking([*ODD, loop_there]) as client:
        assert await text(client, "later") == "later"
        await time_out_once_begun(client, "swallow")
        await until_seen(client, "swallowed")


# ------------------------------------------------------------------------------ standard streams


LINES = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}},
    )
)


def test_standard_streams_may_be_regular_files(tmp_path: Path) -> None:
    """An event loop cannot watch regular files, so threads read and write them."""
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_text(LINES)
    with source.open("rb") as reading, sink.open("wb") as writing:
        command = server("asyncio")
        run = subprocess.run(command, cwd=ROOT, stdin=reading, stdout=writing, timeout=SECONDS)
    assert run.returncode == 0
    assert [json.loads(line)["id"] for line in sink.read_text().splitlines()] == [1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_standard_streams_may_be_a_terminal() -> None:
    """Writing to a terminal may block, so a thread writes to it."""
    import pty
    import tty

    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    with subprocess.Popen(server("asyncio"), cwd=ROOT, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        os.write(ours, LINES.encode())
        data = b""
        while data.count(b"\n") < 2:
            data += os.read(ours, 4096)
        os.close(ours)
        process.wait(SECONDS)
    assert [json.loads(line)["id"] for line in data.splitlines()] == [1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_ctrl_c_ends_a_server_and_its_handlers() -> None:
    """Ctrl-C must raise `KeyboardInterrupt` to the caller of the server, and log nothing else."""
    params = {"name": "hang", "_meta": {"progressToken": 1}}
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    with subprocess.Popen(
        server("asyncio"),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(LINES + json.dumps(call) + "\n")
        process.stdin.flush()
        while "notifications/progress" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.wait(SECONDS)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "never" not in errors
    assert process.returncode == -signal.SIGINT


@on_asyncio
async def test_progress_is_told_before_the_answer() -> None:
    """The loop must call `on_progress` in the order in which the messages came."""
    told: list[object] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with talking() as client:
        await client.request(*call_tool("count"), on_progress=on_progress)
        told.append("answer")
    assert told == [1, 2, 3, "answer"]
