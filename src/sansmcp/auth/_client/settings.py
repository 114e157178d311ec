"""What an application gives an `AuthorizationClient`: limits, itself as a client, and the grant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import attrs

from ..._wire.setting_checks import flag, kinds_in, names_in, seconds, text, whole
from ..._wire.values import JSONObject, Record
from .._common.addresses import Reach, RefusedURL, reach_of_host, read_url

AuthMethod: TypeAlias = Literal[
    "none", "client_secret_basic", "client_secret_post", "private_key_jwt"
]
"""A way in which a client authenticates itself at the token endpoint."""

AUTH_METHODS: Final[tuple[AuthMethod, ...]] = (
    "none",
    "client_secret_basic",
    "client_secret_post",
    "private_key_jwt",
)

ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
SAML2: Final = "urn:ietf:params:oauth:token-type:saml2"


class ProofSigner(Protocol):
    """Signs DPoP proofs with one asymmetric key. `sansmcp.auth.jose` has an implementation.

    Source: RFC 9449, section 4.
    """

    @property
    def algorithm(self) -> str:
        """The name of the signature algorithm, such as `ES256`."""
        ...

    def sign(self, claims: JSONObject) -> str:
        """Return a JWT with these claims, the type `dpop+jwt`, and the public key as `jwk`."""
        ...


class AssertionSigner(Protocol):
    """Signs assertions with which a client authenticates.

    `sansmcp.auth.jose` has an implementation.

    Source: RFC 7523, section 3.
    """

    @property
    def algorithm(self) -> str:
        """The name of the signature algorithm, such as `ES256`."""
        ...

    def sign(self, claims: JSONObject) -> str:
        """Return a JWT with these claims."""
        ...


def _scopes(scopes: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if scopes is None else names_in("scopes", scopes)


def _strings(values: Iterable[str]) -> tuple[str, ...]:
    return names_in("values", values)


def _reaches(kinds: Iterable[Reach]) -> frozenset[Reach]:
    return frozenset(kinds_in("allow_addresses", kinds, Reach, "members of Reach"))


def _redirect_uri(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Keeps AUTH-023, AUTH-253."""
    try:
        url = read_url(value)
    except RefusedURL as error:
        raise ValueError(f"{attribute.name} {error}") from None
    if url.scheme == "http" and reach_of_host(url.host) is not Reach.LOOPBACK:
        raise ValueError(f"{attribute.name} must be https, or a URL of localhost, not {value!r}")


