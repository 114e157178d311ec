"""When a server wants to be asked again: the field Retry-After, in either of its forms.

Source: RFC 9110, sections 10.2.3 and 5.6.7.
"""

from __future__ import annotations

import re
from typing import Final

_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_DATE: Final = re.compile(
    rf"[A-Z][a-z]{{2}}, (\d\d) ({'|'.join(re.findall('...', _MONTHS))}) (\d{{4}})"
    r" (\d\d):(\d\d):(\d\d) GMT",
    re.ASCII,
)
_SECONDS: Final = re.compile(r"[0-9]{1,10}", re.ASCII)


def retry_after(field: str | None, date: str | None, at: float | None) -> float | None:
    """How many seconds the server asks to wait; None where it does not, or not readably.

    Args:
        field: Retry-After.
        date: The field Date, which is the server's clock.
        at: Our own, in Unix seconds; it goes first.
    """
    if field is None:
        return None
    if _SECONDS.fullmatch(field):
        return float(field)
    until = unix_seconds(field)
    now = at if at is not None else unix_seconds(date or "")
    return None if until is None or now is None else max(0.0, until - now)


def unix_seconds(text: str) -> int | None:
    """The time that a date means, in the one form that may be sent."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
    month = _MONTHS.index(match[2]) // 3  # 0 is January
    # Years that begin in March have their odd day at the end.
    year -= month < 2
    day_of_year = (153 * ((month - 2) % 12) + 2) // 5 + day - 1
    days = year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719_468
    return ((days * 24 + hour) * 60 + minute) * 60 + second
