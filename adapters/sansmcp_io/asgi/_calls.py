"""What handlers below ASGI are given: what those of an HTTP server are, and the scope."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TypeAlias

from .._async.http_calls import HTTPServerCall

Scope: TypeAlias = MutableMapping[str, Any]
"""What a server of ASGI tells of a request."""


class ServerCall(HTTPServerCall):
    """A client's request that a handler works on."""

    @property
    def scope(self) -> Scope:
        """The scope of the HTTP request that brought it: with what middleware has put there."""
        scope: Scope = self._request.context
        return scope
