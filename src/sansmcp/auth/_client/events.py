"""The events of an `AuthorizationClient`. None of them shows a secret in its repr."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias, final

import attrs

from ..._wire.values import JSONObject, Record
from .._common.requests import RequestWanted
from .states import AUTHORIZATION, AuthorizationState, AuthorizationTrigger


class AuthorizationStep(enum.Enum):
    """The steps that an attempt may take, as `StepTaken` and `AuthorizationFailed` name them."""

    CHALLENGE = "challenge"
    RESOURCE_METADATA = "resource metadata"
    SERVER_METADATA = "server metadata"
    SCOPES = "scopes"
    CLIENT = "client"
    REGISTRATION = "registration"
    AUTHORIZATION = "authorization request"
    CALLBACK = "callback"
    ASSERTION = "assertion"
    EXCHANGE = "token exchange"
    TOKEN = "token request"
    REFRESH = "refresh"
    REVOCATION = "revocation"


class StepOutcome(enum.Enum):
    """What followed from a step."""

    DONE = "done"
    """The step has given what it was for."""
    SKIPPED = "skipped"
    """Nothing usable came, and something else is tried."""
    FAILED = "failed"
    """The attempt ends here."""


class AuthorizationFailure(enum.Enum):
    """The reasons for which an attempt ends without a token."""

    CANCELLED = "cancelled"
    """The application has cancelled the attempt."""
    TIMED_OUT = "timed out"
    """A server, or the user, did not answer in time."""
    UNREACHABLE = "unreachable"
    """A request got no response, or the server was unable to answer it."""
    REFUSED_URL = "refused url"
    """A server named a URL that may not be used."""
    METADATA_NOT_FOUND = "metadata not found"
    """No candidate for a metadata document gave one."""
    INVALID_METADATA = "invalid metadata"
    """A metadata document lacks a required member, or has a wrong one."""
    RESOURCE_MISMATCH = "resource mismatch"
    """The metadata of the resource is for another server."""
    ISSUER_MISMATCH = "issuer mismatch"
    """Metadata or a callback names another authorization server."""
    PKCE_UNSUPPORTED = "pkce unsupported"
    """The authorization server does not say that it supports PKCE with S256."""
    NO_CLIENT = "no client"
    """There is no client id for this authorization server, and no way to get one."""
    REGISTRATION_REFUSED = "registration refused"
    """The authorization server does not register the client."""
    NO_ASSERTION = "no assertion"
    """The application has no assertion."""
    DENIED = "denied"
    """The user or the authorization server has denied the authorization."""
    INVALID_CALLBACK = "invalid callback"
    """The callback has duplicate parameters, or none that can be used."""
    REFUSED = "refused"
    """The authorization server has answered with an OAuth error; `error` names it."""
    INVALID_RESPONSE = "invalid response"
    """The response to a token request or a registration cannot be used."""
    UNSUPPORTED = "unsupported"
    """The server demands a way of authentication that this client was not set up for."""
    SCOPE_NOT_GRANTED = "scope not granted"
    """The token lacks a scope that the server demands."""
    FORBIDDEN = "forbidden"
    """The server refuses the token for a reason that no other token changes."""
    TOO_MANY_ATTEMPTS = "too many attempts"
    """Several tokens in a row were refused."""


@final
class Attempt:
    """One attempt to be authorized; it ends in one `Authorized` or `AuthorizationFailed`.

    An attempt to log out ends in one `LoggedOut` or `AuthorizationFailed`.

    Attributes:
        data: A slot for any object of the application.
    """

    __slots__ = ("__weakref__", "_issuer", "_state", "data")

    def __init__(self) -> None:
        self._state = AuthorizationState.STARTED
        self._issuer: str | None = None
        self.data: Any = None

    @property
    def state(self) -> AuthorizationState:
        """The answer that the attempt waits for."""
        return self._state

    @property
    def open(self) -> bool:
        """Whether the ending is still to come."""
        return (self._state, AuthorizationTrigger.FAIL) in AUTHORIZATION

    @property
    def issuer(self) -> str | None:
        """The authorization server; None as long as it is not known."""
        return self._issuer

    def __repr__(self) -> str:
        return f"<Attempt {self._state.name}>"


@final
@attrs.frozen(kw_only=True)
class StepTaken(Record):
    """The attempt has taken a step.

    Attributes:
        step: The step.
        outcome: What followed from it.
        tried: What was tried.
        url: Where it was tried; None for a step without a request.
        status: The status of the response; None without one.
        conclusion: What came, and what was concluded.
        rule: The id of the rule that decided; None where no rule did.
    """

    step: AuthorizationStep
    outcome: StepOutcome
    tried: str
    url: str | None = None
    status: int | None = None
    conclusion: str
    rule: str | None = None


@final
@attrs.frozen(kw_only=True)
class UserAgentWanted(Record):
    """Open this URL in the browser of the user, then hand over the URL of the callback.

    The scheme of the URL is https, or http for loopback. Do not open it through a shell.

    Attributes:
        url: The authorization request, which holds the state of this attempt.
        redirect_uri: The URL to which the authorization server sends the user.
        issuer: The authorization server, to be shown to the user.
    """

    url: str = attrs.field(repr=False)
    redirect_uri: str
    issuer: str


@final
@attrs.frozen(kw_only=True)
class ClientWanted(Record):
    """There is no client id for this authorization server: answer with `provide_client`.

    Comes only with `AuthorizationConfig(ask_for_client=True)`.

    Attributes:
        issuer: The authorization server.
    """

    issuer: str


@final
@attrs.frozen(kw_only=True)
class AssertionWanted(Record):
    """A new assertion is needed: answer with `provide_assertion`.

    Comes only for grants that were made without one.

    Attributes:
        issuer: The authorization server that the token is for.
        token_endpoint: The URL of its token endpoint.
        resource: The MCP server, as its metadata names it.
    """

    issuer: str
    token_endpoint: str
    resource: str


@final
@attrs.frozen(kw_only=True)
class CredentialsToStore(Record):
    """Store this record for the MCP server under this issuer, in place of an earlier one.

    The record holds secrets. Keep it where only this user can read it.

    Attributes:
        issuer: The authorization server, which is the key.
        record: An object of JSON types, for `stored` of a later attempt; None: delete the record.
    """

    issuer: str
    record: JSONObject | None = attrs.field(repr=False)


@final
@attrs.frozen(kw_only=True)
class Authorized(Record):
    """The attempt has ended with a token: send the requests again, with `headers`.

    Attributes:
        attempt: The attempt.
        issuer: The authorization server.
        scopes: The scopes that were granted.
        expires_at: The end of the token in Unix seconds; None: it is not known.
    """

    attempt: Attempt
    issuer: str
    scopes: tuple[str, ...]
    expires_at: float | None


@final
@attrs.frozen(kw_only=True)
class AuthorizationFailed(Record):
    """The attempt has ended without a token.

    Attributes:
        attempt: The attempt.
        step: The step at which it ended.
        reason: The reason.
        text: What happened, and what to change.
        rule: The id of the rule that decided; None where no rule did.
        error: The OAuth error code of the authorization server, as it is; None without one.
        issuer: The authorization server; None if it was not known yet.
    """

    attempt: Attempt
    step: AuthorizationStep
    reason: AuthorizationFailure
    text: str
    rule: str | None = None
    error: str | None = None
    issuer: str | None = None


@final
@attrs.frozen(kw_only=True)
class LoggedOut(Record):
    """The attempt to log out has ended: the tokens are forgotten, and revoked at the server.

    Attributes:
        attempt: The attempt.
        issuer: The authorization server; None: there was no token.
    """

    attempt: Attempt
    issuer: str | None


AuthorizationEvent: TypeAlias = (
    StepTaken
    | RequestWanted
    | UserAgentWanted
    | ClientWanted
    | AssertionWanted
    | CredentialsToStore
    | Authorized
    | AuthorizationFailed
    | LoggedOut
)
