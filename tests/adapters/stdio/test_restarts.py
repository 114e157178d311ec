"""Server processes that end unexpectedly and are started again."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from sansmcp import LEGACY_REVISIONS, ConnectionClosed, Event, JSONObject
from sansmcp_io.trio import Client, ConnectionLost, connect_stdio
from tests.support.adapters.on_trio import on_trio
from tests.support.processes import bad, has_children
from tests.support.processes import call_bad as call_tool

INFO = {"name": "test", "version": "1.0"}


async def pid_of(client: Client) -> str:
    result: Any = await client.request(*call_tool())
    pid: str = result["content"][0]["text"]
    return pid


@on_trio()
async def test_server_that_ended_is_started_again_for_the_next_call() -> None:
    """A long-lived client must not have to be restarted because one tool has crashed."""
    pids: set[str] = set()
    async with connect_stdio(bad("fragile"), info=INFO, restarts=2) as client:
        for _ in range(3):
            pids.add(await pid_of(client))
            with pytest.raises(ConnectionLost):
                await client.request(*call_tool("die"))
        with pytest.raises(ConnectionLost, match="2 restarts"):
            await pid_of(client)
    assert len(pids) == 3
    assert not has_children()


@on_trio()
async def test_callers_that_find_the_server_gone_share_one_new_process() -> None:
    """One process for each waiting caller would overload the machine."""
    pids: set[str] = set()

    async def ask(client: Client) -> None:
        pids.add(await pid_of(client))

    async with connect_stdio(bad("fragile"), info=INFO, restarts=1) as client:
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool("die"))
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask, client)
    assert len(pids) == 1


@on_trio()
async def test_caller_that_gives_up_uses_up_no_restart() -> None:
    """One impatient caller must not use up the restarts of all others."""
    async with connect_stdio(bad("fragile"), info=INFO, restarts=1) as client:
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool("die"))
        with trio.move_on_after(0.01) as scope:  # enough to begin a start, not to end it
            await pid_of(client)
        assert scope.cancelled_caught
        assert await pid_of(client)


@on_trio()
async def test_server_that_cannot_be_started_again_is_reported_to_all_who_need_it(
    tmp_path: Path,
) -> None:
    """No caller waits for a start that has failed; the next caller tries again."""
    program = tmp_path / "program"
    program.symlink_to(sys.executable)
    command = [str(program), *bad("fragile")[1:]]
    failures: list[ConnectionLost] = []

    async def ask(client: Client) -> None:
        with pytest.raises(ConnectionLost, match="could not be started again") as raised:
            await pid_of(client)
        failures.append(raised.value)

    async with connect_stdio(command, info=INFO, restarts=2) as client:
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool("die"))
        program.unlink()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask, client)
        program.symlink_to(sys.executable)
        assert await pid_of(client)
    assert [type(failure.__cause__) for failure in failures] == [FileNotFoundError] * 3


@on_trio()
async def test_what_a_server_said_before_it_failed_to_start_again_is_kept(tmp_path: Path) -> None:
    """The last lines of standard error say why the server does not start."""
    flag = tmp_path / "broken"
    command = bad("fragile", str(flag))
    async with connect_stdio(command, info=INFO, restarts=1, stderr="capture") as client:
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool("die"))
        flag.touch()
        with pytest.raises(ConnectionLost, match="could not be started again") as raised:
            await pid_of(client)
    assert raised.value.stderr == "it is broken\n"
    assert raised.value.exit_status == 3


@on_trio()
async def test_block_that_is_left_during_a_restart_leaves_no_process() -> None:
    """The end of the block must end a restart too."""
    async with connect_stdio(bad("fragile"), info=INFO, restarts=1) as client:
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool("die"))
        with trio.move_on_after(0):
            await pid_of(client)
    assert not has_children()


@pytest.mark.parametrize("restarts", [0, 1])
@on_trio()
async def test_what_fails_within_the_connection_ends_the_block(restarts: int) -> None:
    """Ctrl-C may come in any callback, and no caller may go on waiting after it."""
    async with trio.open_nursery() as nursery:
        is_lost = trio.Event()

        async def outside(client: Client) -> None:
            with pytest.raises(ConnectionLost):
                await client.request("tools/call", {"name": "silence"}, timeout=math.inf)
            is_lost.set()

        def interrupted(method: str, params: JSONObject) -> None:
            raise KeyboardInterrupt

        async def inside() -> None:
            async with connect_stdio(
                bad("telling"), info=INFO, restarts=restarts, on_notification=interrupted
            ) as client:
                nursery.start_soon(outside, client)
                await client.request("tools/call", {"name": "tell"}, timeout=math.inf)

        with trio.fail_after(30), pytest.raises(KeyboardInterrupt):
            await inside()
        await is_lost.wait()
    assert not has_children()


class Tracer:
    """A trace that calls a function at one event or at some bytes."""

    def __init__(
        self, act: Callable[[], None], at: type[Event] | None = None, sending: bytes | None = None
    ) -> None:
        self._act = act
        self._at = at
        self._sending = sending

    def sent(self, data: bytes) -> None:
        if self._sending is not None and self._sending in data:
            self._act()

    def received(self, data: bytes | bytearray) -> None:
        pass

    def happened(self, event: Event) -> None:
        if type(event) is self._at:
            self._act()


@pytest.mark.parametrize("restarts", [0, 1])
@on_trio()
async def test_trace_that_fails_at_the_very_end_ends_the_block(restarts: int) -> None:
    """An exception of a trace must be raised for the last event as for the first."""

    def fail() -> None:
        raise ZeroDivisionError

    with trio.fail_after(30), pytest.raises(ZeroDivisionError):
        async with connect_stdio(
            bad("fragile"), info=INFO, restarts=restarts, trace=Tracer(fail, at=ConnectionClosed)
        ) as client:
            await pid_of(client)
    assert not has_children()


@pytest.mark.parametrize("restarts", [0, 1])
@on_trio()
async def test_cancellation_in_the_moment_of_the_start_is_heard(restarts: int) -> None:
    """The block is never entered, so the failed start itself must end the process."""
    with trio.fail_after(30), trio.CancelScope() as scope:
        async with connect_stdio(
            bad("fragile"),
            info=INFO,
            restarts=restarts,
            trace=Tracer(scope.cancel, sending=b"notifications/initialized"),
        ):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert not has_children()


@on_trio()
async def test_client_that_is_used_after_its_block_starts_nothing() -> None:
    """A call after the block is the caller's error, and must raise at once, each time."""
    async with connect_stdio(bad("fragile"), info=INFO, restarts=1) as client:
        await pid_of(client)
    for _ in range(2):
        with trio.fail_after(30), pytest.raises(ConnectionLost, match="has ended"):
            await pid_of(client)
    assert not has_children()


