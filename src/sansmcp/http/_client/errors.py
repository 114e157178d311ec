"""JSON-RPC errors in the bodies of responses that say no."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..._rules.messages import is_error
from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode
from ..._wire.framing import BOM, BOM_NOTE
from ..._wire.values import JSONObject, is_object

if TYPE_CHECKING:
    from .connection import PostConnection


_MODERN: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)


def is_modern_error(error: JSONObject | None) -> bool:
    """Whether only a server of 2026-07-28 answers with this error."""
    said: Any = {} if error is None else error["error"]
    return said.get("code") in _MODERN


def error_in(body: bytes, connection: PostConnection) -> JSONObject | None:
    """The message in a body, if it is a JSON-RPC error, whatever the body calls itself."""
    if not body:
        return None
    try:
        value: Any = connection.core.decoder.decode(body.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    if is_object(value) and "method" not in value and is_error(value.get("error")):
        if body.startswith(BOM):
            connection.core.report(Breach("OWN-017", BOM_NOTE, tolerated=True))
        return value
    return None
