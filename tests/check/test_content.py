"""The rules on content, resources, icons, prompts, completion, logs and roots."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.parts import V2, V3, V4, V5, of_params, of_part, of_result
from tests.support.judges.schema import REVISIONS

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {**IMAGE, "type": "audio", "mimeType": "audio/wav"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_contents_of_a_resource_have_a_uri_and_text_or_a_blob(revision: str) -> None:
    """RES-018, PROMPT-010: readers look for one of both."""
    for contents in ({"uri": "file:///a"}, {"text": "hi"}, {"blob": "aGk="}):
        problems = of_result("resources/read", {"contents": [contents]}, revision)
        assert problems == [("RES-018", "$.contents[0]")]
    both = {"uri": "file:///a", "text": "hi", "blob": "aGk="}
    assert of_result("resources/read", {"contents": [both]}, revision) == [
        ("RES-018", "$.contents[0]")
    ]
    for member in ({"text": "hi"}, {"blob": "aGk="}):
        contents = {"uri": "file:///a", **member}
        assert of_part("EmbeddedResource", {"type": "resource", "resource": contents}) == []


@pytest.mark.parametrize("data", ["a", "aGk", "aGk=\n", "a-_=", "=", "aGk=aGk=", "äGk="])
def test_binary_data_is_base64(data: str) -> None:
    """RES-019, PROMPT-008, PROMPT-009: other text cannot be decoded."""
    contents = {"uri": "file:///a", "blob": data}

    assert of_result("resources/read", {"contents": [contents]}) == [
        ("RES-019", "$.contents[0].blob")
    ]
    assert of_part("ImageContent", {**IMAGE, "data": data}) == [("PROMPT-008", "$.data")]
    assert of_part("AudioContent", {**AUDIO, "data": data}) == [("PROMPT-009", "$.data")]
    assert of_part("AudioContent", {**AUDIO, "data": 7}) == [("PROMPT-009", "$.data")]
    assert of_part("ImageContent", {**IMAGE, "data": ""}) == []


@pytest.mark.parametrize("kind", ["png", "image/", "image/png; a", "a b/c", "", 'a/b;c="'])
def test_mime_types_have_their_grammar(kind: str) -> None:
    """PROMPT-008, PROMPT-009: programs choose by them how to show the data."""
    resource = {"uri": "file:///a", "name": "a", "mimeType": kind}

    assert of_part("ImageContent", {**IMAGE, "mimeType": kind}) == [("PROMPT-008", "$.mimeType")]
    assert of_part("AudioContent", {**AUDIO, "mimeType": kind}) == [("PROMPT-009", "$.mimeType")]
    assert of_part("Resource", resource) == [("OWN-076", "$.mimeType")]
    for good in ("text/plain; charset=utf-8", 'a/b;c="d \\" e"', "application/vnd.x+json"):
        assert of_part("Resource", {**resource, "mimeType": good}) == []


@pytest.mark.parametrize("uri", ["", "a", "/a", "1a:b", "http://a b", "file:///ä", "a:%7", "a:<"])
def test_uris_have_a_scheme_and_no_other_characters(uri: str) -> None:
    """OWN-076: a peer could not tell which resource is meant."""
    assert of_part("Resource", {"uri": uri, "name": "a"}) == [("OWN-076", "$.uri")]
    for good in ("file:///%C3%A4", "a:", "custom+1://x?y#z", "http://[::1]/"):
        assert of_part("Resource", {"uri": good, "name": "a"}) == []


@pytest.mark.parametrize("template", ["{", "}", "{}", "a b", "{a", "{{a}}", "a%7"])
def test_uri_templates_have_pairs_of_braces(template: str) -> None:
    """OWN-076: a client could not fill it in."""
    member = "uriTemplate"
    assert of_part("ResourceTemplate", {member: template, "name": "a"}) == [
        ("OWN-076", f"$.{member}")
    ]
    assert of_part("ResourceTemplate", {member: "file:///{+path}{?q*}", "name": "a"}) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_annotations_have_an_audience_and_a_priority(revision: str) -> None:
    """RES-026: a priority is between 0 and 1, and the audience is a user or an assistant."""
    block = {"type": "text", "text": "hi"}
    for wrong, path in (
        ({"priority": 1.5}, "priority"),
        ({"priority": -1}, "priority"),
        ({"priority": "1"}, "priority"),
        ({"priority": True}, "priority"),
        ({"audience": ["robot"]}, "audience[0]"),
        ({"audience": "user"}, "audience"),
    ):
        problems = of_part("TextContent", {**block, "annotations": wrong}, revision)
        assert problems == [("RES-026", f"$.annotations.{path}")]
    good = {"priority": 0.5, "audience": ["user", "assistant"]}
    assert of_part("TextContent", {**block, "annotations": good}, revision) == []


@pytest.mark.parametrize("time", ["yesterday", "12.1.2025", "2025-01-12T15:00Zulu", ""])
def test_the_time_of_the_last_change_is_a_date_of_iso_8601(time: str) -> None:
    """RES-026: a reader sorts by it. 2025-03-26 does not have the member."""
    assert of_part("Annotations", {"lastModified": time}, V3) == [("RES-026", "$.lastModified")]
    assert of_part("Annotations", {"lastModified": time}, V2) == []
    assert of_part("Annotations", {"lastModified": "2025-01-12T15:00:58Z"}, V5) == []
    assert of_part("Annotations", {"lastModified": "2025-01-12"}, V5) == []


@pytest.mark.parametrize("src", ["javascript:x", "file:///a.png", "http://a/b.png", "ws://a"])
def test_icons_are_loaded_by_https_or_are_data(src: str) -> None:
    """ICON-003: a client must not open other URIs."""
    for revision in (V4, V5):
        assert of_part("Icon", {"src": src}, revision) == [("ICON-003", "$.src")]
    for good in ("https://a/b.png", "DATA:image/png;base64,aGk="):
        assert of_part("Icon", {"src": good}) == []


def test_sizes_of_icons_are_width_and_height() -> None:
    """OWN-077: a client chooses an icon by its size."""
    sizes = ["48x48", "any", "48", "0x1", "48X48"]

    assert of_part("Icon", {"src": "https://a/b", "sizes": sizes}) == [
        ("OWN-077", f"$.sizes[{index}]") for index in (2, 3, 4)
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_arguments_of_prompts_are_strings(revision: str) -> None:
    """PROMPT-007: numbers have no form that all peers share."""
    params: dict[str, Any] = {"name": "p", "arguments": {"a": "1", "b": 2}}

    assert of_params("prompts/get", params, revision) == [("PROMPT-007", "$.arguments.b")]
    del params["arguments"]["b"]
    assert of_params("prompts/get", params, revision) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_completion_has_at_most_100_values(revision: str) -> None:
    """COMP-002: the rest is announced by `total` and `hasMore`."""
    values = ["a"] * 101
    long, short = ({"completion": {"values": some}} for some in (values, values[1:]))

    assert of_result("completion/complete", long, revision) == [("COMP-002", "$.completion.values")]
    assert of_result("completion/complete", short, revision) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_log_levels_are_known(revision: str) -> None:
    """LOG-002: a receiver compares levels by their severity."""
    params = {"level": "loud", "data": None}

    assert of_params("notifications/message", params, revision) == [("LOG-002", "$.level")]
    assert of_params("notifications/message", {**params, "level": "info"}, revision) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_roots_are_file_uris(revision: str) -> None:
    """ROOT-004: a server opens them as folders."""
    for uri in ("https://a/b", "file:/a", "/a"):
        assert of_result("roots/list", {"roots": [{"uri": uri}]}, revision) == [
            ("ROOT-004", "$.roots[0].uri")
        ]
    assert of_result("roots/list", {"roots": [{"uri": "file:///a"}]}, revision) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_progress_token_is_a_string_or_an_integer(revision: str) -> None:
    """PROG-001: a float or a boolean could match another token."""
    params: Any = {"progressToken": 1.5, "progress": 1}

    assert of_params("notifications/progress", params, revision) == [
        ("PROG-001", "$.progressToken")
    ]
    for token in (1, 1.0, "a"):
        params = {"progressToken": token, "progress": 0.5}
        assert of_params("notifications/progress", params, revision) == []
