"""The head of an HTTP request, as far as this package has a use for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final, TypeAlias

Text = str | bytes
Headers = tuple[tuple[bytes, bytes], ...]
"""What goes out: names in lower case."""
GivenHeaders: TypeAlias = Mapping[str, Text] | Mapping[bytes, Text] | Iterable[tuple[Text, Text]]
"""Fields as a caller gives them: a mapping, or pairs of a name and a value."""

MAX_FIELDS: Final = 200
"""Fields of one request; nobody needs more."""
PARAM_PREFIX: Final = b"mcp-param-"
_LISTS: Final = (b"accept", b"access-control-request-headers", b"content-encoding")
"""Fields of which several lines mean one list; of the others that matter here a second line is a
fault."""
_NONE: Final[frozenset[bytes]] = frozenset()


def text_of(value: Text) -> str:
    """The text of a field: HTTP's own bytes are Latin-1 where they are not ASCII."""
    return value if isinstance(value, str) else str(value, "latin-1")


def pairs_of(headers: Any) -> Any:
    """The fields as pairs, if they are given as a mapping. One of several lines has all of them."""
    return headers.items() if hasattr(headers, "items") else headers


class Fields:
    """The fields of one request, by name in lower case.

    Their values are kept as they came, and read when somebody asks: most are of no use here, or
    the same from request to request, and what they mean is known then.

    Attributes:
        raw: Values as they came.
        repeated: Names that came on several lines although they have one value.
        too_many: There are more than anybody needs; the rest was not read.
    """

    __slots__ = ("raw", "repeated", "too_many")

    def __init__(self, headers: GivenHeaders) -> None:
        lines: Any = headers if isinstance(headers, list) else tuple(pairs_of(headers))
        self.too_many: bool = len(lines) > MAX_FIELDS
        if self.too_many:
            lines = lines[:MAX_FIELDS]
        self.repeated: Set[bytes] = _NONE
        self.raw: dict[Text, Text] = dict(lines)
        # Nearly always that is all: servers give names as bytes in lower case, each once.
        names: Any = self.raw
        try:
            if len(names) == len(lines) and b"".join(names).islower():
                return
        except TypeError:
            pass  # names that are text
        self._read(lines)

    def _read(self, lines: Iterable[tuple[Text, Text]]) -> None:
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
        """The value of a field, without the white space around it.

        Keeps HDR-037.
        """
        value = self.raw.get(name)
        if value is None:
            return None
        return (value if isinstance(value, str) else str(value, "latin-1")).strip(" \t")


NO_FIELDS: Final = Fields(())
