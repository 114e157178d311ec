"""Results are changed to what a peer of an older revision knows, and the loss is told."""

import base64
import copy
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import ALL_REVISIONS, JSONObject, content
from sansmcp.content import Loss, adapt
from tests.content.judged import JUDGED
from tests.support.judges.schema import schema_of

TEXT: Final = content.text("hi")
IMAGE: Final = content.image(b"png", "image/png")
AUDIO: Final = content.audio(b"wav", "audio/wav", annotations={"priority": 1}, meta={"a": 1})
LINK: Final = content.resource_link("memo:1", "one", title="One", description="the first")
EMBEDDED: Final = content.embedded_resource("memo:2", b"data")
USE: Final = content.tool_use("1", "add", {"a": 1})
USED: Final = content.tool_result("1", [TEXT, LINK, EMBEDDED, IMAGE], structured=[3])
HAD: Final = "left out, as a block of text has it"
ADDED: Final = [("TOOL-013", "left out; a block of text with it was added")]

blocks = st.lists(st.sampled_from([TEXT, IMAGE, AUDIO, LINK, EMBEDDED]), max_size=4)
model_blocks = st.sampled_from([TEXT, IMAGE, AUDIO, USE, USED])
revisions = st.sampled_from(ALL_REVISIONS)


def faults(result: JSONObject, definition: str, revision: str) -> list[str]:
    """What the official schema of the revision refuses; the library adds the type of a result."""
    more = {"resultType": "complete"} if revision == "2026-07-28" else {}
    return schema_of(revision).violations({**result, **more}, definition)


@given(blocks, st.none() | JUDGED, st.booleans(), revisions)
def test_results_of_tools_fit_every_revision(
    items: list[Any], value: Any, is_structured: bool, revision: str
) -> None:
    """TOOL-013, TOOL-020, TOOL-021: a client refuses the whole result for one unknown block."""
    result: Any = {"content": items, "isError": False}
    if is_structured:
        result["structuredContent"] = value
    before = copy.deepcopy(result)
    adapted, losses = adapt(result, revision)

    assert faults(adapted, "CallToolResult", revision) == []
    assert result == before
    assert (adapted == result) == (not losses)
    if revision == "2026-07-28":
        assert losses == []
    if is_structured and "structuredContent" not in adapted:
        read = [block.get("text") for block in adapted["content"]]
        assert content.structured(value)["content"][0].get("text") in read


@given(blocks, revisions)
def test_prompts_fit_every_revision(items: list[Any], revision: str) -> None:
    """PROMPT-011: links and audio are new in prompts, too."""
    result = {"messages": [{"role": "user", "content": item} for item in items]}
    adapted, losses = adapt(result, revision)

    assert faults(adapted, "GetPromptResult", revision) == []
    assert (adapted == result) == (not losses)


@given(model_blocks | st.lists(model_blocks, max_size=3), revisions)
def test_messages_of_models_fit_every_revision(items: Any, revision: str) -> None:
    """SAMP-010: before 2025-11-25 the content of a message is one block."""
    result = {"role": "assistant", "model": "m", "content": items}
    adapted, losses = adapt(result, revision)

    assert schema_of(revision).violations(adapted, "CreateMessageResult") == []
    assert (adapted["content"] == items or [adapted["content"]] == items) == (not losses)


def test_audio_keeps_its_bytes() -> None:
    """A client of 2024-11-05 may know what to do with bytes of this type."""
    adapted, losses = adapt({"content": [TEXT, AUDIO, AUDIO]}, "2024-11-05")
    resources = [block["resource"] for block in adapted["content"][1:]]

    assert [base64.b64decode(one["blob"]) for one in resources] == [b"wav", b"wav"]
    assert [one["mimeType"] for one in resources] == ["audio/wav", "audio/wav"]
    assert len({one["uri"] for one in resources}) == 2
    assert adapted["content"][1]["annotations"] == {"priority": 1}
    assert losses == [
        Loss(path=f"content[{index}]", rule="TOOL-020", text="audio became an embedded resource")
        for index in (1, 2)
    ]


