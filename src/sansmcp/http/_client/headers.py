"""The headers of requests: those of the caller, and those of every exchange.

Source: MCP 2026-07-28, basic/transports/streamable-http, Request Metadata; RFC 9110, section 5.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..._spec.modern_methods import MODERN_REVISION
from ..._wire.framing import EXCERPT_BYTES, excerpt_of
from .._headers import Headers, pairs_of

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
"""Text that a header holds unchanged."""
_ID: Final = re.compile(r"(?! )[\x20-\x7e\x80-\U0010ffff]{1,8192}(?<! )")
_NO_HEADERS: Final = "headers are a mapping of strings, or pairs of a name and a value"
_RESERVED: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length"),
        *("content-type", "expect", "host", "keep-alive", "last-event-id", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_SECRET_NAMES: Final = frozenset(
    {b"authorization", b"cookie", b"proxy-authorization", b"x-api-key"}
)
"""Headers whose values are credentials."""
_SHOWN_OF_SECRETS: Final = 3
"""The most characters of a secret that an excerpt may show where its end cuts the secret."""
_IDENTITY: Final = (b"accept-encoding", b"identity")
_MODERN_VERSION: Final = (b"mcp-protocol-version", MODERN_REVISION.encode())
_VERSION_SINCE: Final = "2025-06-18"
"""The first revision whose requests name their revision in a header."""


def read_headers(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> Headers:
    """Check the caller's headers and return them as they are sent.

    Raises:
        ValueError: The argument holds no pairs of strings; or a header has no form in HTTP, or is
            one that the library writes. The text never contains its value, which may be a secret.
    """
    headers: list[tuple[bytes, bytes]] = []
    try:
        pairs: list[Any] = list(pairs_of(given))
    except TypeError:
        raise ValueError(_NO_HEADERS) from None
    for pair in pairs:
        name, value = _read_pair(pair)
        lower, value = name.lower(), value.strip(" \t")  # which is no part of it
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"the header {name[:40]!r} has no form in HTTP")
        if lower in _RESERVED or lower.startswith("mcp-"):
            raise ValueError(f"the header {name} is written by the library")
        headers.append((lower.encode(), value.encode("latin-1")))
    return tuple(headers)


def digest_of(headers: Headers) -> bytes:
    """Return a digest of the caller's headers, in any order: the credentials are not in it."""
    from hashlib import sha256  # only a cache needs it

    parts = sorted(b"%d:%b%b" % (len(name), name, value) for name, value in headers)
    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()


def _read_pair(pair: Any) -> tuple[str, str]:
    """Check that an object that no type checker has seen is a pair of strings."""
    try:
        name, value = pair
    except (TypeError, ValueError):
        name = value = None
    if isinstance(pair, str) or not isinstance(name, str) or not isinstance(value, str):
        raise ValueError(_NO_HEADERS)
    return name, value


def field_value(text: str) -> bytes:
    """Return a text as the value of a header, encoded where it would not arrive unchanged.

    Keeps HDR-010, HDR-026, HDR-027.
    """
    if PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text.encode("ascii")
    encoded = b2a_base64(text.encode("utf-8", "surrogatepass"), newline=False)
    return b"=?base64?%b?=" % encoded


def event_id_value(id: str) -> bytes | None:
    """Return the value of Last-Event-ID; None for an id that is too long or has no such form."""
    return id.encode("utf-8", "surrogatepass") if _ID.fullmatch(id) else None


class RequestHeaders:
    """The headers that every request of an endpoint carries, and the secrets among them.

    Attributes:
        version: How often the caller has replaced its headers. Each exchange notes it, so that the
            refusal of former credentials differs from a refusal of the current ones.
    """

    __slots__ = ("_common", "_secrets", "version")

    def __init__(self, given: Headers) -> None:
        self.version: int = -1
        self.replace(given)

    def replace(self, given: Headers) -> None:
        """Send these headers of the caller from now on, instead of those before.

        Keeps OWN-042: every exchange asks for a body without a content coding.
        """
        self._common: Headers = (*given, _IDENTITY)
        secrets = [value for name, value in given if name in _SECRET_NAMES]
        secrets += [value.rpartition(b" ")[2] for value in secrets]
        self._secrets = tuple(secret for secret in secrets if secret)
        self.version += 1

    @property
    def has_any(self) -> bool:
        """Whether the caller has given any header."""
        return len(self._common) > 1

    def modern(self, fields: Headers) -> Headers:
        """Return all headers of an exchange in the modern revision, its own `fields` first.

        Keeps HTTP-026, HDR-005, HDR-006.
        """
        return (*fields, _MODERN_VERSION, *self._common)

    def legacy(self, fields: Headers, revision: str | None, session_id: bytes | None) -> Headers:
        """Return all headers of an exchange in a legacy revision, its own `fields` first.

        Keeps SESS-005, HDR-001, HDR-002.
        """
        if revision is not None and revision >= _VERSION_SINCE:
            fields += ((b"mcp-protocol-version", revision.encode()),)
        if session_id is not None:
            fields += ((b"mcp-session-id", session_id),)
        return (*fields, *self._common)

    def excerpt(
        self, data: bytes | bytearray, session_id: bytes | None, *, over: int | None = None
    ) -> bytes:
        """Return the start of data from the server, as events show it, without secrets.

        Args:
            data: What the server has sent. It may repeat credentials of the caller.
            session_id: Another secret.
            over: The limit that the data exceeds, if that is why it is shown.
        """
        return excerpt_of(data, over=over, start=self._without_secrets(data, session_id))

    def _without_secrets(self, data: bytes | bytearray, session_id: bytes | None) -> bytes:
        secrets = self._secrets if session_id is None else (*self._secrets, session_id)
        start = bytes(data[: EXCERPT_BYTES + max(map(len, secrets), default=0)])
        for secret in secrets:
            start = start.replace(secret, b"***")
        start = start[:EXCERPT_BYTES]
        for secret in secrets:
            # A secret that the end of the excerpt cuts still shows its own start.
            for size in range(min(len(secret) - 1, len(start)), _SHOWN_OF_SECRETS, -1):
                if start.endswith(secret[:size]):
                    return start[:-size]
        return start
