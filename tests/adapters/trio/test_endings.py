"""Cancellation, timeouts, failed starts and ended connections on trio."""

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

from sansmcp import LEGACY_REVISIONS, JSONObject, LocalProtocolError
from sansmcp_io.trio import (
    ConnectionLost,
    InvalidAnswer,
    McpError,
    PeerError,
    RequestTimeout,
    ServerCall,
    StartFailed,
    connect,
    serve,
)
from tests.support.adapters.trio_talk import (
    CAPABILITIES,
    HANDSHAKE,
    INFO,
    Peer,
    by_hand,
    call_tool,
    ignore_progress,
    instantly,
    talking,
    talking_by_hand,
    text,
)


@instantly()
async def test_cancelled_caller_cancels_its_request_and_the_handler() -> None:
    """Cancelled work must stop on the server too."""
    trail: list[str] = []

    async def handler(call: ServerCall) -> JSONObject:
        if call.params["name"] == "check":
            return text(" ".join(trail))
        try:
            await trio.sleep_forever()
        finally:
            trail.append(f"stopped, progress sent: {call.progress(1)}")
        return text("")

    async with talking(handler) as client:
        with trio.move_on_after(5) as scope:
            await client.request(*call_tool("slow"), on_progress=ignore_progress)
        assert scope.cancelled_caught
        await trio.sleep(1)
        assert await client.request(*call_tool("check")) == text("stopped, progress sent: False")


@instantly()
async def test_request_that_was_cancelled_at_once_is_not_begun() -> None:
    """A tool with side effects must not run for a request that was cancelled before its turn."""
    begun: list[object] = []

    async def handler(call: ServerCall) -> JSONObject:
        begun.append(call.params["name"])
        return text("")

    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, far, handler, info=INFO, capabilities=CAPABILITIES))
        peer = Peer(near)
        await peer.write(*HANDSHAKE)
        assert (await peer.read())["id"] == 1
        request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "x"}}
        cancel: JSONObject = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 2},
        }
        await peer.write(json.dumps(request).encode() + b"\n" + json.dumps(cancel).encode())
        await peer.write({**request, "id": 3, "params": {"name": "y"}})
        assert (await peer.read())["id"] == 3
        await near.send_eof()
    assert begun == ["y"]


@instantly()
async def test_handler_that_answers_in_spite_of_cancellation_is_not_heard() -> None:
    """A lost race is no error: the late result must be dropped without a log record."""
    trail: list[str] = []

    async def handler(call: ServerCall) -> JSONObject:
        if call.params["name"] == "slow":
            with trio.CancelScope(shield=True):
                await trio.sleep(10)
            trail.append("answers")
        return text("")

    async with talking(handler) as client:
        with trio.move_on_after(5):
            await client.request(*call_tool("slow"))
        await trio.sleep(10)
        assert trail == ["answers"]
        assert await client.request(*call_tool("quick")) == text("")


@instantly()
async def test_request_for_a_task_outlives_its_caller() -> None:
    """A task is ended by tasks/cancel, so the cancellation of its caller must not become an
    error."""
    tasks: JSONObject = {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}
    near, peer = by_hand()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(peer.agreed, capabilities={"tools": {}, "tasks": tasks}))
        async with connect(near, info=INFO, revisions=LEGACY_REVISIONS) as client:
            with trio.move_on_after(1) as scope:
                await client.request("tools/call", {"name": "x", "task": {"ttl": 1000}})
            assert scope.cancelled_caught
            assert (await peer.read())["method"] == "tools/call"
            with trio.move_on_after(1):
                await client.request("tools/list")
            assert (await peer.read())["method"] == "tools/list"


@instantly()
async def test_leaving_the_block_by_cancellation_still_tells_the_server() -> None:
    """The cancellations of requests must be flushed although the scope around the block is
    cancelled.
    """
    near, peer = by_hand()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.agreed)
        with trio.move_on_after(5) as scope:
            async with connect(near, info=INFO, revisions=LEGACY_REVISIONS) as client:
                await client.request(*call_tool())
        assert scope.cancelled_caught
    assert (await peer.read())["method"] == "tools/call"
    assert (await peer.read())["method"] == "notifications/cancelled"
    assert await peer.stream.receive_some() == b""


@instantly()
async def test_exception_of_the_block_comes_out_as_it_was_raised() -> None:
    """Callers write `except PeerError`, so the nurseries of the library must not wrap it in a
    group.
    """

    def handler(call: ServerCall) -> JSONObject:
        raise McpError(-32050, "no")

    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, far, handler, info=INFO, capabilities=CAPABILITIES))
        with pytest.raises(PeerError):
            async with connect(near, info=INFO, revisions=LEGACY_REVISIONS) as client:
                await client.request(*call_tool())


