"""The headers of an HTTP request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final, TypeAlias

Text = str | bytes
Headers = tuple[tuple[bytes, bytes], ...]
"""Headers to send, with names in lower case."""
GivenHeaders: TypeAlias = Mapping[str, Text] | Mapping[bytes, Text] | Iterable[tuple[Text, Text]]
"""Headers as a caller gives them: a mapping, or pairs of name and value."""

MAX_FIELDS: Final = 200
"""The most headers of one request that are read."""
PARAM_PREFIX: Final = b"mcp-param-"
_LISTS: Final = (b"accept", b"access-control-request-headers", b"content-encoding")
"""Headers whose lines form one list. A second line of another header is a breach if the library
uses the header."""
_NONE: Final[frozenset[bytes]] = frozenset()


def text_of(value: Text) -> str:
    """The value of a header as text; bytes are decoded as Latin-1."""
    return value if isinstance(value, str) else str(value, "latin-1")


def pairs_of(headers: Any) -> Any:
    """Headers as pairs of name and value, whether they are a mapping or pairs."""
    return headers.items() if hasattr(headers, "items") else headers


class Fields:
    """The headers of one request, by name in lower case.

    Values are decoded only on request: the library does not use most headers, and it knows the
    meaning of values that are equal in each request.

    Attributes:
        raw: The values as received, by name.
        repeated: The names of headers with several lines that must have one.
        too_many: Whether there were more than `MAX_FIELDS`; the others were not read.
    """

    __slots__ = ("raw", "repeated", "too_many")

    def __init__(self, headers: GivenHeaders) -> None:
        lines: Any = headers if isinstance(headers, list) else tuple(pairs_of(headers))
        self.too_many: bool = len(lines) > MAX_FIELDS
        if self.too_many:
            lines = lines[:MAX_FIELDS]
        self.repeated: Set[bytes] = _NONE
        self.raw: dict[Text, Text] = dict(lines)
        # In most requests this is enough: each name occurs once, as bytes in lower case.
        names: Any = self.raw
        try:
            if len(names) == len(lines) and b"".join(names).islower():
                return
        except TypeError:
            pass  # names that are text
        self._read(lines)

    def _read(self, lines: Iterable[tuple[Text, Text]]) -> None:
        """Read headers with names of any case and with repeated lines."""
        raw: dict[Text, Text] = {}
        repeated: set[bytes] = set()
        for given, value in lines:
            name = given.encode("latin-1", "replace") if isinstance(given, str) else given
            name = name.lower()
            if name not in raw:
                raw[name] = value
            elif name in _LISTS:
                raw[name] = f"{text_of(raw[name])}, {text_of(value)}"
            else:
                repeated.add(name)
        self.raw, self.repeated = raw, repeated

    def get(self, name: bytes) -> str | None:
        """The value of a header without the white space around it; None if it is absent.

        Keeps HDR-037.
        """
        value = self.raw.get(name)
        if value is None:
            return None
        return (value if isinstance(value, str) else str(value, "latin-1")).strip(" \t")


NO_FIELDS: Final = Fields(())
