"""Builders make blocks that the official schema of each revision accepts."""

import base64
from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import ALL_REVISIONS, content
from tests.support.judges.schema import schema_of

PNG: Final = b"\x89PNG\r\n\x1a\n"
NOTES: Final = content.annotate(audience=["user"], priority=0.5, last_modified=0)
META: Final = {"example.com/key": 1}
ICON: Final = {"src": "https://example.com/icon.png"}

# The block, its definition, the first revision that has it.
MADE: Final[list[tuple[object, str, str]]] = [
    (content.text("hi"), "TextContent", "2024-11-05"),
    (content.text("", annotations=NOTES, meta=META), "TextContent", "2024-11-05"),
    (content.image(PNG, "image/png"), "ImageContent", "2024-11-05"),
    (content.image(PNG, "image/png", annotations=NOTES, meta=META), "ImageContent", "2024-11-05"),
    (content.audio(b"", 'audio/ogg; codecs="opus"'), "AudioContent", "2025-03-26"),
    (content.resource_link("memo:1", "one"), "ResourceLink", "2025-06-18"),
    (
        content.resource_link(
            "https://example.com/a%20b?c=[1]#d",
            "one",
            title="One",
            description="The first",
            mime_type="text/plain",
            size=0,
            icons=[ICON],
            annotations=NOTES,
            meta=META,
        ),
        "ResourceLink",
        "2025-06-18",
    ),
    (content.embedded_resource("memo:1", "text"), "EmbeddedResource", "2024-11-05"),
    (
        content.embedded_resource(
            "memo:1", PNG, "image/png", annotations=NOTES, meta=META, contents_meta=META
        ),
        "EmbeddedResource",
        "2024-11-05",
    ),
    (content.resource_contents("memo:1", "text"), "TextResourceContents", "2024-11-05"),
    (content.resource_contents("memo:1", PNG, "a/b"), "BlobResourceContents", "2024-11-05"),
    (content.tool_use("1", "add", {"a": 1}, meta=META), "ToolUseContent", "2025-11-25"),
    (content.tool_use("1", "now"), "ToolUseContent", "2025-11-25"),
    (content.tool_result("1", [content.text("3")]), "ToolResultContent", "2025-11-25"),
    (
        content.tool_result("1", [], structured={"sum": None}, is_error=True, meta=META),
        "ToolResultContent",
        "2025-11-25",
    ),
    (NOTES, "Annotations", "2025-06-18"),
]


@pytest.mark.parametrize(
    ("block", "definition", "revision"),
    [
        pytest.param(block, name, revision, id=f"{number}-{name}-{revision}")
        for number, (block, name, first) in enumerate(MADE)
        for revision in ALL_REVISIONS
        if revision >= first
    ],
)
def test_what_is_built_fits_the_schema(block: object, definition: str, revision: str) -> None:
    """A peer of an SDK refuses the whole result for one wrong block."""
    assert schema_of(revision).violations(block, definition) == []


def test_members_have_the_names_of_the_protocol() -> None:
    """The schema allows further members, so a misspelt one would pass it."""
    block: Any = MADE[6][0]

    assert block == {
        "type": "resource_link",
        "uri": "https://example.com/a%20b?c=[1]#d",
        "name": "one",
        "title": "One",
        "description": "The first",
        "mimeType": "text/plain",
        "size": 0,
        "icons": [ICON],
        "annotations": {
            "audience": ["user"],
            "priority": 0.5,
            "lastModified": "1970-01-01T00:00:00.000Z",
        },
        "_meta": META,
    }
    assert content.tool_result("1", [], structured=None) == {
        "type": "tool_result",
        "toolUseId": "1",
        "content": [],
        "structuredContent": None,
    }


@given(st.binary())
def test_bytes_come_back(data: bytes) -> None:
    """PROMPT-008, PROMPT-009, PROMPT-010, RES-018, RES-019: other alphabets are no Base64."""
    image = content.image(data, "image/png")
    audio = content.audio(bytearray(data), "audio/wav")
    embedded: Any = content.embedded_resource("memo:1", data)["resource"]

    for text in (image["data"], audio["data"], embedded["blob"]):
        assert base64.b64decode(text, validate=True) == data
    assert "text" not in embedded