@instantly()
async def test_what_ends_the_process_is_not_swallowed() -> None:
    """`SystemExit` in a handler must end the process, and other exception groups must stay
    groups."""

    async def handler(call: ServerCall) -> JSONObject:
        raise SystemExit(3)

    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            async with connect(near, info=INFO, revisions=LEGACY_REVISIONS) as client:
                with pytest.raises(PeerError, match="internal error"):
                    await client.request(*call_tool())

        nursery.start_soon(ask)
        with pytest.raises(SystemExit):
            await serve(far, handler, info=INFO, capabilities=CAPABILITIES)
        await far.aclose()

    def breaks(message: str) -> JSONObject:
        raise KeyboardInterrupt(message)

    near, far = memory_stream_pair()
    peer = Peer(far)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(peer.agreed, capabilities={}))

        async def talk() -> None:
            async with connect(
                near, info=INFO, revisions=LEGACY_REVISIONS, on_notification=lambda m, p: breaks(m)
            ):
                with trio.CancelScope(shield=True):
                    await peer.write({"jsonrpc": "2.0", "method": "notifications/x"})
                    await trio.sleep(1)
                raise ValueError

        with pytest.raises(BaseExceptionGroup) as caught:
            await talk()
    assert caught.group_contains(KeyboardInterrupt)
    assert caught.group_contains(ValueError)


@instantly()
async def test_request_times_out_after_a_minute_by_default() -> None:
    """A server that hangs must not hang its clients, and must get a cancellation."""
    async with talking_by_hand() as (client, peer):
        start = trio.current_time()
        with pytest.raises(RequestTimeout) as caught:
            await client.request(*call_tool())
        assert trio.current_time() - start == pytest.approx(60)
        assert isinstance(caught.value, TimeoutError)
        assert (await peer.read())["method"] == "tools/call"
        assert (await peer.read())["method"] == "notifications/cancelled"


@instantly()
async def test_timeout_can_be_set_for_all_requests_and_for_one() -> None:
    """A slow tool needs its own limit, or none."""

    async def handler(call: ServerCall) -> JSONObject:
        await trio.sleep(500)
        return text("slow")

    async with talking(handler, request_timeout=7) as client:
        for timeout, expected in ((None, 7), (3, 3)):
            start = trio.current_time()
            with pytest.raises(RequestTimeout):
                await client.request(*call_tool(), timeout=timeout)
            assert trio.current_time() - start == pytest.approx(expected)
        assert await client.request(*call_tool(), timeout=math.inf) == text("slow")


@instantly()
async def test_progress_restarts_the_timeout_but_not_the_longest_one() -> None:
    """`timeout` limits silence only; `max_timeout` limits the whole call."""

    async def handler(call: ServerCall) -> JSONObject:
        for step in range(10):
            await trio.sleep(2)
            call.progress(step)
        return text("done")

    async with talking(handler) as client:
        ask = partial(client.request, *call_tool(), timeout=3, on_progress=ignore_progress)
        assert await ask() == text("done")
        start = trio.current_time()
        with pytest.raises(RequestTimeout):
            await ask(max_timeout=5)
        assert trio.current_time() - start == pytest.approx(5)


class Clogged(trio.abc.SendStream):
    """A pipe that can be full: once clogged, a write never returns."""

    def __init__(self, inner: trio.abc.SendStream) -> None:
        self._inner = inner
        self.clogged = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.clogged:
            await trio.sleep_forever()
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._inner.aclose()


@instantly()
async def test_blocked_write_stops_neither_reading_nor_the_clock() -> None:
    """If both sides write into full pipes, each must go on reading, or both wait for ever."""
    seen: list[str] = []
    near, peer = by_hand()
    clogged = Clogged(near.send_stream)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.agreed)
        async with connect(
            trio.StapledStream(clogged, near.receive_stream),
            info=INFO,
            revisions=LEGACY_REVISIONS,
            on_notification=lambda method, params: seen.append(method),
        ) as client:
            await peer.is_ready.wait()
            clogged.clogged = True
            nursery.start_soon(peer.write, {"jsonrpc": "2.0", "method": "notifications/x-heard"})
            with pytest.raises(RequestTimeout):
                await client.request(*call_tool())
            assert seen == ["notifications/x-heard"]
            leaving = trio.current_time()
    assert trio.current_time() - leaving <= 2  # the flush is bounded, too


@instantly()
async def test_failed_write_is_told_to_the_core_and_ends_what_follows() -> None:
    """After a failed write no request can be sent, so callers must get an error at once."""

    class Broken(Clogged):
        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            if self.clogged:
                raise trio.BrokenResourceError
            await super().send_all(data)

    near, peer = by_hand()
    broken = Broken(near.send_stream)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.agreed)
        async with connect(
            trio.StapledStream(broken, near.receive_stream), info=INFO, revisions=LEGACY_REVISIONS
        ) as client:
            await peer.is_ready.wait()
            broken.clogged = True
            with pytest.raises(RequestTimeout):  # it may have gone out: an answer may come
                await client.request(*call_tool())
            with pytest.raises(ConnectionLost):
                await client.request(*call_tool())


