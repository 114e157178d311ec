"""Which HTTP status goes with an error.

Source: MCP 2026-07-28, basic/transports/streamable-http; basic/index, Error Codes.
"""

from __future__ import annotations

from typing import Final

from ..._spec.errors import ErrorCode

_MODERN: Final = {
    ErrorCode.METHOD_NOT_FOUND: 404,
    ErrorCode.PARSE_ERROR: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.INVALID_PARAMS: 400,
    ErrorCode.HEADER_MISMATCH: 400,
    ErrorCode.MISSING_CLIENT_CAPABILITY: 400,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: 400,
}


def error_status(code: int, is_modern: bool) -> int:
    """The status of an error that the application answers.

    Keeps CAP-008, HTTP-023.
    """
    return _MODERN.get(code, 200) if is_modern else 200


def refusal_status(code: int, is_modern: bool) -> int:
    """The status of an error by which the library refuses a request.

    A legacy client takes 404 for the end of its session, and other 4xx for the end of the
    connection: that a method is not there is an answer like any other (200).

    Keeps META-011.
    """
    if code == ErrorCode.INTERNAL_ERROR:  # a limit was reached
        return 503
    if is_modern:
        return _MODERN.get(code, 400)
    return 200 if code == ErrorCode.METHOD_NOT_FOUND else 400