@on_trio()
async def test_first_start_that_fails_is_reported_as_without_restarts() -> None:
    """The server has not run yet, so this is no restart."""
    with pytest.raises(FileNotFoundError):
        async with connect_stdio(["/does/not/exist"], info=INFO, restarts=1):
            pytest.fail("it must not open")
    with pytest.raises(ConnectionLost):
        async with connect_stdio(["true"], info=INFO, restarts=1):
            pytest.fail("it must not open")


@pytest.mark.parametrize("restarts", [0, 1])
@on_trio()
async def test_scope_around_the_block_cancels_the_calls_in_flight(
    restarts: int, tmp_path: Path
) -> None:
    """The server must be told that the calls are cancelled, whichever scope was cancelled."""
    seen = tmp_path / "seen"
    command = bad("recorder", str(seen))
    with trio.CancelScope() as scope:
        async with connect_stdio(
            command, info=INFO, revisions=LEGACY_REVISIONS, restarts=restarts
        ) as client:
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.request, *call_tool())
                    while "tools/call" not in (seen.read_text() if seen.exists() else ""):
                        await trio.sleep(0.01)
                    scope.cancel()
            finally:
                with trio.CancelScope(shield=True):  # the connection is there for what cleans up
                    await trio.sleep(0.01)
                    client.notify("notifications/last")
    assert seen.read_text().split()[-2:] == ["notifications/cancelled", "notifications/last"]