@instantly()
async def test_start_times_out_after_half_a_minute_by_default() -> None:
    """A program that is no server would be waited for without end."""
    near, _ = by_hand()
    start = trio.current_time()
    with pytest.raises(RequestTimeout):
        async with connect(near, info=INFO, revisions=LEGACY_REVISIONS):
            pytest.fail("it must not open")
    assert trio.current_time() - start == pytest.approx(30)


async def refuse(peer: Peer) -> None:
    request = await peer.read()
    error = {"code": -32602, "message": "Unsupported", "data": {"supported": ["2030-01-01"]}}
    await peer.write({"jsonrpc": "2.0", "id": request["id"], "error": error})


async def hang_up(peer: Peer) -> None:
    await peer.read()
    await peer.stream.aclose()


async def answer_nonsense(peer: Peer) -> None:
    await peer.answer(await peer.read(), [])


async def answer_unknown_revision(peer: Peer) -> None:
    await peer.agree(protocolVersion="1999-01-01")


async def answer_without_tools(peer: Peer) -> None:
    await peer.agree(capabilities={})


@pytest.mark.parametrize(
    ("play", "expected"),
    [
        (refuse, PeerError),
        (hang_up, ConnectionLost),
        (answer_nonsense, InvalidAnswer),
        (answer_unknown_revision, StartFailed),
        (answer_without_tools, StartFailed),
    ],
)
@instantly()
async def test_start_that_fails_says_why(
    play: Callable[[Peer], Any], expected: type[Exception]
) -> None:
    """The user needs the reason to know what to do."""
    near, peer = by_hand()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(play, peer)
        with pytest.raises(expected):
            async with connect(near, info=INFO, revisions=LEGACY_REVISIONS, requires=["tools"]):
                pytest.fail("it must not open")


@instantly()
async def test_end_of_the_stream_ends_every_request() -> None:
    """Callers must not hang for ever after a crash of the server."""
    async with talking_by_hand() as (client, peer):

        async def crash() -> None:
            await peer.read()
            await peer.stream.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            with pytest.raises(ConnectionLost) as caught:
                await client.request(*call_tool(), timeout=math.inf)
        assert isinstance(caught.value, ConnectionError)
        with pytest.raises(ConnectionLost):
            await client.request(*call_tool())
        with pytest.raises(ConnectionLost):
            await anext(client.items("tools/list"))
        with pytest.raises(ConnectionLost):
            client.notify("notifications/x-colour")


@instantly()
async def test_stream_that_breaks_counts_as_its_end() -> None:
    """A reset must end the conversation as a clean end does."""

    class Reset(trio.abc.ReceiveStream):
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            raise trio.BrokenResourceError

        async def aclose(self) -> None:
            pass

    near, _ = by_hand()
    with pytest.raises(ConnectionLost):
        async with connect(
            trio.StapledStream(near.send_stream, Reset()), info=INFO, revisions=LEGACY_REVISIONS
        ):
            pytest.fail("it must not open")


@instantly()
async def test_invalid_answer_is_not_taken_for_a_result() -> None:
    """A result without its required members would break the caller later."""
    async with talking_by_hand() as (client, peer):

        async def answer() -> None:
            await peer.answer(await peer.read(), {"content": "no list"})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            with pytest.raises(InvalidAnswer) as caught:
                await client.request(*call_tool())
            assert caught.value.result == {"content": "no list"}


@instantly()
async def test_request_that_would_break_the_protocol_is_refused_here() -> None:
    """A request for an undeclared capability is the caller's mistake, and must raise before it is
    sent.
    """
    async with talking(lambda call: text("")) as client:
        with pytest.raises(LocalProtocolError):
            await client.request("prompts/list")
        assert await client.request(*call_tool()) == text("")


@instantly()
async def test_end_of_input_cancels_handlers_that_take_too_long() -> None:
    """One handler must not keep a server running for ever after its client has gone."""
    trail: list[float] = []

    async def handler(call: ServerCall) -> JSONObject:
        try:
            await trio.sleep_forever()
        finally:
            trail.append(trio.current_time())
        return text("")

    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def end() -> None:
            peer = Peer(near)
            await peer.write(
                *HANDSHAKE,
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "x"}},
            )
            await peer.stream.send_eof()

        nursery.start_soon(end)
        start = trio.current_time()
        await serve(far, handler, info=INFO, capabilities=CAPABILITIES, drain=4)

    assert [at - start for at in trail] == [pytest.approx(4)]
