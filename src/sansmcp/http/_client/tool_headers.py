"""Headers that repeat parts of a modern message: its method, its name, and arguments of tools.

Source: MCP 2026-07-28, basic/transports/streamable-http, Standard MCP Request Headers and Custom
Headers from Tool Parameters.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

from ..._connection.events import LimitReached
from ..._rules.header_marks import BadMark, read_marks
from ..._rules.sending import Breach
from ..._spec.errors import LocalProtocolError
from ..._spec.modern_methods import MIRRORED_NAMES
from ..._wire.values import JSONObject, is_list, is_object
from .._headers import PARAM_PREFIX, Headers
from .core import ClientEndpointCore
from .headers import PLAIN, field_value

Mirrored: TypeAlias = tuple[tuple[bytes, tuple[str, ...]], ...]
"""The name of each header, with the path of its parameter in the arguments of the tool."""

_SAFE_INTEGER: Final = 2**53 - 1
_MARKED_CHARACTERS: Final = 16_384
"""Tools with more characters in names of marked parameters are not remembered."""


def _size_of(mirrored: Mirrored) -> int:
    return sum(len(header) + sum(map(len, path)) for header, path in mirrored)


def message_fields(method: str, params: JSONObject, mirrored: Mirrored) -> Headers:
    """Return the headers that repeat parts of a modern message.

    Keeps HDR-008, HDR-009, HDR-011, HDR-023, HDR-025.

    Raises:
        LocalProtocolError: The method has no form in a header, or an integer is out of the range
            that headers may hold.
    """
    if not PLAIN.fullmatch(method):
        raise LocalProtocolError("OWN-039", f"{method!r:.80} has no form in the header Mcp-Method")
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
    """Return an argument as its header repeats it; None for a value that no header repeats."""
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


@attrs.define(eq=False, repr=False)
class ToolHeaders:
    """The tools that a server has listed, as far as headers repeat their arguments."""

    _core: ClientEndpointCore
    _mirrored: dict[str, Mirrored] = attrs.field(factory=dict[str, Mirrored], init=False)  # by tool

    def fields_of(self, method: str, params: JSONObject) -> Headers:
        """Return the headers that repeat parts of a request or a notification.

        Keeps HTTP-026.

        Raises:
            LocalProtocolError: As for `message_fields`.
        """
        mirrored: Mirrored = ()
        if method == "tools/call":
            name: Any = params.get("name")
            mirrored = self._mirrored.get(name, ()) if isinstance(name, str) else ()
        return message_fields(method, params, mirrored)

    def learn(self, result: object) -> None:
        """Remember the marked parameters of a page of tools, and remove invalid tools from it.

        Keeps HDR-020.

        Args:
            result: The result of `tools/list`, which the application gets afterwards.
        """
        tools: Any = result.get("tools") if is_object(result) else None
        if not is_list(tools):
            return
        good = [tool for tool in tools if self._learn_tool(tool)]
        if len(good) != len(tools):
            tools[:] = good

    def _learn_tool(self, tool: Any) -> bool:
        """Remember the marked parameters of a tool; return whether its definition is valid.

        Keeps HDR-039.
        """
        name: Any = tool.get("name") if is_object(tool) else None
        if not isinstance(name, str):
            return True  # a breach that others report
        known = self._mirrored
        known.pop(name, None)
        try:
            marks = read_marks(tool.get("inputSchema"))
        except BadMark as bad:
            text = f"the tool {name[:80]!r} is left out of the list: {bad}"
            self._core.report(Breach(bad.rule, text))
            return False
        if marks:
            mirrored = tuple((PARAM_PREFIX + mark.encode(), path) for mark, path in marks)
            if _size_of(mirrored) > _MARKED_CHARACTERS:
                text = f"the tool {name[:80]!r} has too many marked parameters to be remembered"
                self._core.events.append(LimitReached(rule="OWN-043", text=text))
                return True
            known[name] = mirrored
            if len(known) > self._core.config.max_tool_schemas:
                oldest = next(iter(known))
                del known[oldest]
                text = f"the marked parameters of the tool {oldest[:80]!r} were forgotten"
                self._core.events.append(LimitReached(rule="OWN-043", text=text))
        return True
