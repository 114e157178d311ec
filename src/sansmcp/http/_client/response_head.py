"""The head of a response, as far as this package has a use for it."""

from __future__ import annotations

from typing import Final

from .._headers import GivenHeaders, Text, pairs_of, text_of

_WANTED: Final = frozenset(
    {
        *("content-encoding", "content-length", "content-type", "date", "location"),
        *("mcp-session-id", "retry-after", "www-authenticate"),
    }
)
_UNWANTED: Final = (
    *("access-control-allow-origin", "access-control-expose-headers", "allow", "cache-control"),
    *("connection", "keep-alive", "server", "transfer-encoding", "vary"),
    *("x-accel-buffering", "x-powered-by"),
)


def _spellings() -> dict[Text, str]:
    """How the names come nearly always, so that most of them need no decoding."""
    names: dict[Text, str] = {}
    for name in (*_WANTED, *_UNWANTED):
        kept = name if name in _WANTED else ""
        for spelling in (name, name.title()):
            names[spelling] = names[spelling.encode()] = kept
    return names


_NAMES: Final = _spellings()


class Head:
    """Status and fields of one response.

    Attributes:
        status: The status.
        challenges: Each line of WWW-Authenticate.
        fields: The others by name, the first line of each.
        at: Our own clock when it came, in Unix seconds; None where it is not known.
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
        """The form of the body, without parameters; `""` where it is not said."""
        return self.fields.get("content-type", "").partition(";")[0].strip(" \t").lower()

    @property
    def length(self) -> int | None:
        """How many bytes the body has; None where it is not said."""
        text = self.fields.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None

    @property
    def is_good(self) -> bool:
        """Whether the request was served."""
        return 200 <= self.status < 300
