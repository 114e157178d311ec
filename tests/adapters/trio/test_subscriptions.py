"""Several tasks iterate over the changes of one subscription."""

import pytest
import trio
from trio.testing import memory_stream_pair

from sansmcp import MODERN_REVISIONS, JSONObject, ResourceUpdated
from sansmcp_io.trio import Server, ServerCall, connect, serve
from tests.support.adapters.trio_talk import INFO, instantly, talking

URIS = [f"file:///{number}" for number in range(5)]
SERVING: JSONObject = {
    "revisions": MODERN_REVISIONS,
    "capabilities": {"resources": {"subscribe": True}},
}


def nothing(call: ServerCall) -> JSONObject:
    return {}


@instantly()
async def test_each_change_wakes_one_of_two_tasks_and_the_end_wakes_both() -> None:
    """A task that woke up without a change took the next wake-up away from the other one, for
    ever."""
    servers: list[Server] = []
    taken: list[object] = []
    ended: list[str] = []
    serving = {**SERVING, "on_ready": servers.append}
    async with (
        talking(nothing, serving=serving, revisions=MODERN_REVISIONS) as client,
        client.listen({"resourceSubscriptions": URIS}) as changes,
        trio.open_nursery() as nursery,
    ):

        async def take(name: str) -> None:
            async for _, params in changes:
                taken.append(params["uri"])
            ended.append(name)

        (server,) = servers
        for name in ("the first", "the second"):
            nursery.start_soon(take, name)
        await trio.sleep(1)  # both wait
        for number, uri in enumerate(URIS, start=1):
            assert server.publish(ResourceUpdated(uri))
            await trio.sleep(1)
            assert taken == URIS[:number]
        (listener,) = server.listeners
        server.end_listener(listener)
    assert sorted(ended) == ["the first", "the second"]


@instantly()
async def test_task_that_stops_iterating_leaves_the_changes_to_the_other() -> None:
    """A task that was woken and then stopped must pass the wake-up on to the other one."""
    servers: list[Server] = []
    taken: list[object] = []
    serving = {**SERVING, "on_ready": servers.append}
    async with (
        talking(nothing, serving=serving, revisions=MODERN_REVISIONS) as client,
        client.listen({"resourceSubscriptions": URIS}) as changes,
        trio.open_nursery() as nursery,
    ):

        async def take(scope: trio.CancelScope) -> None:
            with scope:
                taken.append((await anext(changes))[1]["uri"])

        (server,) = servers
        scopes = [trio.CancelScope() for _ in range(2)]
        for scope in scopes:
            nursery.start_soon(take, scope)
        await trio.sleep(1)  # both wait
        scopes[0].cancel()
        assert server.publish(ResourceUpdated(URIS[0]))
        await trio.sleep(1)
        assert taken == URIS[:1]


@instantly()
@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does not read"])
async def test_cancelled_server_ends_subscriptions_with_a_result(reads: bool) -> None:
    """Case c280: the writer was cancelled with the server, so the result was never written."""
    near, far = memory_stream_pair()
    sending = far.send_stream
    assert sending is not None

    class Clogging(trio.abc.SendStream):
        """A stream that blocks once the peer does not read."""

        is_full = False

        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            if self.is_full:
                await trio.sleep_forever()
            await sending.send_all(data)

        async def wait_send_all_might_not_block(self) -> None:
            raise NotImplementedError

        async def aclose(self) -> None:
            await sending.aclose()

    output = Clogging()
    stream = trio.StapledStream(output, far.receive_stream)
    served = trio.Event()
    scope = trio.CancelScope()

    async def serving() -> None:
        with scope:
            await serve(stream, nothing, info=INFO, capabilities=SERVING["capabilities"])
        assert scope.cancelled_caught
        served.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serving)
        async with (
            connect(near, info=INFO, revisions=MODERN_REVISIONS) as client,
            client.listen({"resourceSubscriptions": URIS}) as changes,
        ):
            await trio.sleep(1)
            output.is_full = not reads
            cancelled_at = trio.current_time()
            scope.cancel()
            if reads:
                assert await anext(changes, None) is None
            await served.wait()
            assert trio.current_time() - cancelled_at <= 2