def test_objects_are_taken_where_dicts_are() -> None:
    """Programs that keep annotations and arguments in classes need not convert them."""

    @attrs.frozen
    class Notes:
        priority: float
        audience: list[str] | None = None

    block: Any = content.text("hi", annotations=Notes(1), meta=Notes(0))
    used: Any = content.tool_use("1", "add", Notes(1))
    result: Any = content.tool_result("1", [Notes(1)])

    assert (block["annotations"], block["_meta"]) == ({"priority": 1}, {"priority": 0})
    assert used["input"] == {"priority": 1, "audience": None}
    assert result["content"] == [{"priority": 1}]


@pytest.mark.parametrize("value", ["yesterday", "2026-01-31", "2026-01-31T12:00:00Z"])
def test_times_may_be_given_as_texts(value: str) -> None:
    """A time from a file system or a database often is a text already."""
    assert content.annotate(last_modified=value) == {"lastModified": value}


def test_annotations_may_be_empty() -> None:
    """Each of them is optional."""
    assert content.annotate() == {}


Arguments = tuple[object, ...]
LINKED: Final = ("memo:1", "one")
REFUSED: Final[list[tuple[Callable[..., object], Arguments, str]]] = [
    (content.text, (b"hi",), "text must be a string"),
    (content.image, ("aGk=", "image/png"), "data must be bytes, not 'aGk='"),
    (content.image, (PNG, "png"), "mime_type must be a type such as image/png"),
    (content.image, (PNG, "image/png\n"), "mime_type must be a type such as image/png"),
    (content.image, (PNG, "image/png; a=\x07"), "mime_type must be a type"),
    (content.audio, (PNG, None), "mime_type must be a string"),
    (content.resource_link, ("notes", "one"), "uri must be a URI with a scheme"),
    (content.resource_link, ("file:///my notes", "one"), "uri must be a URI with a scheme"),
    (content.resource_link, ("file:///ä", "one"), "uri must be a URI with a scheme"),
    (content.resource_link, ("file:///%zz", "one"), "uri must be a URI with a scheme"),
    (content.resource_link, ("memo:1\n", "one"), "uri must be a URI with a scheme"),
    (content.resource_link, (None, "one"), "uri must be a string"),
    (content.resource_link, ("memo:1", None), "name must be a string"),
    (content.embedded_resource, ("memo:1", None), "blob must be bytes"),
    (content.tool_use, (1, "add"), "id must be a string"),
    (content.tool_use, ("1", "add", [1]), "input must be an object"),
    (content.tool_result, (1, []), "tool_use_id must be a string"),
]
OPTIONS: Final[list[tuple[Callable[..., object], Arguments, str, object]]] = [
    (content.resource_link, LINKED, "size", -1),
    (content.resource_link, LINKED, "size", True),
    (content.resource_link, LINKED, "title", 1),
    (content.resource_link, LINKED, "description", 1),
    (content.tool_result, ("1", []), "is_error", 1),
    (content.annotate, (), "audience", "user"),
    (content.annotate, (), "audience", ["model"]),
    (content.annotate, (), "priority", 1.5),
    (content.annotate, (), "priority", True),
    (content.annotate, (), "priority", float("nan")),
    (content.annotate, (), "last_modified", float("nan")),
]


@pytest.mark.parametrize(("builder", "arguments", "text"), REFUSED)
def test_wrong_arguments_are_refused(
    builder: Callable[..., object], arguments: Arguments, text: str
) -> None:
    """A peer would refuse the whole result, and its log would not name the line of the program."""
    with pytest.raises(ValueError, match=text):
        builder(*arguments)


@pytest.mark.parametrize(("builder", "arguments", "name", "value"), OPTIONS)
def test_wrong_options_are_refused(
    builder: Callable[..., object], arguments: Arguments, name: str, value: object
) -> None:
    """RES-026: the range of a priority and the names of an audience are those of the schema."""
    with pytest.raises(ValueError, match=name):
        builder(*arguments, **{name: value})
