"""Pagination for servers: cursors that stay right while the list changes under them.

A cursor holds the key of the last item that was handed out, so that a page begins behind it
whatever was added or removed before. The client sees an opaque string.
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
    """The cursor that stands behind the item with this key."""
    text = json.dumps([_MARK, key], separators=(",", ":"))
    return binascii.b2a_base64(text.encode(), newline=False).decode()


def decode_cursor(cursor: object) -> str | int:
    """The key in a cursor made by `encode_cursor`.

    Raises:
        InvalidCursor: It was not made there. Answer the request with -32602.

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
        items: All items in rising order of `key`, which no two share.
        cursor: The request's `params.get("cursor")`; None for the first page.
        key: What an item is ordered by: a string or an integer, the same kind for all.
        size: Items on a page, at least 1.

    Raises:
        InvalidCursor: The cursor is none of ours, or of another kind of key. Answer with -32602.
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