def test_links_become_text_with_what_they_say() -> None:
    """TOOL-021: the model can still read the resource by its URI."""
    bare = content.resource_link("memo:2", "two", annotations={"priority": 0})
    adapted, losses = adapt({"content": [LINK, bare]}, "2025-03-26")

    assert adapted["content"] == [
        {"type": "text", "text": "One (memo:1): the first"},
        {"type": "text", "text": "two (memo:2)", "annotations": {"priority": 0}},
    ]
    assert [(one.path, one.rule, one.text) for one in losses] == [
        ("content[0]", "TOOL-021", "resource_link became text"),
        ("content[1]", "TOOL-021", "resource_link became text"),
    ]


@pytest.mark.parametrize(
    ("result", "revision", "texts", "losses"),
    [
        (content.structured({"a": 1}), "2025-03-26", ['{"a":1}'], [("TOOL-017", HAD)]),
        (content.structured({"a": 1}), "2025-06-18", ['{"a":1}'], []),
        (content.structured([1]), "2025-11-25", ["[1]"], [("TOOL-013", HAD)]),
        (content.structured([1], text="one"), "2025-11-25", ["one", "[1]"], ADDED),
        (content.structured(None, text="{"), "2025-11-25", ["{", "null"], ADDED),
        ({"structuredContent": 1, "content": [5]}, "2025-06-18", [None, "1"], ADDED),
        ({"structuredContent": 1}, "2025-11-25", ["1"], ADDED),
        (content.structured(None), "2026-07-28", ["null"], []),
    ],
)  # fmt: skip
def test_structured_content_is_not_lost(
    result: Any, revision: str, texts: list[str | None], losses: list[tuple[str, str]]
) -> None:
    """TOOL-018: a client that knows no structured content reads the text."""
    adapted, found = adapt(result, revision)
    items: list[Any] = adapted["content"]

    assert [block.get("text") if block != 5 else None for block in items] == texts
    assert [(loss.rule, loss.text) for loss in found] == losses
    assert {loss.path for loss in found} <= {"structuredContent"}
    assert ("structuredContent" in adapted) == (not losses)


def test_messages_of_models_say_what_was_in_them() -> None:
    """SAMP-010, SAMP-011: a server of an older revision gets one block that it knows."""
    message: JSONObject = {"role": "assistant", "model": "m", "content": [TEXT, USE, USED, AUDIO]}
    adapted, losses = adapt(message, "2024-11-05")

    assert adapted["content"] == {
        "type": "text",
        "text": 'hi\n\n[call of the tool add: {"a":1}]\n\n'
        "hi\n\nOne (memo:1): the first\n\n[resource]\n\n[image, image/png]\n\n[audio, audio/wav]",
    }
    assert [(loss.path, loss.rule) for loss in losses] == [
        ("content[1]", "SAMP-011"),
        ("content[2]", "SAMP-011"),
        ("content[3]", "TOOL-020"),
        ("content", "SAMP-010"),
    ]
    single, losses = adapt({"role": "assistant", "model": "m", "content": [IMAGE]}, "2025-06-18")
    assert (single["content"], losses) == (IMAGE, [])


def test_results_inside_messages_are_adapted() -> None:
    """TOOL-013: the structured content of 2025-11-25 is an object there, too."""
    message = {"role": "user", "model": "m", "content": [USED]}
    adapted, losses = adapt(message, "2025-11-25")

    assert adapted["content"][0]["content"][-1] == {"type": "text", "text": "[3]"}
    assert [(loss.path, loss.rule) for loss in losses] == [
        ("content[0].structuredContent", "TOOL-013")
    ]


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"tools": []},
        {"contents": [content.resource_contents("memo:1", "a")]},
        {"messages": [1, {"role": "user"}]},
        {"content": "text"},
        {"content": [{"type": "video"}, {"type": ["audio"]}, IMAGE, None]},
        {"role": "assistant", "content": None},
    ],
)
def test_other_results_stay_as_they_are(result: Any) -> None:
    """Results of extensions, and wrong ones, are judged elsewhere."""
    assert adapt(result, "2024-11-05") == (result, [])


def test_objects_are_adapted() -> None:
    """A program may have its own class for results."""

    @attrs.frozen
    class Result:
        content: list[object]
        isError: bool | None = None

    assert adapt(Result([TEXT]), "2024-11-05") == ({"content": [TEXT]}, [])


def test_wrong_arguments_are_refused() -> None:
    """A revision that nobody knows would be taken for the newest one."""
    with pytest.raises(ValueError, match="revision"):
        adapt({}, "2030-01-01")
    with pytest.raises(ValueError, match="a result is an object"):
        adapt([], "2024-11-05")
