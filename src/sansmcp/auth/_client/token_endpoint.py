"""Requests to a token endpoint, and the tokens in its responses.

Source: RFC 6749, sections 4 to 6; RFC 8707; RFC 9449, section 5.
"""

from __future__ import annotations

import re
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlencode

import attrs

from ..._wire.setting_checks import is_number
from ..._wire.values import JSONObject
from .._common.addresses import AddressRules
from .._common.requests import HTTPRequest, HTTPResponse, printable, read_document
from .clients import Clients
from .core import Core, Refused, call
from .credentials import Client, Tokens
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome
from .proofs import USE_NONCE, Proofs
from .scopes import read_scopes
from .states import AuthorizationTrigger

_HEADERS: Final = (
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Accept", "application/json"),
)
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # the token of RFC 6750, section 2.1
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_SECRETS: Final = frozenset(
    {
        "assertion",
        "client_assertion",
        "client_secret",
        "code",
        "code_verifier",
        "refresh_token",
        "subject_token",
    }
)
_DIGITS: Final = re.compile(r"[0-9]{1,10}")
_BUSY: Final = frozenset({408, 429})


class TokenReader(Protocol):
    """Takes the response."""

    def token_answered(self, document: JSONObject) -> None:
        """Judge the JSON object of a successful response."""
        ...

    def token_refused(self, error: str, text: str) -> None:
        """Go on after an OAuth error."""
        ...


@attrs.frozen(kw_only=True)
class TokenRequest:
    """One request to a token endpoint.

    Attributes:
        url: The token endpoint.
        form: The parameters, without those that authenticate the client.
        client: The client that asks.
        audience: The issuer of the authorization server.
        bound: Whether the token is to be bound to the key of the client (DPoP).
        trigger: The step of the table of states.
        step: The step, as events name it.
        tried: What is tried, for the events.
        addresses: The addresses of the endpoint, where they differ from those of the machine.
    """

    url: str
    form: dict[str, str] = attrs.field(repr=False)
    client: Client
    audience: str
    bound: bool
    trigger: AuthorizationTrigger
    step: AuthorizationStep
    tried: str
    addresses: AddressRules | None = None


