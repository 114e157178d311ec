"""Dynamic registration of the client.

Source: RFC 7591; MCP 2026-07-28, basic/authorization/client-registration.
"""

from __future__ import annotations

from typing import Final, Protocol
from urllib.parse import urlsplit

import attrs

from ..._wire.codec import STANDARD_CODEC
from ..._wire.setting_checks import is_number
from ..._wire.values import JSONObject
from .._common.addresses import Reach, reach_of_host
from .._common.requests import HTTPRequest, HTTPResponse, printable, read_document
from .clients import Clients, can_authenticate
from .core import Core
from .credentials import Client, ClientKind
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .server import ServerMetadata
from .settings import AUTH_METHODS, AuthMethod, ClientMetadata
from .states import AuthorizationTrigger

_TRIED: Final = "dynamic registration"
_HEADERS: Final = (("Content-Type", "application/json"), ("Accept", "application/json"))


class ClientReader(Protocol):
    """Takes the result."""

    def client_registered(self, client: Client) -> None:
        """Go on with a client that was registered."""
        ...


def description_of(
    metadata: ClientMetadata, redirect_uri: str, method: AuthMethod, *, bound: bool
) -> JSONObject:
    """The body of a registration.

    Keeps AUTH-055, AUTH-075, AUTH-076, AUTH-089, AUTH-259, AUTH-407.
    """
    native = reach_of_host(urlsplit(redirect_uri).hostname or "") is Reach.LOOPBACK
    grants = ["authorization_code", "refresh_token"] if metadata.refresh else ["authorization_code"]
    body: JSONObject = {
        "redirect_uris": [redirect_uri],
        "token_endpoint_auth_method": method,
        "grant_types": grants,
        "response_types": ["code"],
        "client_name": metadata.name,
        "application_type": metadata.application_type or ("native" if native else "web"),
    }
    more = {
        "client_uri": metadata.uri,
        "logo_uri": metadata.logo_uri,
        "software_id": metadata.software_id,
        "software_version": metadata.software_version,
        "dpop_bound_access_tokens": True if bound else None,
    }
    body.update({name: value for name, value in more.items() if value is not None})
    return body


@attrs.define(eq=False, repr=False)
class Registration:
    """Registers the client, and reads what the authorization server made of it."""

    _core: Core
    _clients: Clients
    _reader: ClientReader
    _redirect_uri: str = attrs.field(default="", init=False)
    _server: ServerMetadata | None = attrs.field(default=None, init=False)

    def start(self, server: ServerMetadata, endpoint: str, redirect_uri: str) -> None:
        """Ask for a registration. Keeps AUTH-020, AUTH-021, AUTH-256.

        Raises:
            Refused: The client cannot authenticate in any way that the server lists.
        """
        core, clients = self._core, self._clients
        method = clients.method_for_registration(server)
        self._server, self._redirect_uri = server, redirect_uri
        core.move(AuthorizationTrigger.REGISTER, AuthorizationStep.REGISTRATION)
        body = description_of(clients.metadata, redirect_uri, method, bound=core.proofs is not None)
        core.ask(self, "POST", endpoint, _HEADERS, STANDARD_CODEC.encode(body))

    def receive(self, request: HTTPRequest, response: HTTPResponse) -> None:
        """Judge the response. Keeps AUTH-077, AUTH-260."""
        core, status = self._core, response.status
        document = read_document(response.body)
        if status in (200, 201) and document is not None:
            client = self._client(document)
            if client is not None and can_authenticate(client):
                text = f"the client id is {printable(client.client_id)}"
                core.note(
                    StepOutcome.DONE, _TRIED, text, rule="AUTH-257", url=request.url, status=status
                )
                self._reader.client_registered(client)
                return
        secrets = [(document or {}).get("client_secret")]
        error = printable((document or {}).get("error"), secrets)
        said = printable((document or {}).get("error_description"), secrets)
        text = f"the authorization server answers the registration with status {status}"
        if error:
            text += f", {error}" + (f" ({said})" if said else "")
        elif status in (200, 201):
            text += ", without a client id and a way to authenticate that this client can use"
        if error == "invalid_redirect_uri":
            text += "; try another redirect URI, or another application_type"
        self._fail(request, status, text, error or None)

    def receive_failure(self, request: HTTPRequest, text: str) -> None:
        """End the attempt."""
        self._core.note(StepOutcome.FAILED, _TRIED, text, url=request.url)
        self._core.fail(AuthorizationFailure.UNREACHABLE, f"{_TRIED}: {text}")

    def _fail(self, request: HTTPRequest, status: int, text: str, error: str | None) -> None:
        core, rule = self._core, "AUTH-077"
        core.note(StepOutcome.FAILED, _TRIED, text, rule=rule, url=request.url, status=status)
        core.fail(AuthorizationFailure.REGISTRATION_REFUSED, text, rule, error=error)

    def _client(self, document: JSONObject) -> Client | None:
        """The client of a response: its values count, not those that were asked for."""
        client_id, secret = document.get("client_id"), document.get("client_secret")
        if not isinstance(client_id, str) or not client_id:
            return None
        if not isinstance(secret, str):
            secret = None
        method = document.get("token_endpoint_auth_method")
        if method not in AUTH_METHODS:
            method = self._method_for(secret)
        expires = document.get("client_secret_expires_at")
        return Client(
            kind=ClientKind.DYNAMIC,
            client_id=client_id,
            secret=secret,
            auth_method=method,
            secret_expires_at=expires if is_number(expires) and expires > 0 else None,
            redirect_uris=(self._redirect_uri,),
        )

    def _method_for(self, secret: str | None) -> AuthMethod:
        assert self._server is not None
        if secret is None:
            return "none"
        listed = self._server.auth_methods or ("client_secret_basic",)
        return "client_secret_basic" if "client_secret_basic" in listed else "client_secret_post"
