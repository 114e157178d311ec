"""The fields of requests: those of the caller, and those that repeat what a message says.

Source: MCP 2026-07-28, basic/transports/streamable-http, Request Metadata; RFC 9110, section 5.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..._spec.errors import LocalProtocolError
from ..._spec.modern_methods import MIRRORED_NAMES
from ..._wire.values import JSONObject, is_object
from .._headers import Headers, pairs_of
from .tool_headers import Mirrored

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_ID: Final = re.compile(r"(?! )[\x20-\x7e\x80-\U0010ffff]{1,8192}(?<! )")
_NO_HEADERS: Final = "headers are a mapping of strings, or pairs of a name and a value"
_SAFE_INTEGER: Final = 2**53 - 1
_RESERVED: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length"),
        *("content-type", "expect", "host", "keep-alive", "last-event-id", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)


def read_headers(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> Headers:
    """The caller's fields, ready to be sent.

    Raises:
        ValueError: These are no pairs of strings; one has no form in HTTP, or is written by the
            library. The text does not hold its value, which may be a secret.
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
            raise ValueError(f"the field {name[:40]!r} has no form in HTTP")
        if lower in _RESERVED or lower.startswith("mcp-"):
            raise ValueError(f"the field {name} is written by the library")
        headers.append((lower.encode(), value.encode("latin-1")))
    return tuple(headers)


def _read_pair(pair: Any) -> tuple[str, str]:
    """A name and a value, which were checked by no type checker."""
    try:
        name, value = pair
    except (TypeError, ValueError):
        name = value = None
    if isinstance(pair, str) or not isinstance(name, str) or not isinstance(value, str):
        raise ValueError(_NO_HEADERS)
    return name, value


def field_value(text: str) -> bytes:
    """A value as it stands in a field: as it is, or encoded where it would not arrive as it is."""
    if _PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text.encode("ascii")
    encoded = b2a_base64(text.encode("utf-8", "surrogatepass"), newline=False)
    return b"=?base64?%b?=" % encoded


def event_id_value(id: str) -> bytes | None:
    """The value of Last-Event-ID; None where an id has no form in a field, or is endless."""
    return id.encode("utf-8", "surrogatepass") if _ID.fullmatch(id) else None


def message_fields(method: str, params: JSONObject, mirrored: Mirrored) -> Headers:
    """What the fields of a modern message repeat of it.

    Raises:
        LocalProtocolError: The method has no form in a field, or an integer is out of the range
            that fields may hold.
    """
    if not _PLAIN.fullmatch(method):
        raise LocalProtocolError("OWN-039", f"{method!r:.80} has no form in the field Mcp-Method")
    fields = [(b"mcp-method", method.encode("ascii"))]
    member = MIRRORED_NAMES.get(method)
    if member is not None:
        name: Any = params.get(member)
        if isinstance(name, str):
            fields.append((b"mcp-name", field_value(name)))
    for header, path in mirrored:
        value: Any = params.get("arguments")
        for step in path:
            value = value.get(step) if is_object(value) else None
        text = _text_of(value, header)
        if text is not None:
            fields.append((header, field_value(text)))
    return tuple(fields)


def _text_of(value: object, header: bytes) -> str | None:
    """A value in the form in which it is mirrored; None where it is not."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        return None
    if not -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
        text = f"{header.decode()} repeats an integer beyond 2**53 - 1"
        raise LocalProtocolError("HDR-018", text)
    return str(value)
