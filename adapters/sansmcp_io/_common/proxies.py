"""Proxies that the environment asks for. There is no way through one here, and that is said."""

from __future__ import annotations

from urllib.parse import urlsplit

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def check_no_proxy(url: str) -> None:
    """Refuse to go around a proxy that somebody has configured. What is no URL is for others.

    Raises:
        ValueError: `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY` apply to this URL.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        return
    # It loads half of the standard library, which nobody needs who does not come here.
    from urllib.request import getproxies_environment, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    found = parts.scheme if parts.scheme in proxies else "all"
    if found in proxies and host not in _LOOPBACK and not proxy_bypass(host):
        raise ValueError(
            f"{found}_proxy is set, and proxies are not supported: name {host} in no_proxy, or say "
            "proxies='ignore' to connect without one"
        )
