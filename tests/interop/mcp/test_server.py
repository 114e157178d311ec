"""A server on version 2 of the `mcp` package.

Tools are tested in `test_stdio`, and features of the newest revision in `test_server_modern`.
"""

import pytest

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS, JSONObject
from sansmcp_io.trio import Call, PeerError
from tests.interop.peers import mcp_server
from tests.interop.talk import talking_to
from tests.support.adapters.on_trio import on_trio

FIRST = "test://notes/first"
MODERN = MODERN_REVISIONS[-1]


@pytest.mark.parametrize("revision", [LEGACY_REVISIONS[0], LEGACY_REVISIONS[-1], MODERN])
@on_trio()
async def test_its_resources_prompts_and_completions_are_used(revision: str) -> None:
    """These features exist in each revision; one error code differs with the era."""
    async with talking_to(mcp_server(), revisions=[revision]) as talk:
        assert await talk.names("resources/list") == ["first", "second"]
        assert await talk.names("resources/templates/list") == ["greeting"]
        for uri, text in ((FIRST, "first note"), ("test://greetings/Ada", "Hello, Ada!")):
            read = await talk.request("resources/read", uri=uri)
            assert read["contents"][0]["text"] == text
        with pytest.raises(PeerError) as caught:
            await talk.request("resources/read", uri="test://not/there")
        code = -32602 if revision == MODERN else -32002
        assert (caught.value.code, caught.value.data) == (code, {"uri": "test://not/there"})

        assert await talk.names("prompts/list") == ["greet"]
        prompt = await talk.request("prompts/get", name="greet", arguments={"name": "Ada"})
        assert prompt["messages"][0]["content"]["text"] == "Please greet Ada."

        argument = {"name": "name", "value": "a"}
        for ref in (
            {"type": "ref/prompt", "name": "greet"},
            {"type": "ref/resource", "uri": "test://greetings/{name}"},
        ):
            found = await talk.request("completion/complete", ref=ref, argument=argument)
            assert found["completion"]["values"] == ["ada", "alan"]


@on_trio()
async def test_what_was_not_subscribed_or_is_below_the_level_is_not_told() -> None:
    """`unsubscribe`, and a higher level, must have their effect."""
    async with talking_to(mcp_server(), revisions=LEGACY_REVISIONS) as talk:
        await talk.request("resources/subscribe", uri=FIRST)
        assert await talk.text("touch", uri=FIRST) == "notified"
        await talk.request("resources/unsubscribe", uri=FIRST)
        assert await talk.text("touch", uri=FIRST) == "not subscribed"
        assert talk.notifications.of("notifications/resources/updated") == [{"uri": FIRST}]

        await talk.request("logging/setLevel", level="error")
        assert await talk.text("log", level="warning") == "suppressed"
        assert await talk.text("log", level="alert", message="look") == "sent"
        assert talk.notifications.of("notifications/message") == [
            {"level": "alert", "logger": "peer", "data": "look"}
        ]


@pytest.mark.parametrize("revision", [*LEGACY_REVISIONS[2:], MODERN])
@on_trio()
async def test_its_elicitation_is_answered(revision: str) -> None:
    """A user may decline, which is an answer and no error."""
    answers: list[JSONObject] = [
        {"action": "accept", "content": {"name": "Ada"}},
        {"action": "decline"},
    ]

    def on_request(call: Call) -> JSONObject:
        assert call.method == "elicitation/create"
        assert call.params["requestedSchema"]["required"] == ["name"]
        return answers.pop(0)

    async with talking_to(
        mcp_server(),
        revisions=[revision],
        capabilities={"elicitation": {}},
        on_request=on_request,
    ) as talk:
        assert await talk.text("ask_elicit") == "accept: Ada"
        assert await talk.text("ask_elicit") == "decline"
