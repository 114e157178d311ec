"""The field `Date`, which a server with a clock sends (RFC 9110, 6.6.1)."""

from __future__ import annotations

import time
from email.utils import formatdate

_last: tuple[int, bytes] = (0, b"")


def http_date() -> bytes:
    """The time, put into words once a second."""
    global _last
    second, text = _last
    now = int(time.time())
    if now != second:
        text = formatdate(now, usegmt=True).encode()
        _last = now, text
    return text
