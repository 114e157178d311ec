"""Whether the headers of a modern request say the same as its body.

Source: MCP 2026-07-28, basic/transports/streamable-http, Request Metadata.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from ..._spec.modern_methods import MIRRORED_NAMES
from ..._wire.values import JSONObject, is_object
from .._headers import PARAM_PREFIX, Fields, text_of

ToolSchema: TypeAlias = Callable[[str], JSONObject | None]
"""From the name of a tool to its `inputSchema`; None where there is no such tool."""

_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII
)
_PLAIN: Final = re.compile(r"[\t\x20-\x7e]*")
_NUMBER: Final = re.compile(r"-?[0-9]{1,32}(\.[0-9]{1,32})?(?:[eE]([-+]?[0-9]{1,3}))?")
_MARK: Final = "=?base64?"
_DEPTH: Final = 32
_SHOWN: Final = 80


def header_value(text: str) -> str | None:
    """The value of a header, decoded if it is encoded; None if it has no valid form.

    Keeps HDR-028, HDR-029.
    """
    if not _PLAIN.fullmatch(text):
        return None
    encoded = _ENCODED.fullmatch(text)
    if encoded is None:
        return text
    if not _BASE64.fullmatch(encoded[1]):
        return None
    decoded = a2b_base64(encoded[1])
    if b2a_base64(decoded, newline=False) != encoded[1].encode():
        return None  # it has bits that mean nothing: two values for one name
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        return None


def judge_headers(
    fields: Fields,
    method: str,
    params: JSONObject,
    is_request: bool,
    tool_schema: ToolSchema | None,
) -> Breach | None:
    """Return the breach if a header contradicts the body or is missing; else None.

    This revision does not say which headers notifications need: those that are there must agree.
    """
    for name in fields.repeated:
        if name.startswith(b"mcp-") and name != b"mcp-session-id":
            return _mismatch("HDR-031", f"the header {text_of(name)} came more than once")
    given = fields.get(b"mcp-method")
    if given != method and (is_request or given is not None):
        return _missing("Mcp-Method") if given is None else _differs("Mcp-Method", given, method)
    member = MIRRORED_NAMES.get(method)
    if member is None or not is_request:
        return None
    value: Any = params.get(member)
    given = fields.get(b"mcp-name")
    if given is None:
        # A body without the member is refused for that, by its own rule.
        return _missing("Mcp-Name") if isinstance(value, str) else None
    if given != value or given.startswith(_MARK) or not (given.isascii() and given.isprintable()):
        said = header_value(given)
        if said != value:
            return _differs("Mcp-Name", said, value) if said is not None else _BAD_NAME
    if tool_schema is not None and method == "tools/call":
        return judge_params(fields, params.get("arguments"), tool_schema(str(value)))
    return None


def _mismatch(rule: str, text: str) -> Breach:
    return Breach(rule, text, ErrorCode.HEADER_MISMATCH)


def _missing(name: str) -> Breach:
    """Return the breach of a request without a standard header (HDR-031)."""
    return _mismatch("HDR-031", f"the header {name} is missing")


def _differs(name: str, said: str, value: object) -> Breach:
    """Return the breach of a header that says something else than the body (HDR-032)."""
    shown = str(value)[:_SHOWN]
    return _mismatch("HDR-032", f"{name} says {said[:_SHOWN]!r}, and the body {shown!r}")


_BAD_NAME: Final = _mismatch("HDR-030", "Mcp-Name has no valid value")


# -------------------------------------------------------------------------------- Mcp-Param-*


def judge_params(fields: Fields, arguments: object, schema: JSONObject | None) -> Breach | None:
    """Return the breach if a header contradicts the argument that it mirrors; else None.

    Keeps HDR-024.
    """
    if schema is None:
        return None
    for name, path in _mirrored(schema, ()):
        value: Any = arguments
        for step in path:
            value = value.get(step) if is_object(value) else None
        field, given = f"Mcp-Param-{name}", fields.get(PARAM_PREFIX + name.lower().encode())
        if given is None:
            if value is not None:
                return _mismatch("HDR-033", f"the header {field} is missing")
            continue
        said = header_value(given)
        if said is None:
            return _mismatch("HDR-034", f"{field} has no valid value")
        if not _is_same(said, value):
            return _differs(field, said, value)
    return None


def _mirrored(schema: JSONObject, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and property path of each parameter that is mirrored into a header."""
    properties: Any = schema.get("properties")
    if not is_object(properties) or len(path) >= _DEPTH:
        return
    for step, inner in properties.items():
        if is_object(inner):
            name: Any = inner.get("x-mcp-header")
            if isinstance(name, str):
                yield name, (*path, step)
            yield from _mirrored(inner, (*path, step))


def _is_same(said: str, value: object) -> bool:
    if isinstance(value, str):
        return said == value
    if isinstance(value, bool):
        return said == ("true" if value else "false")
    if isinstance(value, int | float):
        return _is_same_number(said, value)
    return False


def _is_same_number(said: str, value: float) -> bool:
    """Whether a header has this number: `42.0` is 42. Whole numbers are compared exactly.

    Keeps HDR-035.
    """
    match = _NUMBER.fullmatch(said)
    if match is None:
        return False
    if match[1] is None and match[2] is None:
        return int(said) == value
    return float(said) == value
