"""Clients survive real server processes that misbehave."""

import math
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from sansmcp import Config, JSONObject, LocalProtocolError
from sansmcp_io.stdio import server_environment
from sansmcp_io.trio import Client, ConnectionLost, RequestTimeout, connect_stdio
from tests.support.adapters.on_trio import on_trio
from tests.support.processes import ROOT, bad, descriptors, has_children, is_running
from tests.support.processes import call_bad as call_tool

INFO = {"name": "test", "version": "1.0"}


def text(value: str) -> JSONObject:
    return {"content": [{"type": "text", "text": value}]}


def memory() -> int:
    """The bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@on_trio()
async def test_server_that_hears_neither_end_nor_signal_is_killed_in_the_time_that_is_set() -> None:
    """Both grace periods can be set, since some servers have data to write before they exit."""
    async with connect_stdio(bad("deaf"), info=INFO, terminate_after=0.1, kill_after=0.2) as client:
        assert await client.request(*call_tool("hi")) == text("hi")
        start = trio.current_time()
    assert 0.3 <= trio.current_time() - start < 3.9  # unless they are set, they are 4
    assert not has_children()


@on_trio()
async def test_all_that_a_server_has_started_ends_with_it() -> None:
    """A wrapper script often starts the real server, which would stay as an orphan."""
    lines: list[str] = []
    async with connect_stdio(
        bad("forking"), info=INFO, on_stderr=lines.append, kill_after=0.2
    ) as client:
        assert await client.request(*call_tool("hi")) == text("hi")
        while len(lines) < 2:
            await trio.sleep(0.01)
    pids = [int(line.split()[1]) for line in lines]
    assert len(pids) == 2
    with trio.fail_after(30):
        while any(is_running(pid) for pid in pids):
            await trio.sleep(0.01)


@pytest.mark.parametrize("restarts", [0, 1])
@on_trio()
async def test_death_of_a_server_is_noticed_although_a_child_of_it_holds_its_pipes(
    restarts: int,
) -> None:
    """A child that holds the pipes keeps the output open, so the end of the process has to be
    noticed by itself.
    """
    async with connect_stdio(
        bad("orphaning"), info=INFO, restarts=restarts, kill_after=0.1
    ) as client:
        with trio.fail_after(30), pytest.raises(ConnectionLost) as caught:
            await client.request(*call_tool(), timeout=math.inf)
        assert caught.value.exit_status == -9
        with pytest.raises(ConnectionLost) as caught:
            await client.request(*call_tool())
        assert caught.value.exit_status == -9
    assert not has_children()


@on_trio()
async def test_what_a_server_wrote_before_it_died_is_read_to_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client that is busy may have more than one read to catch up after the process has ended."""
    heard: list[str] = []

    def on_notification(method: str, params: JSONObject) -> None:
        heard.append(method)
        time.sleep(0.6)  # no sleep would be no busy client

    async with connect_stdio(
        bad("hasty"), info=INFO, on_notification=on_notification, kill_after=0.1
    ) as client:
        assert await client.request(*call_tool("hi")) == text("hi")
    assert len(heard) == 5


@on_trio()
async def test_server_that_dies_within_a_line_loses_its_calls_and_leaves_its_last_words() -> None:
    """The last lines of standard error usually name the cause of a crash."""
    with pytest.raises(ConnectionLost) as caught:
        async with connect_stdio(bad("dying"), info=INFO, stderr="capture") as client:
            await client.request(*call_tool())
    assert caught.value.stderr == "out of paper\\x1b[0m\n"
    assert caught.value.exit_status == 7


@on_trio()
async def test_noise_before_between_and_inside_lines_is_survived() -> None:
    """Text printed to standard output is the commonest failure in the field, and must not end the
    connection.
    """
    async with connect_stdio(bad("noisy"), info=INFO) as client:
        for number in range(20):
            assert await client.request(*call_tool(str(number))) == text(str(number))


@on_trio()
async def test_chatter_on_standard_error_never_blocks_a_server() -> None:
    """c109: a client that captures standard error must read it all the time, and keep only the end
    of it.
    """
    async with connect_stdio(bad("chatty"), info=INFO, stderr="capture") as client:
        assert await client.request(*call_tool("hi")) == text("hi")
        with pytest.raises(ConnectionLost) as caught:
            async with connect_stdio(["false"], info=INFO, stderr="ignore"):
                pytest.fail("it must not open")
    assert caught.value.stderr == ""


@on_trio()
async def test_server_that_closes_its_output_and_lives_on_ends_calls_at_once() -> None:
    """No response can come any more, although the process still runs."""
    async with connect_stdio(bad("mute"), info=INFO, terminate_after=0.1) as client:
        with trio.fail_after(30), pytest.raises(ConnectionLost):
            await client.request(*call_tool())
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool())
    assert not has_children()


