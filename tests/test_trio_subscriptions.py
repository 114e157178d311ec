"""Several tasks that iterate over the changes of one subscription."""

import trio

from sansmcp import MODERN_REVISIONS, JSONObject, ResourceUpdated
from sansmcp_io.trio import Server, ServerCall
from tests.support.trio_talk import instantly, talking

URIS = [f"file:///{number}" for number in range(5)]
SERVING: JSONObject = {
    "revisions": MODERN_REVISIONS,
    "capabilities": {"resources": {"subscribe": True}},
}


def nothing(call: ServerCall) -> JSONObject:
    return {}


@instantly()
async def test_each_change_wakes_one_of_two_tasks_and_the_end_wakes_both() -> None:
    """A task that woke up for nothing took the next wake-up away from the other, for ever."""
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
    """It was woken for a change that it never took: the other has to be woken, too."""
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
