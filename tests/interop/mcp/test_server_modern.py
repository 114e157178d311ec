"""A server on version 2 of the `mcp` package, without a handshake.

The server is stateless: each request declares its log level, is answered with the questions of its
tool, or stays open for the changes of its subscription.
"""

import pytest
import trio

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import Call, InvalidAnswer
from tests.interop.peers import mcp_server
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio

FIRST = "test://notes/first"
MODERN = MODERN_REVISIONS[-1]
WRONG = {"MRTR-008"}
CAPABILITIES: JSONObject = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


def on_request(call: Call) -> JSONObject:
    match call.method:
        case "elicitation/create":
            assert call.params["requestedSchema"]["required"] == ["name"]
            return {"action": "accept", "content": {"name": "Ada"}}
        case "sampling/createMessage":
            content = {"type": "text", "text": "a sample"}
            return {"role": "assistant", "content": content, "model": "none"}
        case _:
            assert call.method == "roots/list"
            return {"roots": [{"uri": "file:///a/root"}]}


@pytest.mark.parametrize("revision", [LEGACY_REVISIONS[-1], MODERN])
@on_trio()
async def test_its_questions_are_answered_in_either_era(revision: str) -> None:
    """A request of the server in one era is a round of the call in the other."""
    async with talking_to(
        mcp_server(), revisions=[revision], capabilities=CAPABILITIES, on_request=on_request
    ) as talk:
        assert await talk.text("ask_elicit") == "accept: Ada"
        assert await talk.text("ask_sampling") == "a sample"
        assert await talk.text("ask_roots") == "file:///a/root"
        assert await talk.text("revision") == revision


@on_trio()
async def test_its_state_comes_back_to_it_sealed_as_it_was() -> None:
    """The server refuses a state that differs in one byte; here the round has no question, only
    the state."""
    async with talking_to(mcp_server(), revisions=[MODERN]) as talk:
        assert await talk.text("pause") == "asked"


@on_trio()
async def test_nothing_is_asked_of_a_client_that_declared_nothing() -> None:
    """The package asks without the capability; the question must be refused without reaching the
    application."""
    async with talking_to(mcp_server(), revisions=[MODERN], reports=WRONG, accuses=WRONG) as talk:
        with pytest.raises(InvalidAnswer):
            await talk.call("ask_roots")
        assert await talk.text("echo", text="still here") == "still here"


@on_trio()
async def test_its_changes_are_listened_to() -> None:
    """Two subscriptions must each get their changes, until the client leaves one and the server
    ends the other."""
    async with talking_to(mcp_server(), revisions=[MODERN]) as talk:
        async with (
            talk.client.listen({"toolsListChanged": True}) as tools,
            talk.client.listen({"resourceSubscriptions": [FIRST]}) as resources,
        ):
            assert resources.notifications == {"resourceSubscriptions": [FIRST]}
            for name, arguments in (("touch", {"uri": FIRST}), ("change", {})):
                assert await talk.text(name, **arguments) == "published"
            method, params = await anext(resources)
            assert (method, params["uri"]) == ("notifications/resources/updated", FIRST)
            assert (await anext(tools))[0] == "notifications/tools/list_changed"
            assert await talk.text("touch", uri="test://notes/second") == "published"
            assert await talk.text("hang_up") == "closed"
            assert [one async for one in resources] == []
            assert [one async for one in tools] == []
        assert await talk.text("change") == "published"
        assert await talk.text("echo", text="still here") == "still here"


@on_trio()
async def test_a_subscription_that_is_left_ends_on_its_side() -> None:
    """After the end no changes may be sent for it."""
    async with talking_to(mcp_server(), revisions=[MODERN]) as talk:
        async with talk.client.listen({"toolsListChanged": True}) as changes:
            await talk.text("change")
            await anext(changes)
        assert await talk.text("change") == "published"
        assert await talk.text("echo", text="still here") == "still here"


@on_trio()
async def test_log_messages_come_to_the_request_that_asked_for_them() -> None:
    """A log level holds for one request."""
    async with talking_to(mcp_server(), revisions=[MODERN]) as talk:

        async def log(level: str, wanted: str | None) -> None:
            params: JSONObject = {
                "name": "log",
                "arguments": {"level": level, "message": f"{level}, {wanted}"},
            }
            await talk.client.request("tools/call", params, log_level=wanted)

        await log("error", None)
        await log("info", "warning")
        await log("error", "warning")
        await log("error", None)
        told = talk.notifications.of("notifications/message")
        assert [(one["level"], one["logger"], one["data"]) for one in told] == [
            ("error", "peer", "error, warning")
        ]


@on_trio()
async def test_its_progress_is_told_and_a_call_is_cancelled() -> None:
    """Both must work in this era as in the others."""
    values: list[float] = []
    stderr: list[str] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        values.append(progress)

    async with talking_to(mcp_server(), revisions=[MODERN], stderr=stderr) as talk:
        params: JSONObject = {"name": "progress", "arguments": {"steps": 3}}
        await talk.client.request("tools/call", params, on_progress=on_progress)
        assert values == [1, 2, 3]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: talk.call("slow", seconds=60))
            await trio.testing.wait_all_tasks_blocked()
            await talk.text("echo", text="the slow one was read before")
            nursery.cancel_scope.cancel()
        assert await talk.text("echo", text="still here") == "still here"
    assert "slow: cancelled" in stderr
