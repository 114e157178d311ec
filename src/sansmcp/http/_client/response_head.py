"""The head of a response: its status, and the headers that a client reads.

Source: RFC 9110, sections 10.2.3 and 5.6.7, for Retry-After.
"""

from __future__ import annotations

import re
from typing import Final

from .._headers import GivenHeaders, Text, pairs_of, text_of

_WANTED: Final = frozenset(
    {
        *("content-encoding", "content-length", "content-type", "date", "dpop-nonce"),
        *("location", "mcp-session-id", "retry-after", "www-authenticate"),
    }
)
_UNWANTED: Final = (
    *("access-control-allow-origin", "access-control-expose-headers", "allow", "cache-control"),
    *("connection", "keep-alive", "server", "transfer-encoding", "vary"),
    *("x-accel-buffering", "x-powered-by"),
)

_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_DATE: Final = re.compile(
    rf"[A-Z][a-z]{{2}}, (\d\d) ({'|'.join(re.findall('...', _MONTHS))}) (\d{{4}})"
    r" (\d\d):(\d\d):(\d\d) GMT",
    re.ASCII,
)
_SECONDS: Final = re.compile(r"[0-9]{1,10}", re.ASCII)


def _spellings() -> dict[Text, str]:
    """Return the usual spellings of names, so that most names need no decoding."""
    names: dict[Text, str] = {}
    for name in (*_WANTED, *_UNWANTED):
        kept = name if name in _WANTED else ""
        for spelling in (name, name.title()):
            names[spelling] = names[spelling.encode()] = kept
    return names


_NAMES: Final = _spellings()


class Head:
    """The status and the headers of one response.

    Attributes:
        status: The status.
        challenges: Each line of WWW-Authenticate.
        fields: The first line of each other header, by its name.
        at: The time of this side when the head came, in Unix seconds; None where it is not known.
    """

    __slots__ = ("at", "challenges", "fields", "status")

    def __init__(self, status: int, headers: GivenHeaders, at: float | None = None) -> None:
        self.status: int = status
        self.at: float | None = at
        self.challenges: list[str] = []
        self.fields: dict[str, str] = {}
        for given, value in pairs_of(headers):
            name = _NAMES.get(given)
            if name is None:
                name = text_of(given).lower()
                if name not in _WANTED:
                    continue
            elif not name:
                continue
            text = text_of(value).strip(" \t")
            if name == "www-authenticate":
                self.challenges.append(text)
            else:
                self.fields.setdefault(name, text)

    @property
    def media_type(self) -> str:
        """The media type of the body without its parameters; `""` without Content-Type."""
        return self.fields.get("content-type", "").partition(";")[0].strip(" \t").lower()

    @property
    def length(self) -> int | None:
        """The size of the body in bytes; None without Content-Length."""
        text = self.fields.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None

    @property
    def is_good(self) -> bool:
        """Whether the server has accepted the request."""
        return 200 <= self.status < 300

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants the retry; None without a readable Retry-After.

        A date is compared with `at`, or without it with the header Date, the server's own clock.
        """
        field = self.fields.get("retry-after")
        if field is None:
            return None
        if _SECONDS.fullmatch(field):
            return float(field)
        until = unix_seconds(field)
        now = self.at if self.at is not None else unix_seconds(self.fields.get("date", ""))
        return None if until is None or now is None else max(0.0, until - now)


def unix_seconds(text: str) -> int | None:
    """Read a date in the preferred form of HTTP; None for any other text."""
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