@on_trio()
async def test_server_that_never_reads_costs_bounded_memory_and_its_calls_time_out() -> None:
    """A client must neither wait for ever nor queue output without a bound."""
    large = "x" * 100_000
    timed_out = 0
    async with connect_stdio(bad("unreading"), info=INFO, terminate_after=0.1) as client:
        before = memory()

        async def ask(timeout: float, max_timeout: float | None) -> None:
            nonlocal timed_out
            with pytest.raises(RequestTimeout):
                await client.request(*call_tool(large), timeout=timeout, max_timeout=max_timeout)
            timed_out += 1

        async with trio.open_nursery() as nursery:
            for _ in range(200):  # 40 MB: nearly all of them wait for room
                nursery.start_soon(ask, 0.5, None)
                nursery.start_soon(ask, math.inf, 0.5)
        with pytest.raises(LocalProtocolError):  # not a silent wait of no time at all
            await client.request(*call_tool(large), timeout=0)
        assert timed_out == 400
        assert memory() - before < 20_000_000


@pytest.mark.unjudged("thousands of messages")
@on_trio()
async def test_cancelling_calls_at_random_moments_leaks_nothing() -> None:
    """Thousands of races between a response and a cancellation must leave no entries in either
    process.
    """
    rng = random.Random(3)
    command = [sys.executable, "-m", "tests.support.programs.trio_server", "honest"]
    answered = 0

    async def ask(client: Client, seconds: float) -> None:
        nonlocal answered
        with trio.move_on_after(seconds):
            result = await client.request("tools/call", params)
            assert result["content"] == text("hi")["content"]
            answered += 1

    params: JSONObject = {"name": "echo", "arguments": {"text": "hi"}}
    async with connect_stdio(
        command, info=INFO, cwd=ROOT, terminate_after=10, stderr="capture"
    ) as client:

        async def round_of(calls: int) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(calls):
                    nursery.start_soon(ask, client, rng.choice([0, rng.random() * 0.2, 1000]))

        async def usage_there() -> list[int]:
            result: Any = await client.request("tools/call", {"name": "usage"})
            return [int(number) for number in result["content"][0]["text"].split()]

        await round_of(500)
        tasks = trio.lowlevel.current_statistics().tasks_living
        before, open_before = memory(), descriptors()
        there = await usage_there()
        for _ in range(8):
            await round_of(500)
        result = await client.request("tools/call", params)
        assert result["content"] == text("hi")["content"]
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert descriptors() <= open_before
        assert memory() - before < 20_000_000
        tasks_there, open_there, memory_there = await usage_there()
        assert [tasks_there, open_there] == there[:2]
        assert memory_there - there[2] < 20_000_000
    assert 400 < answered < 4200  # both endings have happened


@pytest.mark.unjudged("200 MB")
@on_trio()
async def test_two_hundred_megabytes_in_both_directions_at_once() -> None:
    """Both pipes are full all the time, so a side that waits for one of them alone would wait for
    ever.
    """
    command = [
        sys.executable,
        "-m",
        "benchmarks.servers.echo_stdio",
        "--codec=msgspec",
        "--handler=async",
    ]
    large = "x" * 1_000_000
    left = 200

    async def ask(client: Client) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            result: Any = await client.request(*call_tool(large))
            assert len(result["content"][0]["text"]) == len(large)

    async with (
        connect_stdio(command, info=INFO, cwd=ROOT) as client,
        trio.open_nursery() as nursery,
    ):
        for _ in range(10):
            nursery.start_soon(ask, client)
    assert left == 0


@on_trio()
async def test_requests_wait_for_room_and_do_not_end_the_connection_of_all() -> None:
    """A burst of large calls to a server that reads must not end the connection."""
    command = [sys.executable, "-m", "tests.support.programs.trio_server", "honest"]
    large = "x" * 500_000
    config = Config(max_unsent_bytes=4_000_000)

    async with connect_stdio(command, info=INFO, cwd=ROOT, config=config) as client:

        async def ask(timeout: float, max_timeout: float | None) -> None:
            result: Any = await client.request(
                *call_tool(large), timeout=timeout, max_timeout=max_timeout
            )
            assert result["content"] == text(large)["content"]

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(ask, math.inf, 60.0 if number % 2 else None)


@on_trio()
async def test_requests_that_wait_for_room_end_with_the_connection() -> None:
    """These requests have not been sent, so no table holds them."""
    failures: list[BaseException] = []

    async with (
        trio.open_nursery() as nursery,
        connect_stdio(bad("unreading"), info=INFO, terminate_after=0.1) as client,
    ):

        async def ask() -> None:
            with pytest.raises(ConnectionLost) as caught:
                await client.request(*call_tool("x" * 1_000_000), timeout=math.inf)
            failures.append(caught.value)

        for _ in range(5):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
    assert len(failures) == 5


# -------------------------------------------------------------------------------- environment


def test_secrets_of_the_client_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is often a foreign program, and must not get the client's environment variables."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("SHELL", "() { echo a function; }")
    environment = server_environment({"MINE": "given"})

    assert "AWS_SECRET_ACCESS_KEY" not in environment
    assert "SHELL" not in environment
    assert environment["MINE"] == "given"
    assert environment["LC_TIME"] == "C"
    assert environment["PATH"] == os.environ["PATH"]
