"""The features of npm's server-everything, on the TypeScript SDK."""

import base64

import pytest
import trio

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp_io.trio import PeerError
from tests.interop.peers import everything
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio

URI = "demo://resource/dynamic/text/1"


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@on_trio()
async def test_its_listings_are_read_in_every_revision(revision: str) -> None:
    """The server speaks all revisions, so our client must work with it in each."""
    async with talking_to(everything(), revisions=[revision], requires=["prompts"]) as talk:
        assert talk.client.peer.revision == revision
        assert "get-structured-content" in await talk.names("tools/list")
        assert "architecture.md" in await talk.names("resources/list")
        assert len(await talk.names("resources/templates/list")) == 2
        assert "completable-prompt" in await talk.names("prompts/list")
        assert await talk.text("echo", message="été ☃") == "Echo: été ☃"


@on_trio()
async def test_its_tools_and_resources_are_used() -> None:
    """Content of every kind must arrive as it was sent."""
    async with talking_to(everything()) as talk:
        assert await talk.text("get-sum", a=2, b=0.5) == "The sum of 2 and 0.5 is 2.5."
        weather = await talk.call("get-structured-content", location="Chicago")
        assert weather["structuredContent"]["temperature"] == 36
        image = await talk.call("get-tiny-image")
        kinds = [block["type"] for block in image["content"]]
        assert kinds == ["text", "image", "text"]
        links = await talk.call("get-resource-links", count=2)
        uris = [block["uri"] for block in links["content"] if block["type"] == "resource_link"]

        contents = [(await talk.request("resources/read", uri=uri))["contents"][0] for uri in uris]
        assert b"Resource 1" in base64.b64decode(contents[0]["blob"])
        assert "Resource 2" in contents[1]["text"]

        bad = await talk.call("get-sum", a="two")
        assert bad["isError"] is True
        with pytest.raises(PeerError) as caught:
            await talk.request("resources/read", uri="demo://not/there")
        assert caught.value.code == -32602


@on_trio()
async def test_its_prompts_and_completions_are_used() -> None:
    """Arguments must have the form that the server expects, context included."""
    async with talking_to(everything()) as talk:
        prompt = await talk.request("prompts/get", name="args-prompt", arguments={"city": "Oslo"})
        assert prompt["messages"][0]["content"]["text"] == "What's weather in Oslo?"
        with pytest.raises(PeerError):
            await talk.request("prompts/get", name="unknown")

        ref = {"type": "ref/prompt", "name": "completable-prompt"}
        argument = {"name": "department", "value": "S"}
        found = await talk.request("completion/complete", ref=ref, argument=argument)
        assert found["completion"]["values"] == ["Sales", "Support"]
        context: JSONObject = {"arguments": {"department": "Sales"}}
        argument = {"name": "name", "value": ""}
        found = await talk.request(
            "completion/complete", ref=ref, argument=argument, context=context
        )
        assert found["completion"]["values"] == ["David", "Eve", "Frank"]
        ref = {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}
        argument = {"name": "resourceId", "value": "1"}
        found = await talk.request("completion/complete", ref=ref, argument=argument)
        assert found["completion"]["values"] == ["1"]


@on_trio()
async def test_its_notifications_arrive() -> None:
    """Subscriptions, log messages and changed lists must arrive."""
    async with talking_to(everything()) as talk:
        await talk.request("logging/setLevel", level="info")
        await talk.request("resources/subscribe", uri=URI)
        told = await talk.notifications.wait("notifications/message")
        assert told[0]["level"] == "info"
        await talk.call("toggle-subscriber-updates")
        assert await talk.notifications.wait("notifications/resources/updated") == [{"uri": URI}]
        await talk.call("toggle-subscriber-updates")

        data = "data:text/plain;base64,aGVsbG8="
        await talk.call("gzip-file-as-resource", name="hello.gz", data=data)
        await talk.notifications.wait("notifications/resources/list_changed")
        assert "hello.gz" in await talk.names("resources/list")

        await talk.request("logging/setLevel", level="emergency")
        count = len(talk.notifications.of("notifications/message"))
        await talk.request("resources/unsubscribe", uri=URI)
        assert len(talk.notifications.of("notifications/message")) == count


@on_trio()
async def test_its_progress_is_told_and_a_call_is_cancelled() -> None:
    """A server that reports progress for a cancelled call must not end the connection."""
    values: list[float] = []
    scope = trio.CancelScope()

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        values.append(progress)
        if total == 20:
            scope.cancel()

    async def work(duration: float, steps: int) -> JSONObject:
        params = {
            "name": "trigger-long-running-operation",
            "arguments": {"duration": duration, "steps": steps},
        }
        return await talk.client.request("tools/call", params, on_progress=on_progress)

    async with talking_to(everything(), reports={"PROG-006"}) as talk:
        result = await work(0.2, 4)
        assert values == [1, 2, 3, 4]
        assert "4" in result["content"][0]["text"]

        with scope:
            await work(1, 20)
        assert scope.cancelled_caught
        told = list(values)
        await talk.trace.reported("PROG-006")
        assert await talk.text("echo", message="still here") == "Echo: still here"
        assert values == told
