"""Logging out: the tokens are revoked at the authorization server that has given them.

Source: RFC 7009; RFC 8414, section 2.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import attrs

from .._common.requests import HTTPRequest, HTTPResponse, printable, read_document
from .clients import Clients
from .core import Core, Refused, call
from .credentials import Client, Credentials
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .server import ServerDiscovery, ServerMetadata
from .states import AuthorizationTrigger

_STEP: Final = AuthorizationStep.REVOCATION
_HEADERS: Final = (
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Accept", "application/json"),
)
_SECRETS: Final = ("token", "client_secret", "client_assertion")
_UNSUPPORTED: Final = "unsupported_token_type"


@attrs.define(eq=False, repr=False)
class Revocation:
    """Finds the revocation endpoint, and revokes the refresh token, then the access token."""

    _core: Core
    _clients: Clients
    _servers: ServerDiscovery = attrs.field(init=False)
    _credentials: Credentials | None = attrs.field(default=None, init=False)
    _client: Client | None = attrs.field(default=None, init=False)
    _endpoint: str = attrs.field(default="", init=False)
    _left: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]], init=False)
    _tried: str = attrs.field(default="", init=False)
    _is_revoked: bool = attrs.field(default=False, init=False)  # one of them
    _secrets: list[object] = attrs.field(factory=list[object], init=False)

    def __attrs_post_init__(self) -> None:
        """Make the part that finds the endpoint."""
        self._servers = ServerDiscovery(self._core, self)

    def start(self, credentials: Credentials | None) -> None:
        """Revoke the tokens of credentials, or end the attempt: there are none."""
        tokens = None if credentials is None else credentials.tokens
        if credentials is None or tokens is None:
            self._core.log_out(None)
            return
        self._credentials, self._is_revoked = credentials, False
        self._endpoint = self._tried = ""
        self._left = [(tokens.access_token, "access_token")]
        if tokens.refresh_token is not None:
            self._left.insert(0, (tokens.refresh_token, "refresh_token"))
        self._core.running._issuer = credentials.issuer
        self._servers.start(credentials.issuer)

    def server_found(self, metadata: ServerMetadata) -> None:
        """Ask for the first revocation."""
        core, credentials = self._core, self._credentials
        assert credentials is not None
        core.step = _STEP
        if metadata.revocation_endpoint is None:
            text = f"the metadata of {metadata.issuer} names no `revocation_endpoint` to revoke at"
            self._fail(AuthorizationFailure.UNSUPPORTED, text)
            return
        client = self._clients.revoking(credentials, metadata)
        if client is None:
            text = "the client that the tokens were given to is not at hand, or has no secret"
            self._fail(AuthorizationFailure.NO_CLIENT, text)
            return
        self._client, self._endpoint = client, metadata.revocation_endpoint
        self._ask(client)

    def _ask(self, client: Client) -> None:
        core, credentials = self._core, self._credentials
        assert credentials is not None
        token, hint = self._left.pop(0)
        self._tried = f"revocation of the {hint.replace('_', ' ')}"
        core.move(AuthorizationTrigger.REVOKE, _STEP)
        form = {"token": token, "token_type_hint": hint}
        try:
            more = call(lambda: self._clients.authenticate(client, credentials.issuer, form))
        except Refused as refused:
            self._fail(refused.reason, str(refused))
            return
        self._secrets = [client.secret, *(form.get(name) for name in _SECRETS)]
        core.ask(self, "POST", self._endpoint, (*_HEADERS, *more), urlencode(form).encode())

    def receive(self, request: HTTPRequest, response: HTTPResponse) -> None:
        """Judge the response. A token that the server does not know is revoked, too."""
        status, document = response.status, read_document(response.body) or {}
        error = printable(document.get("error"), self._secrets)
        if status == 200:
            self._is_revoked = True
            self._note(StepOutcome.DONE, "it is revoked", status)
        elif error == _UNSUPPORTED and self._is_revoked:
            text = "the server revokes refresh tokens only: the access token ends in its time"
            self._note(StepOutcome.SKIPPED, text, status)
        else:
            said = printable(document.get("error_description"), self._secrets)
            text = f"status {status}" + (f", {error}" if error else "")
            text += f" ({said})" if said else ""
            self._fail(AuthorizationFailure.REFUSED, text, status, error or None)
            return
        client, credentials = self._client, self._credentials
        assert client is not None
        assert credentials is not None
        if self._left:
            self._ask(client)
        else:
            self._core.log_out(credentials.issuer)

    def receive_failure(self, request: HTTPRequest, text: str) -> None:
        """End the attempt."""
        self._fail(AuthorizationFailure.UNREACHABLE, text)

    def _note(self, outcome: StepOutcome, text: str, status: int | None) -> None:
        url = self._endpoint or None
        self._core.note(outcome, self._tried or "revocation", text, url=url, status=status)

    def _fail(
        self,
        reason: AuthorizationFailure,
        text: str,
        status: int | None = None,
        error: str | None = None,
    ) -> None:
        self._note(StepOutcome.FAILED, text, status)
        text = f"the tokens are forgotten here, and not revoked at the server: {text}"
        self._core.fail(reason, text, error=error)