def _metadata_url(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Keeps AUTH-070, AUTH-072, AUTH-262."""
    if value is None:
        return
    try:
        url = read_url(value)
    except RefusedURL as error:
        raise ValueError(f"{attribute.name} {error}") from None
    segments = url.path.split("/")
    if url.scheme != "https" or url.path in ("", "/") or {".", ".."} & {*segments}:
        raise ValueError(f"{attribute.name} must be an https URL with a path, not {value!r}")


def _endpoint(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Keeps AUTH-380."""
    _redirect_uri(_instance, attribute, value)


@final
@attrs.frozen(kw_only=True)
class AuthorizationConfig(Record):
    """Immutable limits and policies of an `AuthorizationClient`. Keeps AUTH-306, AUTH-345.

    Attributes:
        max_document_bytes: The longest body of a response. A longer one counts as no response.
        max_redirects: Redirects of one metadata request, all within its origin; another one ends
            the attempt.
        max_authorizations: Tokens requested in a row of which the MCP server accepted none. The
            next attempt fails at once.
        max_step_ups: Step-up authorizations for the same scopes; the next attempt fails at once.
        max_logins: How often the user is sent to an authorization server within `login_period`. The
            next attempt fails at once: a server that takes a token once, and then no more, would
            go on asking the user.
        login_period: Seconds.
        request_timeout: Seconds for each HTTP request.
        user_timeout: Seconds that the user may take until the callback.
        refresh_margin: Seconds before its end from which on a token counts as expired, at most
            half of its life.
        allow_addresses: Kinds of addresses that are allowed beside public ones and those of the
            kind that the URL of the MCP server itself has.
        legacy_fallback: Without metadata of the resource, look for the authorization server as
            2025-03-26 does: at the origin of the MCP server.
        ask_for_client: Ask the application for a client id (`ClientWanted`) if there is none.
        offline_access: Ask for the scope `offline_access` where the authorization server lists it.
    """

    max_document_bytes: int = attrs.field(default=65_536, validator=whole())
    max_redirects: int = attrs.field(default=3, validator=whole(0))
    max_authorizations: int = attrs.field(default=3, validator=whole())
    max_step_ups: int = attrs.field(default=2, validator=whole(0))
    max_logins: int = attrs.field(default=10, validator=whole())
    login_period: float = attrs.field(default=600.0, validator=seconds())
    request_timeout: float = attrs.field(default=30.0, validator=seconds())
    user_timeout: float = attrs.field(default=600.0, validator=seconds())
    refresh_margin: float = attrs.field(default=30.0, validator=seconds())
    allow_addresses: frozenset[Reach] = attrs.field(default=frozenset(), converter=_reaches)
    legacy_fallback: bool = attrs.field(default=True, validator=flag)
    ask_for_client: bool = attrs.field(default=False, validator=flag)
    offline_access: bool = attrs.field(default=True, validator=flag)


@final
@attrs.frozen(kw_only=True)
class ClientMetadata(Record):
    """The description of this client that authorization servers get when it is registered.

    Attributes:
        name: The name that users see.
        url: The URL of a Client ID Metadata Document with the same description, which is the
            client id at every authorization server that supports them.
        uri: The home page.
        logo_uri: The URL of a logo.
        application_type: `native` or `web`; None: `native` for a redirect URI of loopback.
        refresh: Whether refresh tokens are wanted.
        software_id: An id of the software, the same for each installation.
        software_version: The version of the software.
        redirect_uris: All redirect URIs of the metadata document; empty: that of the grant alone.

    Source: RFC 7591, section 2; MCP 2026-07-28, basic/authorization/client-registration.
    """

    name: str = attrs.field(default="sansmcp", validator=text())
    url: str | None = attrs.field(default=None, validator=_metadata_url)
    uri: str | None = attrs.field(default=None, validator=text(optional=True))
    logo_uri: str | None = attrs.field(default=None, validator=text(optional=True))
    application_type: Literal["native", "web"] | None = attrs.field(
        default=None, validator=attrs.validators.in_((None, "native", "web"))
    )
    refresh: bool = attrs.field(default=True, validator=flag)
    software_id: str | None = attrs.field(default=None, validator=text(optional=True))
    software_version: str | None = attrs.field(default=None, validator=text(optional=True))
    redirect_uris: tuple[str, ...] = attrs.field(default=(), converter=_strings)


@final
@attrs.frozen(kw_only=True)
class RegisteredClient(Record):
    """Credentials that were registered at one authorization server beforehand.

    Attributes:
        client_id: The client id.
        client_secret: The secret; None for a public client, or for one with a key.
        auth_method: The way to authenticate at the token endpoint; None: the first possible one
            that the metadata of the authorization server lists.
    """

    client_id: str = attrs.field(validator=text())
    client_secret: str | None = attrs.field(default=None, repr=False, validator=text(optional=True))
    auth_method: AuthMethod | None = attrs.field(
        default=None, validator=attrs.validators.in_((None, *AUTH_METHODS))
    )


@final
@attrs.frozen(kw_only=True)
class AuthorizationCode(Record):
    """The grant of a user, by way of a browser.

    Attributes:
        redirect_uri: The URL to which the user is sent back: https, or http of localhost.
        scopes: The scopes to ask for where the server names none in its challenge; None: all that
            the metadata of the MCP server lists.
    """

    redirect_uri: str = attrs.field(validator=_redirect_uri)
    scopes: tuple[str, ...] | None = attrs.field(default=None, converter=_scopes)


@final
@attrs.frozen(kw_only=True)
class ClientCredentials(Record):
    """The grant of a client that acts for itself, with a secret or a key.

    The credentials are those of `registered`; a key is `assertions`.

    Attributes:
        scopes: As in `AuthorizationCode`.
    """

    scopes: tuple[str, ...] | None = attrs.field(default=None, converter=_scopes)


@final
@attrs.frozen(kw_only=True)
class EnterpriseManaged(Record):
    """The grant of an enterprise: its identity provider decides instead of the user.

    Attributes:
        token_endpoint: The token endpoint of the identity provider, where the identity assertion
            of the user is exchanged for a grant (ID-JAG).
        client: This client at the identity provider.
        subject_token: The identity assertion; None: each attempt asks for it (`AssertionWanted`).
        subject_token_type: The type of the identity assertion: an ID token, or SAML 2.
        scopes: As in `AuthorizationCode`.
    """

    token_endpoint: str = attrs.field(validator=_endpoint)
    client: RegisteredClient
    subject_token: str | None = attrs.field(default=None, repr=False, validator=text(optional=True))
    subject_token_type: str = attrs.field(
        default=ID_TOKEN, validator=attrs.validators.in_((ID_TOKEN, SAML2))
    )
    scopes: tuple[str, ...] | None = attrs.field(default=None, converter=_scopes)


@final
@attrs.frozen(kw_only=True)
class WorkloadIdentity(Record):
    """The grant of a workload, with a JWT that its platform has issued.

    Attributes:
        assertion: The JWT; None: each attempt asks for a new one (`AssertionWanted`).
        scopes: As in `AuthorizationCode`.
    """

    assertion: str | None = attrs.field(default=None, repr=False, validator=text(optional=True))
    scopes: tuple[str, ...] | None = attrs.field(default=None, converter=_scopes)


Grant: TypeAlias = AuthorizationCode | ClientCredentials | EnterpriseManaged | WorkloadIdentity
"""The ways to get a token."""
