"""npm's server-everything over Streamable HTTP and over the older HTTP+SSE.

The server chooses the transport, and our client has to find out which one it speaks.
"""

from collections.abc import Generator
from typing import Any

import attrs
import pytest
import trio

from sansmcp import LEGACY_REVISIONS, JSONObject
from sansmcp_io.trio import Call, ConnectionLost, PeerError, RequestRefused
from tests.interop.talk import Talk
from tests.interop.talk_http import (
    HTTPReports,
    end_session,
    everything_on,
    talking_over_http,
)
from tests.support.adapters.on_trio import on_trio

URI = "demo://resource/dynamic/text/1"
NAME = "server-everything"
OLD = LEGACY_REVISIONS[0]
CAPABILITIES: JSONObject = {"sampling": {}, "elicitation": {"form": {}}, "roots": {}}


@attrs.frozen
class Place:
    """The URL and the transport of the server."""

    port: int
    path: str

    @property
    def is_old(self) -> bool:
        return self.path == "/sse"


@pytest.fixture(scope="module", params=["streamableHttp", "sse"])
def place(request: pytest.FixtureRequest) -> Generator[Place]:
    """One process for each transport."""
    with everything_on(request.param) as port:
        yield Place(port, "/sse" if request.param == "sse" else "/mcp")


def on_request(call: Call) -> JSONObject:
    match call.method:
        case "sampling/createMessage":
            content = {"type": "text", "text": "a sample"}
            return {"role": "assistant", "content": content, "model": "none"}
        case "roots/list":
            return {"roots": [{"uri": "file:///interop/one"}]}
        case _:
            assert call.method == "elicitation/create"
            return {"action": "accept", "content": {"name": "Ada", "check": True, "integer": 7}}


def traced(talk: Talk) -> HTTPReports:
    assert isinstance(talk.trace, HTTPReports)
    return talk.trace


@on_trio()
async def test_its_transport_is_found(place: Place) -> None:
    """Users must not have to know the transport of a URL.

    The older transport is that of 2024-11-05, but the SDK agrees to later revisions over it.
    """
    async with talking_over_http(NAME, place.port, path=place.path) as talk:
        assert talk.client.peer.revision == LEGACY_REVISIONS[-1]
        assert await talk.text("echo", message="été ☃") == "Echo: été ☃"
    assert len(traced(talk).sessions) == (not place.is_old)
    assert traced(talk).requests("DELETE") == (not place.is_old)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@on_trio()
async def test_its_listings_are_read_in_every_revision(place: Place, revision: str) -> None:
    """The SDK agrees to each of them over both transports."""
    # A client that does not know the revision of the older transport does not try that.
    revisions = sorted({OLD, revision}) if place.is_old else [revision]
    async with talking_over_http(NAME, place.port, path=place.path, revisions=revisions) as talk:
        assert talk.client.peer.revision == revision
        assert "get-structured-content" in await talk.names("tools/list")
        assert "architecture.md" in await talk.names("resources/list")
        assert len(await talk.names("resources/templates/list")) == 2
        assert "completable-prompt" in await talk.names("prompts/list")
        weather = await talk.call("get-structured-content", location="Chicago")
        assert weather["structuredContent"]["temperature"] == 36
        assert (await talk.call("get-sum", a="two"))["isError"] is True
        with pytest.raises(PeerError) as caught:
            await talk.request("resources/read", uri="demo://not/there")
        assert caught.value.code == -32602
        with pytest.raises(PeerError) as caught:
            await talk.request("x/unknown")
        assert caught.value.code == -32601


@on_trio()
async def test_its_questions_are_answered(place: Place) -> None:
    """Questions come on the GET stream, and on the stream of the call."""
    async with talking_over_http(
        NAME,
        place.port,
        path=place.path,
        capabilities=CAPABILITIES,
        on_request=on_request,
    ) as talk:
        await traced(talk).stream()
        assert "a sample" in await talk.text("trigger-sampling-request", prompt="p", maxTokens=5)
        filled = await talk.call("trigger-elicitation-request")
        assert "- Name: Ada" in filled["content"][1]["text"]
        assert "file:///interop/one" in await talk.text("get-roots-list")


@on_trio()
async def test_its_notifications_arrive(place: Place) -> None:
    """Subscriptions, log messages and changed lists must arrive."""
    async with talking_over_http(NAME, place.port, path=place.path) as talk:
        await traced(talk).stream()
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


@on_trio()
async def test_its_progress_is_told_and_a_call_is_cancelled(place: Place) -> None:
    """A server that reports progress for a cancelled call must not end the connection."""
    values: list[float] = []
    scope = trio.CancelScope()

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        values.append(progress)
        if total == 20:
            scope.cancel()

    async def work(talk: Talk, duration: float, steps: int) -> Any:
        params: JSONObject = {
            "name": "trigger-long-running-operation",
            "arguments": {"duration": duration, "steps": steps},
        }
        return await talk.client.request("tools/call", params, on_progress=on_progress)

    # Over the older transport all comes on one stream; over the newer one that of the call is gone,
    # unless more progress was read together with that which has the call cancelled.
    rule = {"PROG-006"}
    rules: dict[str, Any] = {"reports": rule} if place.is_old else {"crossing": rule}
    async with talking_over_http(NAME, place.port, path=place.path, **rules) as talk:
        result = await work(talk, 0.2, 4)
        assert values == [1, 2, 3, 4]
        assert "4" in result["content"][0]["text"]

        with scope:
            await work(talk, 1, 20)
        assert scope.cancelled_caught
        told = list(values)
        if place.is_old:
            await talk.trace.reported("PROG-006")
        assert await talk.text("echo", message="still here") == "Echo: still here"
        assert values == told


@on_trio()
async def test_many_requests_at_once_are_answered(place: Place) -> None:
    """Each response must reach its own request, also where all come on one stream."""
    answers: dict[int, str] = {}
    async with (
        talking_over_http(NAME, place.port, path=place.path) as talk,
        trio.open_nursery() as nursery,
    ):

        async def ask(number: int) -> None:
            answers[number] = await talk.text("echo", message=f"{number}")

        for number in range(60):
            nursery.start_soon(ask, number)
    assert answers == {number: f"Echo: {number}" for number in range(60)}


@on_trio()
async def test_a_client_does_not_try_the_older_transport_without_its_revision() -> None:
    """The caller has named the revisions, so the client must not try others."""
    with (
        everything_on("sse") as port,
        pytest.raises(RequestRefused, match="answered initialize with status 404") as caught,
    ):
        async with talking_over_http(NAME, port, path="/sse", revisions=LEGACY_REVISIONS[1:]):
            pass
    assert caught.value.status == 404


@on_trio()
async def test_a_session_that_it_has_forgotten_is_opened_anew() -> None:
    """This server answers an unknown session with 400 and an error without an id, and not with
    404."""
    with everything_on("streamableHttp") as port:
        async with talking_over_http(
            NAME, port, get_stream=False, reports={"SESS-008"}, incidents={"SessionLost"}
        ) as talk:
            (session,) = traced(talk).sessions
            await end_session(port, session)
            with pytest.raises(ConnectionLost, match="status 400"):
                await talk.text("echo", message="b")
            assert await talk.text("echo", message="c") == "Echo: c"
