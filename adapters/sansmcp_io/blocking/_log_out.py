"""Logging out of a server, without a conversation with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import attrs

from .._options.clients import HTTPClientOptions

if TYPE_CHECKING:
    import ssl

    import httpx2

    from ..oauth import OAuth


def log_out(
    url: str,
    *,
    auth: OAuth,
    tls: ssl.SSLContext | None = None,
    proxies: Literal["use", "refuse", "ignore"] = "use",
    http: httpx2.Client | None = None,
) -> bool:
    """Forget the credentials of a server, and revoke its tokens at the authorization server.

    They are forgotten in any case. Needs the extra `httpx`.

    Args:
        url: The URL of the MCP server.
        auth: The storage, and the client that got the tokens if it has a secret or a key. The user
            is not asked.
        tls: As in `connect_http`.
        proxies: As in `connect_http`.
        http: As in `connect_http`.

    Returns:
        Whether there were tokens, which are revoked now.

    Raises:
        AuthorizationError: The storage cannot be read, or the tokens are not revoked and so valid
            until they end: the authorization server is not reached, or does not revoke.
    """
    # Imported here: programs on stdio do not need it, and httpx2 is an optional dependency.
    from ..oauth import FunctionUserAgent
    from ..oauth._authorization import ClientAuthorization
    from ._authorization import Authorizer
    from ._one_shot import OneShotSender

    options = HTTPClientOptions[Any](
        url=url, info={}, auth=auth, tls=tls, proxies=proxies, http=http
    )
    nobody = attrs.evolve(auth, user_agent=FunctionUserAgent(str))  # which needs no port
    authorization = ClientAuthorization(url, (), nobody)
    return Authorizer(OneShotSender(options), authorization, _call).log_out()


def _call(function: Callable[..., Any], *args: object, holds_interrupts: bool = False) -> Any:
    """Call a function: there is no session whose lock others could want meanwhile."""
    return function(*args)
