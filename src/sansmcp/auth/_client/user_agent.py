"""The authorization request that a user agent opens, and the callback.

Source: MCP 2026-07-28, basic/authorization, Authorization Response Validation; RFC 6749, section
4.1; RFC 7636; RFC 9207.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs

from .._common.requests import printable
from .._common.scopes import OFFLINE_ACCESS
from .core import Core, Refused, base64url, call
from .credentials import Client
from .events import AuthorizationFailure, AuthorizationStep, StepOutcome, UserAgentWanted
from .server import ServerMetadata, slash_hint
from .states import AuthorizationTrigger

_TRIED: Final = "redirect back to the client"
_ONCE: Final = ("state", "iss", "error", "code")
_READ: Final = (*_ONCE, "error_description")
_VISIBLE: Final = re.compile(r"[\x20-\x7e]+")  # VSCHAR of RFC 6749, appendix A
_MAX_CALLBACK: Final = 65_536


class CodeReader(Protocol):
    """Takes the result."""

    def code_received(self, authorization: PendingAuthorization, code: str) -> None:
        """Go on with an authorization code."""
        ...


@attrs.frozen(kw_only=True)
class PendingAuthorization:
    """What belongs to one authorization request. Keeps AUTH-082, AUTH-243."""

    client: Client
    server: ServerMetadata
    issuer: str
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str = attrs.field(repr=False)
    verifier: str = attrs.field(repr=False)


def check_pkce(server: ServerMetadata, *, must_list: bool) -> None:
    """Refuse an authorization server that may not support PKCE with S256.

    Keeps AUTH-022, AUTH-073, AUTH-074, AUTH-236, AUTH-237.

    Raises:
        Refused: Its metadata does not list S256.
    """
    listed = server.challenge_methods
    if listed is None and must_list:
        text, rule = "`code_challenge_methods_supported` is missing in its metadata", "AUTH-073"
    elif listed is not None and "S256" not in listed:
        text, rule = "its `code_challenge_methods_supported` does not list S256", "AUTH-236"
    else:
        return
    raise Refused(
        AuthorizationFailure.PKCE_UNSUPPORTED,
        f"the authorization server {server.issuer} does not say that it supports PKCE: {text}",
        rule,
    )


@attrs.define(eq=False, repr=False)
class UserAuthorization:
    """Sends the user to the authorization server, and judges the callback."""

    _core: Core
    _reader: CodeReader
    _pending: PendingAuthorization | None = attrs.field(default=None, init=False)
    _logins: deque[float] = attrs.field(factory=deque[float], init=False)  # when each was begun

    def check_logins(self) -> None:
        """Check that the user may be asked once more. Keeps AUTH-304.

        Raises:
            Refused: The user was asked as often as is allowed.
        """
        core, logins = self._core, self._logins
        config = core.config
        while logins and logins[0] <= core.now - config.login_period:
            logins.popleft()
        if len(logins) >= config.max_logins:
            raise Refused(
                AuthorizationFailure.TOO_MANY_ATTEMPTS,
                f"the user was asked {len(logins)} times within {config.login_period:g} seconds, "
                "and is not asked again before that time is over",
                "AUTH-304",
            )

    def start(
        self,
        server: ServerMetadata,
        client: Client,
        redirect_uri: str,
        scopes: tuple[str, ...],
        resource: str | None,
    ) -> None:
        """Ask for the user agent. Keeps AUTH-045, AUTH-056, AUTH-215, AUTH-238, AUTH-263.

        Raises:
            Refused: The authorization endpoint cannot be used.
        """
        core, endpoint = self._core, server.authorization_endpoint
        if endpoint is None:
            raise Refused(
                AuthorizationFailure.INVALID_METADATA,
                f"`authorization_endpoint` is missing in the metadata of {server.issuer}",
                "AUTH-038",
            )
        pending = PendingAuthorization(
            client=client,
            server=server,
            issuer=server.issuer,
            redirect_uri=redirect_uri,
            scopes=scopes,
            state=call(core.draw),
            verifier=call(core.draw),
        )
        parameters = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect_uri,
            "state": pending.state,
            "code_challenge": base64url(sha256(pending.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        if resource is not None:
            parameters["resource"] = resource
        if scopes:
            parameters["scope"] = " ".join(scopes)
        if OFFLINE_ACCESS in scopes:  # OpenID Connect Core 1.0, section 11, ignores it otherwise
            parameters["prompt"] = "consent"
        url = _with_query(endpoint, parameters)
        core.move(AuthorizationTrigger.OPEN_USER_AGENT, AuthorizationStep.AUTHORIZATION)
        self._pending = pending
        self._logins.append(core.now)
        core.wait_for_user()
        text = f"as client {printable(client.client_id)}, with PKCE (S256)"
        core.note(StepOutcome.DONE, "URL for the user agent", text, rule="AUTH-022", url=endpoint)
        core.events.append(
            UserAgentWanted(url=url, redirect_uri=redirect_uri, issuer=server.issuer)
        )

    def receive_callback(self, url: str) -> bool:
        """Judge a callback; False if it does not belong to this request, which goes on.

        The order is: state, iss, error, code. Keeps AUTH-083, AUTH-084, AUTH-085, AUTH-086,
        AUTH-239, AUTH-240, AUTH-241, AUTH-242, AUTH-244.
        """
        core, pending = self._core, self._pending
        assert pending is not None
        query = url[:_MAX_CALLBACK].partition("#")[0].partition("?")[2]
        pairs = parse_qsl(query, keep_blank_values=True)
        values = {name: [value for other, value in pairs if other == name] for name in _READ}
        if values["state"] != [pending.state]:
            text = "ignored: its state is not that of this request"
            core.note(
                StepOutcome.SKIPPED,
                _TRIED,
                text,
                step=AuthorizationStep.CALLBACK,
                rule="AUTH-056",
            )
            return False
        self._pending = None
        core.step = AuthorizationStep.CALLBACK
        try:
            code = _read_code(values, pending)
        except _CallbackRefused as refused:
            core.note(StepOutcome.FAILED, _TRIED, str(refused), rule=refused.rule)
            core.fail(refused.reason, f"callback: {refused}", refused.rule, error=refused.error)
            return True
        text = "state and issuer are those of this request"
        core.note(StepOutcome.DONE, _TRIED, text, rule="AUTH-083")
        self._reader.code_received(pending, code)
        return True


class _CallbackRefused(Refused):
    def __init__(
        self, reason: AuthorizationFailure, text: str, rule: str, error: str | None = None
    ) -> None:
        super().__init__(reason, text, rule)
        self.error: Final = error


def _read_code(values: dict[str, list[str]], pending: PendingAuthorization) -> str:
    failure = AuthorizationFailure
    for name in _ONCE:
        if len(values[name]) > 1:
            text = f"the parameter {name} comes more than once"
            raise _CallbackRefused(failure.INVALID_CALLBACK, text, "AUTH-240")
    issuer = next(iter(values["iss"]), None)
    if issuer is None and pending.server.sends_issuer:
        text = "`iss` is missing, although the metadata promises it"
        raise _CallbackRefused(failure.ISSUER_MISMATCH, text, "AUTH-084")
    if issuer is not None and issuer != pending.issuer:
        hint = slash_hint(issuer, (pending.issuer,)) or ": the response comes from another server"
        text = f"`iss` is not {pending.issuer}{hint}"
        raise _CallbackRefused(failure.ISSUER_MISMATCH, text, "AUTH-083")
    if values["error"]:
        secrets = [*values["code"], pending.state, pending.verifier]
        error = printable(values["error"][0], secrets)
        reason = failure.DENIED if error == "access_denied" else failure.REFUSED
        said = printable(next(iter(values["error_description"]), ""), secrets)
        text = f"the authorization server answers with the error {error}"
        text += f" ({said})" if said else ""
        raise _CallbackRefused(reason, text, "AUTH-241", error)
    code = next(iter(values["code"]), "")
    if not _VISIBLE.fullmatch(code):
        text = "there is neither a code nor an error"
        raise _CallbackRefused(failure.INVALID_CALLBACK, text, "AUTH-241")
    return code


def _with_query(endpoint: str, parameters: dict[str, str]) -> str:
    query = urlsplit(endpoint).query
    given = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if twice := sorted(given & parameters.keys()):
        raise Refused(
            AuthorizationFailure.INVALID_METADATA,
            f"`authorization_endpoint` already has the parameter {twice[0]}",
            "AUTH-238",
        )
    separator = "?" if "?" not in endpoint else ("&" if query else "")
    return endpoint + separator + urlencode(parameters)
