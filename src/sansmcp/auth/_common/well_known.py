"""Where the metadata of a protected resource and of an authorization server is.

Source: RFC 9728, section 3.1; RFC 8414, section 3.1; OpenID Connect Discovery, section 4;
MCP 2026-07-28, basic/authorization/authorization-server-discovery.
"""

from __future__ import annotations

from typing import Final

from .addresses import WebURL

RESOURCE: Final = "/.well-known/oauth-protected-resource"
OAUTH: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"


def server_metadata_urls(issuer: WebURL) -> list[str]:
    """The URLs at which the metadata may be, in their order. Keeps AUTH-039, AUTH-040, AUTH-212."""
    path = issuer.path.rstrip("/")
    if not path:
        return [issuer.origin + OAUTH, issuer.origin + OPENID]
    origin = issuer.origin
    return [origin + OAUTH + path, origin + OPENID + path, origin + path + OPENID]
