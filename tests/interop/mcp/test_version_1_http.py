"""A server on version 1 of the `mcp` package over HTTP, as most deployed servers are."""

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, TypeAlias

import pytest
import trio

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp_io.trio import Call, PeerError
from tests.interop.peers import ROOT, time
from tests.interop.talk import Talk
from tests.interop.talk_http import HTTPReports, end_session, running, talking_over_http
from tests.support.adapters.on_trio import on_trio

Serve: TypeAlias = Callable[..., int]

NAME = "mcp 1"
SCRIPT = ROOT / "tests" / "peers" / "mcp_first_http.py"
OLD = ("--sse",)
SESSIONS = pytest.mark.parametrize(
    "options", [(), ("--json",), ("--store",), OLD], ids=lambda options: " ".join(options) or "none"
)
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


@pytest.fixture(scope="module")
def serve() -> Generator[Serve]:
    """Ports of servers, each of which starts when the first test wants it."""
    python = time().command[0]  # whose environment has that version
    ports: dict[tuple[str, ...], int] = {}
    with ExitStack() as stack:

        def port(*options: str) -> int:
            if options not in ports:
                ports[options] = stack.enter_context(running([python, SCRIPT, *options]))
            return ports[options]

        yield port


def talking_to(
    serve: Serve, options: tuple[str, ...], *reports: str, **settings: Any
) -> AbstractAsyncContextManager[Talk]:
    """Talk to a server, which refuses the modern probe in its own way."""
    if options == OLD:
        return talking_over_http(NAME, serve(*options), path="/sse", reports=reports, **settings)
    known = {*reports, "OWN-019"}
    return talking_over_http(NAME, serve(*options), reports=known, **settings)


def on_request(call: Call) -> JSONObject:
    match call.method:
        case "elicitation/create":
            return {"action": "accept", "content": {"name": "Ada"}}
        case "sampling/createMessage":
            content = {"type": "text", "text": "a sample"}
            return {"role": "assistant", "content": content, "model": "none"}
        case _:
            assert call.method == "roots/list"
            return {"roots": [{"uri": "file:///a/root"}]}


def traced(talk: Talk) -> HTTPReports:
    assert isinstance(talk.trace, HTTPReports)
    return talk.trace


@pytest.mark.parametrize(
    "options",
    [(), ("--json",), ("--stateless",), ("--stateless", "--json"), ("--store",), OLD],
    ids=lambda options: " ".join(options) or "none",
)
@on_trio()
async def test_it_is_found_and_answers(serve: Serve, options: tuple[str, ...]) -> None:
    """The server refuses the modern probe, by which the client must recognise its era."""
    async with talking_to(serve, options) as talk:
        assert talk.client.peer.revision == LEGACY_REVISIONS[-1]
        assert "await_ending" in await talk.names("tools/list")
        assert await talk.text("echo", text="été ☃ \u2028") == "été ☃ \u2028"
        assert (await talk.call("fail"))["isError"] is True
        assert (await talk.call("nothing"))["isError"] is True  # where others have an error
        with pytest.raises(PeerError):
            await talk.request("resources/read", uri="test://nothing")
        with pytest.raises(PeerError) as caught:
            await talk.request("x/unknown")
        assert caught.value.code == -32602  # that of a request which is not as it should be
        large = "x" * 1_000_000
        assert await talk.text("echo", text=large) == large
    assert len(traced(talk).sessions) == (options != OLD and "--stateless" not in options)


@SESSIONS
@on_trio()
async def test_its_questions_are_answered_and_its_changes_heard(
    serve: Serve, options: tuple[str, ...]
) -> None:
    """Messages come on the stream of the call, on the GET stream, or all on the only stream."""
    values: list[float] = []
    async with talking_to(
        serve,
        options,
        "CAP-002",
        capabilities=CAPABILITIES,
        on_request=on_request,
    ) as talk:
        await traced(talk).stream()
        if "--json" not in options:
            assert await talk.text("ask") == "Ada: a sample, file:///a/root"
            params: JSONObject = {"name": "steps", "arguments": {}}
            await talk.client.request(
                "tools/call", params, on_progress=lambda value, total, _: values.append(value)
            )
            assert values == [1, 2, 3]
            told = await talk.notifications.wait("notifications/message", 3)
            assert [one["data"] for one in told] == ["step 1", "step 2", "step 3"]
        assert await talk.text("touch") == "told"
        told = await talk.notifications.wait("notifications/resources/updated")
        assert told == [{"uri": "test://note"}]


@SESSIONS
@on_trio()
async def test_a_cancelled_call_ends_on_its_side(serve: Serve, options: tuple[str, ...]) -> None:
    """The cancellation is a message of its own, and must arrive whatever happens to the stream.

    The call is answered all the same on its stream, which is read a little longer.
    """
    late = () if "--json" in options else ("CANC-011",)
    async with talking_to(serve, options, *late) as talk:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: talk.call("hang", name="a"))
            await talk.text("await_start", name="a")
            nursery.cancel_scope.cancel()
        assert await talk.text("await_ending", name="a") == "it has ended"
        if late:
            await talk.trace.reported(*late)


@on_trio()
async def test_an_answer_is_fetched_where_the_stream_was_left(serve: Serve) -> None:
    """The server closes the stream of a call and keeps its response, which the client must
    fetch."""
    async with talking_to(serve, ("--store",)) as talk:
        await traced(talk).stream()
        assert await talk.text("leave") == "left"
        assert traced(talk).requests("GET") == 2


@on_trio()
async def test_a_session_that_was_ended_elsewhere_is_opened_anew(serve: Serve) -> None:
    """An unknown session gets 404, and the call must be sent in a new one."""
    async with talking_to(serve, (), incidents={"SessionLost"}) as talk:
        (session,) = traced(talk).sessions
        await end_session(serve(), session)
        assert await talk.text("echo", text="b") == "b"
        assert await talk.text("echo", text="c") == "c"
    assert len(traced(talk).sessions) == 2
