"""The shared tests on ASGI and WSGI servers of other projects, which serve the shared handler.

The client is that of trio. Tests of servers without sessions are at the end.
"""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, cast

import mcp_types as types
import pytest
import trio
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from pydantic import FileUrl

import sansmcp_io.trio
from sansmcp_io import ConnectionLost, PeerError
from tests.adapters.everywhere.hosted import FORGET, SERVERS
from tests.adapters.everywhere.server import OnTrio
from tests.adapters.everywhere.shims import INFO, RequestHandler, Shim, TrioClient, TrioShim
from tests.adapters.everywhere.test_everywhere import (
    CAPABILITIES,
    LEGACY,
    MODERN,
    both_eras,
    call_tool,
    list_roots,
    test_both_sides_write_more_than_pipes_hold,
    test_caller_that_is_cancelled_cancels_the_handler,
    test_calls_and_their_errors,
    test_changes_are_told_between_calls,
    test_client_asks_within_what_it_is_asked,
    test_each_of_many_callers_has_its_own_answer,
    test_every_revision_is_spoken,
    test_exception_of_on_progress_of_a_server_comes_out_of_its_call,
    test_input_is_given_when_it_is_required,
    test_listings_are_read_to_their_end,
    test_log_messages_come_before_the_answer_that_they_belong_to,
    test_modern_client_is_asked_by_require_input_alone,
    test_modern_client_is_not_notified_between_its_requests,
    test_pings_are_answered,
    test_progress_is_told_before_the_answer,
    test_refusal_to_give_input_is_raised_where_the_call_was_made,
    test_server_asks_within_a_call,
    test_server_that_gives_up_cancels_what_it_asked,
    test_ten_mebibytes_arrive_intact,
    text,
)
from tests.adapters.everywhere.test_everywhere import (
    test_call_that_takes_too_long_is_cancelled as too_long_is_cancelled,
)
from tests.support.processes import ROOT

SECONDS = 30
STATELESS = "gunicorn-sync"
WITH_SESSIONS = [name for name in SERVERS if name != STATELESS]

__all__ = [
    "test_both_sides_write_more_than_pipes_hold",
    "test_caller_that_is_cancelled_cancels_the_handler",
    "test_calls_and_their_errors",
    "test_changes_are_told_between_calls",
    "test_client_asks_within_what_it_is_asked",
    "test_each_of_many_callers_has_its_own_answer",
    "test_every_revision_is_spoken",
    "test_exception_of_on_progress_of_a_server_comes_out_of_its_call",
    "test_input_is_given_when_it_is_required",
    "test_listings_are_read_to_their_end",
    "test_log_messages_come_before_the_answer_that_they_belong_to",
    "test_modern_client_is_asked_by_require_input_alone",
    "test_modern_client_is_not_notified_between_its_requests",
    "test_pings_are_answered",
    "test_progress_is_told_before_the_answer",
    "test_refusal_to_give_input_is_raised_where_the_call_was_made",
    "test_server_asks_within_a_call",
    "test_server_that_gives_up_cancels_what_it_asked",
    "test_ten_mebibytes_arrive_intact",
]


