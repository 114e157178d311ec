"""`sansmcp auth`: walks through the authorization of a server, and keeps its credentials."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from sansmcp import JSONObject, JSONValue
from sansmcp.auth import AuthorizationFailure, AuthorizationStep, StepOutcome, StepTaken
from sansmcp.http import AuthorizationRequired, Challenge

from .._common.errors import AuthorizationError
from ..oauth import FileTokenStorage, OAuth, StorageError, TokenStorage
from ._errors import Failure, Status
from ._output.output import Output
from ._output.printing import Block, Heading, NamedValues, Note, Table
from ._output.visible import shortened
from ._values import array_of, as_text, member, object_of

_Failure = AuthorizationFailure
_Step = AuthorizationStep
_RESOURCE_METADATA: Final = (
    "serve a document with resource and authorization_servers at "
    "/.well-known/oauth-protected-resource and the path of the endpoint, and name its URL in the "
    'response 401: WWW-Authenticate: Bearer resource_metadata="URL"'
)
_SERVER_METADATA: Final = (
    "the authorization server has to serve its metadata at "
    "/.well-known/oauth-authorization-server or /.well-known/openid-configuration, for the issuer "
    "that authorization_servers of the MCP server names"
)
ADVICE: Final[Mapping[AuthorizationFailure, str]] = {
    _Failure.TIMED_OUT: "answer within the time, or log in sooner",
    _Failure.UNREACHABLE: "make sure that this URL can be reached from where the client runs",
    _Failure.REFUSED_URL: "name https URLs of public hosts only; a server on this machine may have "
    "http, and then all of its URLs; on your own network: --allow-address",
    _Failure.INVALID_METADATA: "put the member that is named right in the metadata document",
    _Failure.RESOURCE_MISMATCH: "resource in the metadata has to be the URL that clients use, or "
    "its origin",
    _Failure.ISSUER_MISMATCH: "issuer in the metadata, iss in the redirect, and the issuer that "
    "authorization_servers names have to be the same text, with or without a slash at the end",
    _Failure.PKCE_UNSUPPORTED: "the authorization server has to support PKCE, and to say so: "
    'code_challenge_methods_supported: ["S256"]',
    _Failure.NO_CLIENT: "the authorization server could take the URL of a metadata document as "
    "client id (client_id_metadata_document_supported), or register clients by itself "
    "(registration_endpoint); until then: --client-id",
    _Failure.REGISTRATION_REFUSED: "the registration endpoint has to take native applications "
    "with a redirect URI of 127.0.0.1 on any port; until then: --client-id",
    _Failure.INVALID_CALLBACK: "the redirect has to have code or error, state as it came, and iss, "
    "each once",
    _Failure.REFUSED: "the error of the authorization server says what it wants; its log may say "
    "more",
    _Failure.INVALID_RESPONSE: "answer with JSON as OAuth 2.1 has it: access_token, and token_type "
    "Bearer or DPoP",
    _Failure.UNSUPPORTED: "offer the scheme Bearer, too, for clients without a key",
    _Failure.SCOPE_NOT_GRANTED: "grant the scopes that the MCP server demands, or demand others",
    _Failure.FORBIDDEN: "a token that is refused for its scopes is answered with 403 and "
    'WWW-Authenticate: Bearer error="insufficient_scope", scope="..."',
    _Failure.TOO_MANY_ATTEMPTS: "the MCP server refuses tokens that it has just been given: check "
    "how it verifies audience, issuer and scopes",
}
"""What the author of a server can change where an attempt ends for this reason."""


def advice(error: AuthorizationError) -> tuple[str, ...]:
    """What the author of the server can change, and where the rule is explained."""
    hints: list[str] = []
    if error.reason is _Failure.METADATA_NOT_FOUND:
        is_resource = error.step is _Step.RESOURCE_METADATA
        hints.append(_RESOURCE_METADATA if is_resource else _SERVER_METADATA)
    elif error.reason is not None and error.reason in ADVICE:
        hints.append(ADVICE[error.reason])
    if error.rule is not None:
        hints.append(f"sansmcp explain {error.rule}")
    return tuple(hints)


def failure_of(error: AuthorizationError, server: str) -> Failure:
    """The failure of a command that was not authorized."""
    where = "" if error.step is None else f" at the step: {error.step.value}"
    return Failure(
        kind="unauthorized",
        text=f"authorization by {server} has ended{where}",
        details=(str(error),),
        hints=advice(error),
        rule=error.rule,
    )


@attrs.define
class Walk:
    """Shows each step as it is taken, and keeps it for the document. It traces the client, too."""

    _url: str
    _output: Output
    steps: list[StepTaken] = attrs.field(factory=list[StepTaken])

    def sent(self, connection: str, data: bytes) -> None:
        """Show no bytes: they hold secrets."""

    def received(self, connection: str, data: bytes) -> None:
        """Show no bytes."""

    def happened(self, event: object) -> None:
        """Show what the server demands, which is the first step."""
        if isinstance(event, AuthorizationRequired) and event.kept:
            wanted = [_shown(challenge) for challenge in event.challenges]
            self.step_taken(
                StepTaken(
                    step=AuthorizationStep.CHALLENGE,
                    outcome=StepOutcome.DONE,
                    tried="a request to the MCP server",
                    url=self._url,
                    status=event.status,
                    conclusion="; ".join(wanted) or "it does not say how to authenticate",
                    rule="AUTH-036",
                )
            )

    def step_taken(self, step: StepTaken) -> None:
        """Show a step."""
        self.steps.append(step)
        mark = {StepOutcome.DONE: "", StepOutcome.SKIPPED: " (goes on)"}.get(
            step.outcome, " (ends here)"
        )
        self._output.block(Heading(f"{len(self.steps)}. {step.step.value}{mark}"))
        rows = [("tried", step.tried)]
        if step.url is not None:
            rows.append(("at", _without_query(step.url)))
        if step.status is not None:
            rows.append(("status", str(step.status)))
        rows.append(("so", step.conclusion))
        if step.rule is not None:
            rows.append(("rule", step.rule))
        self._output.block(NamedValues(tuple(rows)))

    def document(
        self,
        url: str,
        error: AuthorizationError | None = None,
        token: JSONObject | None = None,
    ) -> JSONObject:
        """All of it, for programs."""
        stopped: JSONValue = None
        if error is not None:
            stopped = {
                "step": None if error.step is None else error.step.value,
                "reason": None if error.reason is None else error.reason.value,
                "text": str(error),
                "rule": error.rule,
                "error": error.error,
                "hints": list(advice(error)),
            }
        return {
            "url": url,
            "wanted": bool(self.steps),
            "authorized": token is not None,
            "token": token,
            "steps": [
                {
                    "step": step.step.value,
                    "outcome": step.outcome.value,
                    "tried": step.tried,
                    "url": None if step.url is None else _without_query(step.url),
                    "status": step.status,
                    "conclusion": step.conclusion,
                    "rule": step.rule,
                }
                for step in self.steps
            ],
            "stopped": stopped,
        }


def _shown(challenge: Challenge) -> str:
    rest = [f'{name}="{value}"' for name, value in challenge.parameters.items()]
    return shortened(" ".join(["it wants", challenge.scheme, *rest]), 300)


def token_in(records: Mapping[str, JSONObject]) -> JSONObject | None:
    """What is known of the newest token in the records of a server, without the token."""
    found = [
        (issuer, object_of(record.get("tokens")))
        for issuer, record in records.items()
        if record.get("tokens") is not None
    ]
    if not found:
        return None
    issuer, tokens = max(found, key=lambda one: _number(one[1].get("obtained_at")))
    return {
        "issuer": issuer,
        "scopes": array_of(tokens.get("scopes")),
        "expires_at": tokens.get("expires_at"),
        "refreshes": tokens.get("refresh_token") is not None,
    }


def status(url: str | None, storage: FileTokenStorage, output: Output) -> int:
    """Show for which servers there are credentials, without any secret.

    Returns:
        `Status.OK` if there is a token, also one that has ended or is to be refreshed; else
        `Status.TOOL_FAILED`.
    """
    try:
        servers = storage.servers() if url is None else (url,)
        known = {server: token_in(storage.load(server)) for server in servers}
        stored = {server: bool(storage.load(server)) for server in servers}
    except StorageError as error:
        return _unreadable(error, output)
    document: list[JSONValue] = [
        {"url": server, "stored": stored[server], "token": token} for server, token in known.items()
    ]
    output.result(document, _status_blocks(known))
    return Status.OK if any(known.values()) else Status.TOOL_FAILED


def logout(url: str, auth: OAuth, output: Output, *, is_local: bool) -> int:
    """Forget the credentials of a server, and revoke its tokens unless `is_local`."""
    storage = auth.storage
    try:
        issuers = list(_load(storage, url))
        was_revoked, why = (False, None) if is_local else _revoke(url, auth)
        for issuer in _load(storage, url):  # what is there still
            storage.store(url, issuer, None)
    except StorageError as error:
        return _unreadable(error, output)
    if not issuers:
        text = "there were no credentials"
    elif was_revoked:
        text = "forgotten here, and revoked at the authorization server"
    else:
        text = "forgotten here; the tokens end at the server in their time"
    notes = [Note(text)] if why is None or not issuers else [Note(text), Note(why)]
    output.result({"url": url, "issuers": list(issuers), "revoked": was_revoked, "why": why}, notes)
    return Status.OK


def _load(storage: TokenStorage, url: str) -> Mapping[str, JSONObject]:
    records = storage.load(url)
    assert isinstance(records, Mapping)  # those of the command line are not async
    return records


def _revoke(url: str, auth: OAuth) -> tuple[bool, str | None]:
    """Whether tokens are revoked now, and why not. That is a try: they are forgotten anyway."""
    from ..blocking import log_out

    try:
        return log_out(url, auth=auth), None
    except AuthorizationError as error:
        return False, str(error)
    except (ModuleNotFoundError, ValueError) as error:  # httpx2 is not installed; an odd URL
        return False, str(error)


def _unreadable(error: StorageError, output: Output) -> int:
    output.failure(Failure(kind="unreadable", text=str(error)))
    return Status.PROTOCOL


def _status_blocks(known: Mapping[str, JSONObject | None]) -> Iterator[Block]:
    if not known:
        yield Note("there are no credentials; sansmcp auth login URL gets them")
        return
    rows: list[tuple[str, ...]] = []
    for server, token in known.items():
        if token is None:
            rows.append((server, "none", "", ""))
        else:
            scopes = " ".join(as_text(scope) for scope in array_of(token.get("scopes")))
            rows.append((server, validity(token), as_text(token.get("issuer")), scopes))
    yield Table(("server", "token", "issuer", "scopes"), tuple(rows))


def validity(token: JSONObject) -> str:
    """How long a token is valid."""
    expires: Any = member(token, "expires_at")
    renewed = ", is renewed by itself" if member(token, "refreshes") is True else ""
    if not isinstance(expires, int | float):
        return f"no known end{renewed}"
    end = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{'until' if expires > time.time() else 'ended'} {end}{renewed}"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _without_query(url: str) -> str:
    """A URL without its query, which holds what is of use to nobody else."""
    return url.partition("?")[0]
