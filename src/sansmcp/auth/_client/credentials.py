"""Clients and tokens, and the records in which an application stores them.

A record belongs to one MCP server and one authorization server. It is an object of JSON types:
`issuer`, `server`, `resource`, `resource_metadata`, `client` and `tokens`.

Keeps AUTH-043, AUTH-078.

Source: MCP 2026-07-28, basic/authorization/client-registration, Authorization Server Binding.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import attrs

from ..._wire.setting_checks import is_number
from ..._wire.values import JSONObject, Record, is_list_of_strings, is_object
from .settings import AUTH_METHODS, AuthMethod

_VERSION: Final = 1


class ClientKind(enum.Enum):
    """How a client has got its id."""

    REGISTERED = "registered"
    """Registered beforehand, and given by the application."""
    METADATA_URL = "metadata url"
    """The id is the URL of its metadata document."""
    DYNAMIC = "dynamic"
    """Registered by this library."""
    ANONYMOUS = "anonymous"
    """There is no id: the grant says who the client is."""


@attrs.frozen(kw_only=True)
class Client(Record):
    """This client at one authorization server."""

    kind: ClientKind
    client_id: str
    secret: str | None = attrs.field(default=None, repr=False)
    auth_method: AuthMethod
    secret_expires_at: float | None = None
    redirect_uris: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Tokens(Record):
    """An access token, perhaps with a refresh token."""

    access_token: str = attrs.field(repr=False)
    bound: bool
    expires_at: float | None
    refresh_token: str | None = attrs.field(default=None, repr=False)
    scopes: tuple[str, ...]
    obtained_at: float
    refreshed: bool = False

    @property
    def header(self) -> str:
        """The value of the header Authorization."""
        return f"{'DPoP' if self.bound else 'Bearer'} {self.access_token}"

    def is_due(self, at: float, margin: float) -> bool:
        """Whether the access token has expired, or will within the margin.

        The margin is at most half of its life, so that a token of a short life is used at all.
        """
        expires = self.expires_at
        return expires is not None and at >= expires - min(margin, (expires - self.obtained_at) / 2)


@attrs.frozen(kw_only=True)
class Credentials(Record):
    """All that is known of one authorization server, for one MCP server."""

    issuer: str
    server: str
    resource: str | None
    resource_metadata: str | None
    client: Client | None
    tokens: Tokens | None


def write_record(credentials: Credentials) -> JSONObject:
    """The record of credentials, without the secret of a client that the application gave."""
    client, tokens = credentials.client, credentials.tokens
    record: JSONObject = {
        "version": _VERSION,
        "issuer": credentials.issuer,
        "server": credentials.server,
        "resource": credentials.resource,
        "resource_metadata": credentials.resource_metadata,
        "client": None,
        "tokens": None,
    }
    if client is not None:
        record["client"] = {
            "kind": client.kind.value,
            "client_id": client.client_id,
            "client_secret": client.secret if client.kind is ClientKind.DYNAMIC else None,
            "auth_method": client.auth_method,
            "secret_expires_at": client.secret_expires_at,
            "redirect_uris": list(client.redirect_uris),
        }
    if tokens is not None:
        record["tokens"] = {
            "access_token": tokens.access_token,
            "bound": tokens.bound,
            "expires_at": tokens.expires_at,
            "refresh_token": tokens.refresh_token,
            "scopes": list(tokens.scopes),
            "obtained_at": tokens.obtained_at,
        }
    return record


def read_record(issuer: str, record: object, server: str) -> Credentials | None:
    """The credentials in a record; None if it is not one of this server and this issuer.

    Keeps AUTH-274: a record that does not name its issuer is not used.
    """
    if (
        not is_object(record)
        or record.get("version") != _VERSION
        or record.get("issuer") != issuer
        or record.get("server") != server
    ):
        return None
    resource, metadata = record.get("resource"), record.get("resource_metadata")
    return Credentials(
        issuer=issuer,
        server=server,
        resource=resource if isinstance(resource, str) else None,
        resource_metadata=metadata if isinstance(metadata, str) else None,
        client=_read_client(record.get("client")),
        tokens=_read_tokens(record.get("tokens")),
    )


def _read_client(value: Any) -> Client | None:
    try:
        return Client(
            kind=ClientKind(value["kind"]),
            client_id=_text(value["client_id"]),
            secret=_optional_text(value["client_secret"]),
            auth_method=AUTH_METHODS[AUTH_METHODS.index(value["auth_method"])],
            secret_expires_at=_time(value["secret_expires_at"]),
            redirect_uris=_texts(value["redirect_uris"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _read_tokens(value: Any) -> Tokens | None:
    try:
        obtained = _time(value["obtained_at"])
        return Tokens(
            access_token=_text(value["access_token"]),
            bound=value["bound"] is True,
            expires_at=_time(value["expires_at"]),
            refresh_token=_optional_text(value["refresh_token"]),
            scopes=_texts(value["scopes"]),
            obtained_at=0.0 if obtained is None else obtained,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    if not is_list_of_strings(value):
        raise TypeError
    return tuple(value)


def _time(value: object) -> float | None:
    if value is not None and not is_number(value):
        raise TypeError
    return value
