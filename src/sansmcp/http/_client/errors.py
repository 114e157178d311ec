"""JSON-RPC errors in the bodies of responses that say no."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._values import JSONObject, is_object
from ..._wellformed import is_error

if TYPE_CHECKING:
    from .machine import ClientMachine


def error_in(body: bytes, machine: ClientMachine) -> JSONObject | None:
    """The message in a body, if it is a JSON-RPC error, whatever the body calls itself."""
    if not body:
        return None
    try:
        value: Any = machine._decoder.decode(body)
    except (ValueError, RecursionError):
        return None
    if is_object(value) and "method" not in value and is_error(value.get("error")):
        return value
    return None
