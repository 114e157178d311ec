"""What is raised at our own caller. The peer's mistakes are events, never exceptions."""

from __future__ import annotations

from typing import Final


class LocalProtocolError(Exception):
    """A call would have broken the protocol. It changed nothing and queued nothing.

    Attributes:
        rule: The id of the rule, as in the table of rules (`CANC-004`, `OWN-005`).
        text: One sentence that says what was wrong.
    """

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{text} [{rule}]")
        self.rule: Final = rule
        self.text: Final = text

    def __reduce__(self) -> tuple[type[LocalProtocolError], tuple[str, str]]:
        return type(self), (self.rule, self.text)


class InvalidCursor(ValueError):
    """A pagination cursor that was not made by `encode_cursor`; answer it with -32602.

    Source: MCP 2025-11-25, server/utilities/pagination, Error Handling.
    """


class ErrorCode:
    """The JSON-RPC error codes that the core itself sends.

    Source: JSON-RPC 2.0, section 5.1, and MCP 2025-11-25, schema.
    """

    PARSE_ERROR: Final = -32700
    INVALID_REQUEST: Final = -32600
    METHOD_NOT_FOUND: Final = -32601
    INVALID_PARAMS: Final = -32602
    INTERNAL_ERROR: Final = -32603
