"""The choice of a client id, and the authentication of the client at the token endpoint.

Source: MCP 2026-07-28, basic/authorization/client-registration; RFC 6749, section 2.3; RFC 7523.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

import attrs

from ..._wire.values import JSONObject
from .._common.requests import printable
from .core import Core, Refused
from .credentials import Client, ClientKind, Credentials
from .events import AuthorizationFailure
from .server import ServerMetadata
from .settings import AuthMethod, ClientMetadata, RegisteredClient

JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_DEFAULT_METHODS: Final = ("client_secret_basic",)
_ASSERTION_SECONDS: Final = 60
_VISIBLE: Final = re.compile(r"[\x20-\x7e]+")  # VSCHAR of RFC 6749, appendix A


@attrs.define(eq=False, repr=False)
class Clients:
    """Knows which client ids there are, and how each authenticates."""

    _core: Core
    metadata: ClientMetadata
    _registered: dict[str, RegisteredClient]

    def provide(self, issuer: str, client: RegisteredClient) -> None:
        """Use a client at this authorization server from now on."""
        self._registered[issuer] = client

    def knows(self, issuer: str) -> bool:
        """Whether there is a registered client of this authorization server."""
        return issuer in self._registered

    def registered(self, server: ServerMetadata) -> Client | None:
        """The client that was registered beforehand; None without one. Keeps AUTH-044, AUTH-078.

        Raises:
            Refused: It cannot authenticate in a way that the authorization server lists.
        """
        given = self._registered.get(server.issuer)
        if given is None:
            return None
        return client_of(given, self._method_of(given, server))

    def by_metadata_url(self, server: ServerMetadata) -> Client | None:
        """The client whose id is its metadata URL, where that is supported.

        Keeps AUTH-069, AUTH-264.
        """
        url = self.metadata.url
        if url is None or not server.takes_metadata_urls:
            return None
        method: AuthMethod = "none"
        if self._signs(server) and "private_key_jwt" in (server.auth_methods or ()):
            method = "private_key_jwt"
        return Client(
            kind=ClientKind.METADATA_URL,
            client_id=url,
            auth_method=method,
            redirect_uris=self.metadata.redirect_uris,
        )

    def kept(
        self, credentials: Credentials | None, redirect_uri: str | None = None
    ) -> Client | None:
        """The client that was registered dynamically, as long as it can be used.

        Keeps AUTH-258.

        Args:
            credentials: What is known of this authorization server.
            redirect_uri: The redirect URI that it must have been registered with, if any.
        """
        client = None if credentials is None else credentials.client
        if client is None or client.kind is not ClientKind.DYNAMIC:
            return None
        expires = client.secret_expires_at
        if expires is not None and expires <= self._core.at:
            return None
        if not can_authenticate(client):
            return None
        if redirect_uri is not None and redirect_uri not in client.redirect_uris:
            return None
        return client

    def same(self, credentials: Credentials | None, server: ServerMetadata) -> Client | None:
        """The client that stored tokens were given to; None if it is not at hand any more."""
        stored = None if credentials is None else credentials.client
        if stored is None:
            return None
        if stored.kind is ClientKind.DYNAMIC:
            return self.kept(credentials)
        try:
            found = self.registered(server) or self.by_metadata_url(server)
        except Refused:
            return None
        same_id = found is not None and found.client_id == stored.client_id
        return found if same_id else None

    def revoking(self, credentials: Credentials, server: ServerMetadata) -> Client | None:
        """The client that may revoke stored tokens; None if it needs a secret that is missing."""
        stored = credentials.client
        is_public = stored is not None and stored.auth_method == "none"
        return self.same(credentials, server) or (stored if is_public else None)

    def method_for_registration(self, server: ServerMetadata) -> AuthMethod:
        """The way to authenticate that a dynamic registration asks for. Keeps AUTH-277."""
        if server.assumed:
            return "none"
        listed = server.auth_methods or _DEFAULT_METHODS
        preferred: tuple[AuthMethod, ...] = ("none", "client_secret_basic", "client_secret_post")
        for method in preferred:
            if method in listed:
                return method
        raise _unsupported(listed)

    def _signs(self, server: ServerMetadata) -> bool:
        signer, listed = self._core.assertions, server.signing_algorithms
        return signer is not None and (listed is None or signer.algorithm in listed)

    def _method_of(self, given: RegisteredClient, server: ServerMetadata) -> AuthMethod:
        """Keeps AUTH-277, AUTH-278, AUTH-360, AUTH-361."""
        listed = server.auth_methods or _DEFAULT_METHODS
        if given.client_secret is not None:
            possible: tuple[AuthMethod, ...] = ("client_secret_basic", "client_secret_post")
        elif self._core.assertions is not None:
            possible = ("private_key_jwt",)
        else:
            return given.auth_method or "none"
        if given.auth_method is not None:
            possible = (given.auth_method,)
        for method in possible:
            if server.assumed or method in listed:
                if method == "private_key_jwt" and not self._signs(server):
                    break
                return method
        raise _unsupported(listed)

    def authenticate(
        self, client: Client, audience: str, form: dict[str, str]
    ) -> tuple[tuple[str, str], ...]:
        """Add the authentication of a client to a form, and return the headers for it.

        Keeps AUTH-279, AUTH-280, AUTH-355, AUTH-357, AUTH-358, AUTH-359.

        Args:
            client: The client.
            audience: The issuer of the authorization server, for an assertion.
            form: The parameters of the request.
        """
        if client.kind is ClientKind.ANONYMOUS:
            return ()
        if client.auth_method == "client_secret_basic":
            text = f"{quote_plus(client.client_id)}:{quote_plus(client.secret or '')}"
            encoded = b2a_base64(text.encode(), newline=False).decode()
            return (("Authorization", f"Basic {encoded}"),)
        form["client_id"] = client.client_id
        if client.auth_method == "client_secret_post":
            form["client_secret"] = client.secret or ""
        elif client.auth_method == "private_key_jwt":
            form["client_assertion_type"] = JWT_BEARER
            form["client_assertion"] = self._assertion(client.client_id, audience)
        return ()

    def _assertion(self, client_id: str, audience: str) -> str:
        signer, at = self._core.assertions, int(self._core.at)
        if signer is None:
            raise _unsupported(("private_key_jwt",))
        claims: JSONObject = {
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "iat": at,
            "exp": at + _ASSERTION_SECONDS,
            "jti": self._core.draw(16),
        }
        return signer.sign(claims)


def can_authenticate(client: Client) -> bool:
    """Whether a client that was registered dynamically can be used: it has no key."""
    values = (client.client_id, client.secret)
    return (
        all(value is None or _VISIBLE.fullmatch(value) for value in values)
        and client.auth_method != "private_key_jwt"
        and (client.auth_method == "none" or bool(client.secret))
    )


def client_of(given: RegisteredClient, method: AuthMethod) -> Client:
    """A client that the application gave."""
    return Client(
        kind=ClientKind.REGISTERED,
        client_id=given.client_id,
        secret=given.client_secret,
        auth_method=method,
    )


def copy_of(registered: Mapping[str, RegisteredClient]) -> dict[str, RegisteredClient]:
    """The clients by their issuers, each of which is a string. Keeps AUTH-272.

    Raises:
        ValueError: The mapping holds something else.
    """
    given: Mapping[Any, Any] = registered  # callers may have no types
    for issuer, client in given.items():
        if not isinstance(issuer, str) or not isinstance(client, RegisteredClient):
            raise ValueError(
                "registered must map the issuer of each authorization server to a RegisteredClient"
            )
    return dict(registered)


def _unsupported(listed: tuple[str, ...]) -> Refused:
    return Refused(
        AuthorizationFailure.UNSUPPORTED,
        f"the client cannot authenticate in a way that the authorization server lists: "
        f"{printable(', '.join(listed))}",
        "AUTH-277",
    )
