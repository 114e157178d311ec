"""Checks the promises of the library about single messages."""

from __future__ import annotations

import json
from typing import Any

from sansmcp.testing import InvariantBroken


def demand(holds: object, text: str) -> None:
    """Raise `InvariantBroken` with this text unless the promise holds."""
    if not holds:
        raise InvariantBroken(text)


def check_message(message: bytes) -> Any:
    """Demand that these bytes are one line with a JSON-RPC 2.0 message or a batch of responses.

    Returns:
        The decoded value.

    Source: JSON-RPC 2.0, sections 4 to 6; MCP 2025-11-25, basic/index, Messages.
    """
    demand(b"\n" not in message, f"a message of several lines: {message!r}")
    try:
        value: Any = json.loads(message.decode(), parse_constant=_refuse)
    except ValueError as error:
        raise InvariantBroken(f"no JSON: {error}") from None
    if value.__class__ is list:
        demand(value, "an empty batch")
        for item in value:
            _check_object(item)
            demand("method" not in item, f"a batch holds more than answers: {item}")
    else:
        _check_object(value)
    return value


def _check_object(value: Any) -> None:
    is_object = value.__class__ is dict
    demand(is_object and value.get("jsonrpc") == "2.0", f"no message: {value}")
    body: Any
    if "method" in value:
        members = {"jsonrpc", "id", "method", "params"}
        body = value.get("params", {})
        good = isinstance(value["method"], str) and body.__class__ is dict
    elif "result" in value:
        members = {"jsonrpc", "id", "result"}
        body = value["result"]
        good = "id" in value and body.__class__ is dict
    else:
        members = {"jsonrpc", "id", "error"}
        body = value.get("error")
        good = (
            body.__class__ is dict
            and body.get("code").__class__ is int
            and isinstance(body.get("message"), str)
        )
    good = good and value.get("id", 0).__class__ in (int, float, str) and set(value) <= members
    demand(good, f"not well formed: {value}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not allowed")
