"""The rules on `_meta`: keys, reserved prefixes, trace context."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.parts import TEXT, V1, V2, V3, V4, V5, of_params, of_part
from tests.support.judges.schema import REVISIONS


def of_meta(key: str, revision: str = V5, value: Any = "x") -> list[str]:
    """The rules that a key of a text block's `_meta` breaks."""
    problems = of_part("TextContent", {**TEXT, "_meta": {key: value}}, revision)
    return [rule for rule, _ in problems]


@pytest.mark.parametrize("revision", REVISIONS)
def test_meta_is_an_object(revision: str) -> None:
    """META-018: each revision has it in params, and keeps unknown keys."""
    assert of_params("tools/call", {"name": "t", "_meta": []}, revision) == [
        ("META-018", "$._meta")
    ]
    assert of_params("tools/call", {"name": "t", "_meta": {"a/b": 1}}, revision) == []


@pytest.mark.parametrize("key", ["a/b/c", "/a", "//"])
def test_a_prefix_ends_with_one_slash(key: str) -> None:
    """META-002: the part before the name is a series of labels."""
    assert of_meta(key) == ["META-002"]
    assert of_meta("com.example/a") == []


@pytest.mark.parametrize("key", ["1a/b", "a-/b", "a..b/c", "-a/b", "a_b/c", ".a/b"])
def test_labels_have_letters_digits_and_hyphens(key: str) -> None:
    """META-003: they are those of domain names."""
    assert of_meta(key) == ["META-003"]
    assert of_meta("c-1.e-2x/a") == []


@pytest.mark.parametrize("key", ["com.example/-a", "a-", "_a", "a b", "ä", "a."])
def test_names_begin_and_end_with_a_letter_or_a_digit(key: str) -> None:
    """META-007, META-008: hyphens, underscores and dots are allowed in between."""
    assert of_meta(key) == ["META-007"]
    for good in ("com.example/", "com.example/a_b-c.d", "a", "1"):
        assert of_meta(good) == []


def test_older_revisions_have_no_grammar_of_keys() -> None:
    """META-002, META-003, META-007: the rules came in 2025-06-18."""
    for revision in (V1, V2):
        for key in ("1a/b", "a-", "mcp.dev/a"):
            assert of_meta(key, revision) == []


@pytest.mark.parametrize("key", ["modelcontextprotocol.io/a", "mcp.dev/a", "tools.MCP.com/a"])
def test_2025_06_18_reserves_labels_with_another_behind_them(key: str) -> None:
    """META-005: third parties do not use the prefix."""
    assert of_meta(key, V3) == ["META-005"]
    assert of_meta("com.example.mcp/a", V3) == []


@pytest.mark.parametrize("key", ["dev.mcp/a", "com.mcp.tools/a", "com.ModelContextProtocol/a"])
def test_later_revisions_reserve_the_second_label(key: str) -> None:
    """META-006: third parties do not use the prefix."""
    for revision in (V4, V5):
        assert of_meta(key, revision) == ["META-006"]
        assert of_meta("com.example.mcp/a", revision) == []


def test_keys_of_the_protocol_are_no_problem() -> None:
    """META-001, META-006: nothing is assumed about a key that a later extension defines."""
    for key in ("io.modelcontextprotocol/related-task", "io.modelcontextprotocol/new"):
        assert of_meta(key) == []


GOOD_TRACES = {
    "traceparent": (
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    ),
    "tracestate": ("vendor=a", "a@b=c , d=e", "", f"{','.join(f'k{i}=v' for i in range(32))}"),
    "baggage": ("a=b", "a=b;c=d;e , f = g%20h", "a="),
}
BAD_TRACES = {
    "traceparent": (
        7,
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
    ),
    "tracestate": ("a", "A=b", "a=b=c", f"{','.join(f'k{i}=v' for i in range(33))}"),
    "baggage": ("", "a", "a=b c", "a b=c"),
}


def test_trace_context_has_the_formats_of_the_w3c() -> None:
    """META-017: the next program could not go on with the trace."""
    for key, values in GOOD_TRACES.items():
        assert [of_meta(key, value=value) for value in values] == [[]] * len(values)
    for key, bad_values in BAD_TRACES.items():
        for value in bad_values:
            assert of_meta(key, value=value) == ["META-017"], (key, value)
            assert of_meta(key, V4, value) == []


@pytest.mark.parametrize(
    ("key", "text"),
    [("tracestate", " " * 50_000 + "\x01"), ("baggage", "a=" + " " * 50_000 + "\x00")],
)
def test_a_long_text_is_refused_in_linear_time(key: str, text: str) -> None:
    """META-017: with a quadratic search this takes longer than a test may."""
    assert of_meta(key, value=text) == ["META-017"]
    assert of_meta(key, value=text * 20) == ["META-017"]


def test_keys_that_are_no_strings_are_left_to_the_encoder() -> None:
    """OWN-024 names them when they are encoded."""
    number: Any = 1
    assert of_meta(number) == []
