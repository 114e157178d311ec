"""How addresses are written."""

from __future__ import annotations

from typing import Any


def address_text(address: tuple[Any, ...]) -> str:
    """Address and port, as `127.0.0.1:50123` or `[::1]:50123`."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
