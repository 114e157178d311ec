"""The exceptions that callers of the library get. Breaches by the peer are events instead."""

from __future__ import annotations

import enum
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


class LegacyErrorCode:
    """The error codes of MCP that only revisions before 2026-07-28 use, in pages or examples.

    Source: MCP 2025-11-25, server/resources, client/sampling, client/elicitation, Error Handling.
    """

    RESOURCE_NOT_FOUND: Final = -32002
    URL_ELICITATION_REQUIRED: Final = -32042
    USER_REJECTED: Final = -1


class ErrorKind(enum.Enum):
    """The meaning of an error, whatever its code is in a revision.

    `send_error` takes a kind in place of a code, and sends the code and the data that stand for it
    in the revision of the request. `ErrorReceived.kind` and `kind_of_error` read them back.

    Source: MCP 2025-11-25, server/resources, client/sampling, client/elicitation, Error Handling;
    MCP 2026-07-28, basic/index, Error Codes.
    """

    UNKNOWN_TOOL = "the server has no tool of this name"
    INVALID_PARAMS = "the params are not those of the method"
    RESOURCE_NOT_FOUND = "the server has no resource of this URI"
    INVALID_CURSOR = "the cursor of a listing is not valid"
    USER_REJECTED = "the user has rejected the request"
    MISSING_CAPABILITY = "the client has not declared a capability that the request needs"
    URL_ELICITATION_REQUIRED = "the user must visit a URL before the request is sent again"
    OVERLOADED = "a limit was reached, such as that on requests at the same time"
