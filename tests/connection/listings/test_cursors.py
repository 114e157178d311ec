"""Keyset cursors for servers: pages stay right while the list changes."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import InvalidCursor, decode_cursor, encode_cursor, paginate


def pages(items: list[Any], size: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    cursor: str | None = None
    while True:
        page, cursor = paginate(items, cursor, key=lambda item: item, size=size)
        found.append(page)
        if cursor is None:
            return found


@given(
    items=st.lists(st.integers(), unique=True) | st.lists(st.text(), unique=True),
    size=st.integers(1, 5),
)
def test_pages_are_the_list(items: list[Any], size: int) -> None:
    """Each item must come once, in order, on pages of at most `size`, without an empty last
    page."""
    items.sort()
    found = pages(items, size)

    assert [item for page in found for item in page] == items
    assert all(len(page) == size for page in found[:-1])
    assert len(found) == max(1, -(-len(items) // size))


@given(key=st.text() | st.integers())
def test_a_cursor_holds_its_key(key: str | int) -> None:
    """A key must come back with its value and type."""
    back = decode_cursor(encode_cursor(key))

    assert back == key
    assert type(back) is type(key)


def test_what_changes_before_the_cursor_moves_nothing() -> None:
    """An offset would skip an item here, or return one twice."""
    _, cursor = paginate(["b", "d", "f", "h"], key=str, size=2)

    assert paginate(["a", "b", "c", "f", "h"], cursor, key=str, size=2) == (["f", "h"], None)
    assert paginate(["f", "h"], cursor, key=str, size=2) == (["f", "h"], None)


def test_a_list_that_shrank_below_the_cursor_ends() -> None:
    """The client must get an empty last page, and not an error."""
    _, cursor = paginate([1, 2, 3], key=int, size=2)

    assert paginate([1], cursor, key=int, size=2) == ([], None)


def packed(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "nonsense",
        "ümläut",
        5,
        ["k1", "a"],
        encode_cursor("a")[:-1],
        encode_cursor("a") + "\n",
        packed("k1"),
        packed(None),
        packed(7),
        packed(["k1"]),
        packed(["k1", "a", "b"]),
        packed(["k0", "a"]),
        packed(["k1", True]),
        packed(["k1", 1.5]),
        packed(["k1", None]),
        packed({"k1": 1, "a": 2}),
        base64.b64encode(b"[" * 100_000).decode(),
        base64.b64encode(b"\xff").decode(),
    ],
)
def test_a_cursor_that_was_never_made_here_is_invalid(cursor: object) -> None:
    """Clients make cursors up, or keep them over a new version of the server."""
    with pytest.raises(InvalidCursor):
        decode_cursor(cursor)
    with pytest.raises(InvalidCursor):
        paginate(["a"], cursor, key=str, size=1)


def test_a_cursor_of_a_list_with_another_kind_of_key_is_invalid() -> None:
    """A cursor of another list must not crash the server."""
    with pytest.raises(InvalidCursor, match="not a cursor of this list"):
        paginate([1, 2], encode_cursor("a"), key=int, size=1)


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_has_at_least_one_item(size: int) -> None:
    """With a size of zero the listing would never end."""
    with pytest.raises(ValueError, match="at least one item"):
        paginate([1], key=int, size=size)
