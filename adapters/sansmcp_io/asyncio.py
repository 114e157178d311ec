"""sansmcp on asyncio: clients and servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ._async_server import Server, ServerCall
from ._asyncio_http import serve_http
from ._asyncio_serving import Result

__all__ = ["serve_http"]

Handler: TypeAlias = Callable[[ServerCall], Result]
ReadyHandler: TypeAlias = Callable[[Server], object]
