"""The exceptions that callers of the library get. Breaches by the peer are events instead."""

from __future__ import annotations

from typing import Any, Final


class LocalProtocolError(Exception):
    """A call would have broken the protocol; it has changed nothing and queued nothing.

    Attributes:
        rule: The id of the rule, as in the table of rules (`CANC-004`, `OWN-005`).
        text: The breach in one sentence.
        needed: If `require_input` has asked for a capability that the client did not declare: the
            capabilities that it must declare. In 2026-07-28 they are `data.requiredCapabilities`
            of the error -32021. Else None.
    """

    def __init__(self, rule: str, text: str, needed: dict[str, Any] | None = None) -> None:
        super().__init__(f"{text} [{rule}]")
        self.rule: Final = rule
        self.text: Final = text
        self.needed: Final = needed

    def __reduce__(
        self,
    ) -> tuple[type[LocalProtocolError], tuple[str, str, dict[str, Any] | None]]:
        return type(self), (self.rule, self.text, self.needed)


class InvalidCursor(ValueError):
    """A pagination cursor is not valid: `encode_cursor` has not made it. Answer with -32602.

    Keeps PAGE-008.

    Source: MCP 2025-11-25, server/utilities/pagination, Error Handling.
    """


class ErrorCode:
    """The error codes that JSON-RPC and MCP define.

    Source: JSON-RPC 2.0, section 5.1; MCP 2026-07-28, basic/index, Error Codes.
    """

    PARSE_ERROR: Final = -32700
    INVALID_REQUEST: Final = -32600
    METHOD_NOT_FOUND: Final = -32601
    INVALID_PARAMS: Final = -32602
    INTERNAL_ERROR: Final = -32603
    HEADER_MISMATCH: Final = -32020
    MISSING_CLIENT_CAPABILITY: Final = -32021
    UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
