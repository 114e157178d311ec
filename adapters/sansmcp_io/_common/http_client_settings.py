"""The settings of a client over HTTP. They need no HTTP library."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import attrs

from .bounds import check_limit

if TYPE_CHECKING:
    from sansmcp.http import AuthorizationRequired


Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
"""HTTP headers: a mapping, or pairs of name and value."""
OnUnauthorized: TypeAlias = Callable[
    ["AuthorizationRequired"], Headers | Awaitable[Headers | None] | None
]
"""Called when the server answers 401, or 403 with a challenge. Returns the fields of all requests
from now on, and what was refused is sent again with them; None: it ends with `RequestRefused`, as
does what was refused with the fifth ones in a row. What it raises is the cause (`__cause__`) of the
`RequestRefused` of everybody who waits."""


@attrs.frozen(kw_only=True)
class HTTPClientLimits:
    """Limits of a client over HTTP. Times are in seconds; `math.inf`: no limit."""

    requests: int = attrs.field(default=100, validator=check_limit)
    """Requests at a time that have a connection; more wait for one, and their timeouts run. Each
    subscription has a connection beside these."""
    connect: float = attrs.field(default=10.0, validator=check_limit)
    """Seconds for opening a connection, with TLS."""
    head: float = attrs.field(default=30.0, validator=check_limit)
    """Seconds for the head of a response where no timeout of a request runs: for notifications,
    responses, and the GET stream."""
    silence: float = attrs.field(default=math.inf, validator=check_limit)
    """Seconds without data on an open stream, which is then resumed, or lost."""


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for a URL. Text that is no URL is checked elsewhere.

    It is that of `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY`, unless `NO_PROXY` has the host, with
    or without the port.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        return None
    # It loads half of the standard library, which other programs do not need.
    from urllib.request import getproxies_environment, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or host in _LOOPBACK:
        return None
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # the URL is refused elsewhere
        return None
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if proxy_bypass(host) or proxy_bypass(where):
        return None
    return found if "://" in found else f"http://{found}"
