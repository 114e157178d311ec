"""Gets tokens for requests that others send, on trio."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, final

import trio

from .._async.authorization import Authorizer
from .._async.one_shot import H11OneShotSender
from ..oauth import OAuth
from ..oauth._authorization import ClientAuthorization
from ._http_client import BROKEN, connect
from ._loop import TrioLoop


@final
class TokenSource:
    """Gives the headers that authorize one request after the other.

    Attributes:
        authorization: The machine and its settings.
    """

    def __init__(self, authorization: ClientAuthorization) -> None:
        sender = H11OneShotSender(TrioLoop(), connect, BROKEN, None)
        self._authorizer: Final = Authorizer(TrioLoop(), sender, authorization)
        self._authorization: Final = authorization
        self._lock: Final = trio.Lock()
        self._is_restored = False

    async def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """The headers for one request to the MCP server, with a token that is valid.

        Raises:
            AuthorizationError: There is no token.
        """
        machine = self._authorization.machine
        async with self._lock:  # one attempt for all that wait
            if not self._is_restored:
                await self._authorizer.restore()
                self._is_restored = True
            if not machine.authorized or machine.needs_refresh(time.time()):
                await self._authorizer.run(None, None)
        return machine.headers(method, url, at=time.time())


@asynccontextmanager
async def token_source(url: str, oauth: OAuth) -> AsyncGenerator[TokenSource, None]:
    """A source of tokens for the server at a URL.

    Raises:
        ValueError, AuthorizationError: As `ClientAuthorization`.
    """
    authorization = ClientAuthorization(url, (), oauth)
    try:
        yield TokenSource(authorization)
    finally:
        authorization.close()