@contextmanager
def running(name: str) -> Generator[str, None, None]:
    """A server of another project: its process and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.adapters.everywhere.hosted", name, str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                _, said = process.communicate(timeout=SECONDS)
            finally:
                process.kill()
    assert "Traceback" not in said.replace(EXPECTED, "")


EXPECTED = "the handler of 'tools/call' failed\nTraceback"
"""A handler of these tests that fails is logged, and nothing else is."""


def wait_for(port: int) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)  # nothing says when it is ready


class Hosted(TrioShim):
    """The client of trio, on a server that runs already."""

    @asynccontextmanager
    async def connect(
        self, command: list[str], *, on_request: RequestHandler | None = None, **options: Any
    ) -> AsyncGenerator[TrioClient, None]:
        (url,) = command
        with urllib.request.urlopen(f"{url}{FORGET}", timeout=SECONDS) as response:
            assert response.read() == b"forgotten"
        handler = None if on_request is None else partial(on_request, OnTrio())
        async with sansmcp_io.trio.connect_http(
            f"{url}/mcp", info=INFO, on_request=handler, **options
        ) as client:
            yield TrioClient(client)


@pytest.fixture
def shim() -> Shim:
    return cast(Shim, Hosted())


@pytest.fixture(scope="module", params=WITH_SESSIONS)
def serving(request: pytest.FixtureRequest) -> Generator[list[str], None, None]:
    with running(request.param) as url:
        yield [url]


@pytest.fixture
def any_serving(serving: list[str]) -> list[str]:
    return serving


@pytest.fixture(scope="module")
def stateless() -> Generator[list[str], None, None]:
    """A server with one process, one thread and no sessions."""
    with running(STATELESS) as url:
        yield [url]


async def test_changes_come_to_who_has_subscribed(shim: Shim, serving: list[str]) -> None:
    """Changes must arrive at once; the server notices later that the client has left."""
    async with shim.connect(serving, revisions=[MODERN]) as client:
        async with client.listen({"toolsListChanged": True}) as changes:
            assert await text(client, "change") == "True"
            change = await changes.next()
            assert change is not None
            assert change[0] == "notifications/tools/list_changed"
        while await text(client, "change") == "True":
            pass


async def test_call_that_takes_too_long_is_cancelled_by_a_message(
    shim: Shim, serving: list[str]
) -> None:
    """In a legacy session the cancellation comes in an HTTP request of its own."""
    await too_long_is_cancelled(shim, serving, LEGACY)


@pytest.mark.parametrize("serving", ["uvicorn", "hypercorn"], indirect=True)
async def test_call_that_takes_too_long_is_cancelled_by_leaving(
    shim: Shim, serving: list[str]
) -> None:
    """In 2026-07-28 the end of the connection is the cancellation; a thread notices it only when it
    writes.
    """
    await too_long_is_cancelled(shim, serving, MODERN)


@both_eras
@pytest.mark.parametrize("name", SERVERS)
async def test_server_that_dies_within_a_call_loses_it(
    shim: Shim, name: str, revision: str
) -> None:
    """All waiting calls must fail at once; where the server is started again, the client goes
    on."""
    with running(name) as url:
        async with shim.connect([url], revisions=[revision], get_stream=False) as client:

            async def ask(tool: str) -> None:
                with pytest.raises(ConnectionLost):
                    await client.request(*call_tool(tool))

            async def end() -> None:
                # A call that comes too late is served after the restart.
                while await text(client, "hanging") != str(others):
                    await trio.sleep(0.01)  # for handlers that begin
                await ask("die")

            others = 0 if name == STATELESS else 2
            await shim.at_once(*[partial(ask, "hang")] * others, end)
            while name.startswith("gunicorn"):
                with suppress(ConnectionLost):
                    assert await text(client, "echo", text="on") == "on"
                    break


# The package's HTTP client leaves generators to the garbage collector, of which trio complains.
@pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mode", ["legacy", "auto", MODERN])
async def test_client_of_the_official_package_is_served(
    shim: Shim, serving: list[str], mode: str
) -> None:
    """A client of another project finds the mistakes that our client and our server share."""
    (url,) = serving
    told: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with Client(f"{url}/mcp", mode=mode, list_roots_callback=on_roots) as client:
        assert len((await client.list_tools()).tools) == 10  # the first page
        result = await client.call_tool("count", progress_callback=on_progress)
        assert [block.model_dump()["text"] for block in result.content] == ["3"]
        assert told == [1, 2, 3]
        result = await client.call_tool("require")
        assert [block.model_dump()["text"] for block in result.content] == ["file:///home"]


async def on_roots(context: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///home"))])


@both_eras
async def test_worker_of_one_thread_serves_what_needs_no_session(
    shim: Shim, stateless: list[str], revision: str
) -> None:
    """A worker with one thread must be enough for calls, errors and progress."""
    await test_calls_and_their_errors(shim, stateless, revision)
    await test_listings_are_read_to_their_end(shim, stateless, revision)
    await test_progress_is_told_before_the_answer(shim, stateless, revision)
    await test_ten_mebibytes_arrive_intact(shim, stateless, revision)


@both_eras
async def test_worker_of_one_thread_answers_many_callers(
    shim: Shim, stateless: list[str], revision: str
) -> None:
    """Callers wait for each other, and each must get its own response."""
    await test_each_of_many_callers_has_its_own_answer(shim, stateless, revision)
    await test_both_sides_write_more_than_pipes_hold(shim, stateless)


async def test_worker_of_one_thread_asks_without_holding_it(
    shim: Shim, stateless: list[str]
) -> None:
    """In 2026-07-28 a question is a result and its answer another request, so no thread has to
    wait.
    """
    await test_input_is_given_when_it_is_required(shim, stateless, MODERN)
    await test_modern_client_is_asked_by_require_input_alone(shim, stateless)


async def test_client_without_session_is_not_asked(shim: Shim, stateless: list[str]) -> None:
    """Before 2026-07-28 a question needs a session, so without one it must be refused at once."""
    async with shim.connect(
        stateless, revisions=[LEGACY], capabilities=CAPABILITIES, on_request=list_roots
    ) as client:
        with pytest.raises(PeerError):
            await client.request(*call_tool("ask"))
        with pytest.raises(PeerError, match="cannot be asked by a server without sessions"):
            await client.request(*call_tool("require"))
        assert (await text(client, "notify")).startswith("notifications/custom needs a session: ")
        assert await text(client, "echo", text="on") == "on"


async def test_stream_that_would_last_is_refused_where_threads_are_few(
    shim: Shim, stateless: list[str]
) -> None:
    """A long stream would take the only thread of the worker for as long as the client likes."""
    async with shim.connect(stateless, revisions=[MODERN]) as client:
        with pytest.raises(PeerError) as caught:
            async with client.listen({"toolsListChanged": True}):
                raise AssertionError("it was taken")
        assert caught.value.code == -32601
        assert await text(client, "echo", text="on") == "on"
