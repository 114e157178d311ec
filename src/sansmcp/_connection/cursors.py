"""Pagination for servers, with cursors that stay valid while the list changes.

A cursor holds the key of the last item of a page. The next page begins after that key, even if
items were added or removed. The client sees an opaque string.
"""

from __future__ import annotations

import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._spec.errors import InvalidCursor

Item = TypeVar("Item")

_MARK = "k1"


def encode_cursor(key: str | int) -> str:
    """The cursor for the page that begins after the item with this key."""
    text = json.dumps([_MARK, key], separators=(",", ":"))
    return binascii.b2a_base64(text.encode(), newline=False).decode()


def decode_cursor(cursor: object) -> str | int:
    """The key in a cursor made by `encode_cursor`.

    Raises:
        InvalidCursor: `encode_cursor` has not made the cursor. Answer the request with -32602.

    Source: MCP 2025-11-25, server/utilities/pagination, Error Handling.
    """
    try:
        if not isinstance(cursor, str):
            raise InvalidCursor("a cursor is a string")
        value: Any = json.loads(binascii.a2b_base64(cursor.encode("ascii"), strict_mode=True))
        mark, key = value if value.__class__ is list else (None, None)
    except (ValueError, TypeError, RecursionError):
        raise InvalidCursor(f"not a cursor of this server: {cursor!r:.80}") from None
    if mark != _MARK or not (type(key) is str or type(key) is int):
        raise InvalidCursor(f"not a cursor of this server: {cursor!r:.80}")
    return key


def paginate(
    items: Sequence[Item],
    cursor: object = None,
    *,
    key: Callable[[Item], str | int],
    size: int,
) -> tuple[list[Item], str | None]:
    """One page of `items`, and the cursor of the next one (None on the last page).

    Args:
        items: All items, sorted by `key` in rising order. No two items have the same key.
        cursor: The request's `params.get("cursor")`; None for the first page.
        key: A function that returns the key of an item: for all items a string, or for all an
            integer.
        size: The number of items on a page, at least 1.

    Raises:
        InvalidCursor: `paginate` has not made the cursor for such keys. Answer with -32602.
        ValueError: `size` is less than 1.
    """
    if size < 1:
        raise ValueError(f"a page has at least one item, not {size}")
    start = 0
    if cursor is not None:
        last: Any = decode_cursor(cursor)
        try:
            start = bisect_right(items, last, key=key)
        except TypeError:
            raise InvalidCursor(f"not a cursor of this list: {cursor!r:.80}") from None
    page = list(items[start : start + size])
    more = start + size < len(items)
    return page, encode_cursor(key(page[-1])) if more else None