@attrs.define(eq=False, repr=False)
class TokenEndpoint:
    """Asks a token endpoint, once more if it wants a nonce in the proof."""

    _core: Core
    _clients: Clients
    _proofs: Proofs
    _reader: TokenReader
    _asked: TokenRequest | None = attrs.field(default=None, init=False)
    _has_nonce: bool = attrs.field(default=False, init=False)
    _body: bytes = attrs.field(default=b"", init=False)

    def start(self, asked: TokenRequest) -> None:
        """Make a request. Keeps AUTH-276, AUTH-397."""
        self._asked, self._has_nonce = asked, False
        self._ask(asked)

    def _ask(self, asked: TokenRequest) -> None:
        self._core.move(asked.trigger, asked.step)
        try:
            headers, body = call(lambda: self._content(asked))
        except Refused as refused:
            self._note(StepOutcome.FAILED, asked, str(refused), None, refused.rule)
            self._core.fail(refused.reason, f"{asked.tried}: {refused}", refused.rule)
            return
        self._body = body
        self._core.ask(
            self,
            "POST",
            asked.url,
            headers,
            body,
            addresses=asked.addresses,
        )

    def _content(self, asked: TokenRequest) -> tuple[tuple[tuple[str, str], ...], bytes]:
        form = dict(asked.form)
        more = self._clients.authenticate(asked.client, asked.audience, form)
        proof = (self._proofs.make("POST", asked.url, at=self._core.at),) if asked.bound else ()
        return (*_HEADERS, *more, *proof), urlencode(form).encode()

    def receive(self, request: HTTPRequest, response: HTTPResponse) -> None:
        """Judge the response. Keeps AUTH-403, AUTH-406."""
        asked = self._asked
        assert asked is not None
        status, document = response.status, read_document(response.body)
        has_nonce = asked.bound and self._proofs.learn(request.url, response.headers)
        if status == 200 and document is not None:
            self._reader.token_answered(document)
            return
        if status >= 500 or status in _BUSY:
            self._unavailable(asked, f"status {status}", status)
            return
        secrets = self._secrets(asked)
        is_refusal = 400 <= status < 500  # or it is no answer of a token endpoint
        error = printable((document or {}).get("error"), secrets) if is_refusal else ""
        if error == USE_NONCE and has_nonce and not self._has_nonce:
            self._has_nonce = True
            text = "the server wants a nonce in the proof, and gives one"
            self._note(StepOutcome.SKIPPED, asked, text, status, "AUTH-403")
            self._ask(asked)
            return
        said = printable((document or {}).get("error_description"), secrets)
        text = f"status {status}" + (f", {error}" if error else "") + (f" ({said})" if said else "")
        outcome = StepOutcome.FAILED
        if asked.step is AuthorizationStep.REFRESH and error:
            outcome = StepOutcome.SKIPPED
        self._note(outcome, asked, text, status, None)
        self._reader.token_refused(error, f"the {asked.tried} was answered with {text}")

    def _secrets(self, asked: TokenRequest) -> list[object]:
        """What an answer may repeat of a request."""
        given = parse_qsl(self._body.decode())
        return [asked.client.secret, *(value for name, value in given if name in _SECRETS)]

    def receive_failure(self, request: HTTPRequest, text: str) -> None:
        """End the attempt; what is stored stays."""
        assert self._asked is not None
        self._unavailable(self._asked, text, None)

    def _unavailable(self, asked: TokenRequest, text: str, status: int | None) -> None:
        self._note(StepOutcome.FAILED, asked, text, status, None)
        self._core.fail(AuthorizationFailure.UNREACHABLE, f"{asked.tried}: {text}")

    def _note(
        self,
        outcome: StepOutcome,
        asked: TokenRequest,
        text: str,
        status: int | None,
        rule: str | None,
    ) -> None:
        self._core.note(outcome, asked.tried, text, rule=rule, url=asked.url, status=status)


def read_tokens(
    document: JSONObject,
    *,
    at: float,
    bound: bool,
    scopes: tuple[str, ...],
    earlier: Tokens | None = None,
) -> Tokens:
    """The tokens of a response.

    Keeps AUTH-281, AUTH-282, AUTH-283, AUTH-284, AUTH-290, AUTH-400.

    Args:
        document: The JSON object of the response.
        at: The Unix time of its receipt.
        bound: Whether the token must be bound to the key of the client.
        scopes: The scopes that were asked for, which a response without `scope` grants.
        earlier: The tokens that were refreshed.

    Raises:
        Refused: The response cannot be used.
    """
    token, kind = document.get("access_token"), document.get("token_type")
    wanted = "DPoP" if bound else "Bearer"
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise _invalid(
            "`access_token` is missing, or has other characters than a token", "AUTH-284"
        )
    if not isinstance(kind, str) or kind.lower() != wanted.lower():
        raise _invalid(f"`token_type` must be {wanted}", "AUTH-400" if bound else "AUTH-281")
    refresh, granted = document.get("refresh_token"), document.get("scope")
    if not isinstance(refresh, str) or not _VISIBLE.fullmatch(refresh):
        refresh = None if earlier is None else earlier.refresh_token
    seconds = _seconds(document.get("expires_in"))
    return Tokens(
        access_token=token,
        bound=bound,
        expires_at=None if seconds is None else at + seconds,
        refresh_token=refresh,
        scopes=(read_scopes(granted) or ()) if isinstance(granted, str) else scopes,
        obtained_at=at,
        refreshed=earlier is not None,
    )


def _seconds(value: object) -> float | None:
    if isinstance(value, str) and _DIGITS.fullmatch(value):  # which some servers send
        return float(value)
    return float(value) if is_number(value) and 0 <= value < 1e10 else None


def _invalid(text: str, rule: str) -> Refused:
    return Refused(AuthorizationFailure.INVALID_RESPONSE, text, rule)
