"""Checks the credentials of HTTP requests to a protected resource.

Source: MCP 2026-07-28, basic/authorization; RFC 6750; RFC 9449, section 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, final

import attrs

from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_clock, check_kind, check_mapping, check_whole
from .._common.addresses import read_url
from .._common.requests import HTTPRequest, RequestWanted
from .access_token import AccessToken
from .challenges import Refusal, invalid_proof, unavailable
from .claims import accept_claims
from .credentials import DPOP, Credentials, GivenHeaders, fields_of, read_credentials
from .events import AccessCheck, AccessEvent, AccessGranted, AccessRefused, TokenReceived
from .proofs import JudgedProof, ProofMemory, digest_of, judge_proof
from .protected_resource import ProtectedResource
from .verifiers import TokenVerifier, Verification


@attrs.define(eq=False, repr=False)
class _State:
    """What a check needs until it ends."""

    credentials: Credentials
    proof: JudgedProof | None
    verification: Verification | None = None


@final
class ResourceServer:
    """Checks who sends each HTTP request to an MCP server: a pure object without I/O.

    For each request, call `check`, then take events: what it asks for, and one ending. It fits the
    event `CredentialsReceived` of `sansmcp.http.ServerEndpoint`, and the verbs that answer it. One
    thread at a time may use it. Each object has its own memory of proofs: see `DPoP`.

    Args:
        resource: The server as OAuth sees it.
        verifier: Finds out what tokens say, as `sansmcp.auth.jose.JWTVerifier` or
            `IntrospectionVerifier` do; None: the application is asked, by `TokenReceived`.
        max_checks: Requests that are checked at a time; a further one gets 503. Those that were
            forgotten count until the verifier has ended with their tokens.

    Raises:
        ValueError: A setting is not valid.
    """

    __slots__ = (
        "_abandoned",
        "_checks",
        "_events",
        "_memory",
        "_resource",
        "_verifier",
        "max_checks",
    )

    def __init__(
        self,
        resource: ProtectedResource,
        verifier: TokenVerifier | None = None,
        *,
        max_checks: int = 10_000,
    ) -> None:
        check_kind("resource", resource, ProtectedResource)
        check_whole("max_checks", max_checks)
        self._resource: Final = resource
        self._verifier: Final = verifier
        self.max_checks: Final = max_checks
        self._events: Final[deque[AccessEvent]] = deque()
        self._checks: Final[set[AccessCheck]] = set()
        self._abandoned = 0  # tokens of forgotten checks that the verifier still has
        dpop = resource.dpop
        self._memory: Final = None if dpop is None else ProofMemory(dpop)

    @property
    def resource(self) -> ProtectedResource:
        """The server as OAuth sees it."""
        return self._resource

    @property
    def asks(self) -> bool:
        """Whether tokens are verified by the application, and not by a verifier."""
        return self._verifier is None

    @property
    def open_checks(self) -> int:
        """How many requests are being checked."""
        return len(self._checks)

    # ------------------------------------------------------------------ from the application

    def check(
        self,
        method: str,
        target: str,
        headers: GivenHeaders,
        *,
        at: float,
        data: Any = None,
    ) -> AccessCheck:
        """Check the credentials of a request, before anything else of it is looked at.

        Keeps AUTH-012, AUTH-332, AUTH-333, AUTH-335.

        Args:
            method: The method of the request.
            target: Path and query, as in the request line.
            headers: A mapping, or pairs, of names in any case and values.
            at: The time in Unix seconds.
            data: Becomes `AccessCheck.data`.

        Returns:
            The handle that the ending will carry. Never raises for what the peer did.
        """
        _check_time(at)
        self._expire(at)
        check = AccessCheck(None)
        check.data = data
        found = read_credentials(target, fields_of(headers), self._resource.schemes)
        proof: JudgedProof | Refusal | None = None
        if isinstance(found, Credentials):
            proof = self._judge_proof(found, method, target, at)
        if isinstance(found, Refusal):
            self._refuse(check, found)
        elif isinstance(proof, Refusal):
            self._refuse(check, proof, found.scheme)
        elif len(self._checks) + self._abandoned >= self.max_checks:
            self._refuse(check, unavailable(f"{self.max_checks} requests are being checked"))
        else:
            self._begin(check, _State(found, proof), at)
        return check

    def _judge_proof(
        self, credentials: Credentials, method: str, target: str, at: float
    ) -> JudgedProof | Refusal | None:
        dpop = self._resource.dpop
        if credentials.scheme != DPOP or dpop is None:
            return None
        if credentials.proof is None:
            return invalid_proof("the header DPoP with a proof is missing")
        resource = self._resource.resource
        # A proxy may leave out a part of the path, so the URL of the resource is right as well.
        urls = (resource, read_url(resource).origin + target.partition("?")[0])
        token = credentials.token
        return judge_proof(dpop, credentials.proof, method=method, urls=urls, token=token, at=at)

    def _begin(self, check: AccessCheck, state: _State, at: float) -> None:
        token, verification = state.credentials.token, None
        if self._verifier is not None:  # one of the application may raise
            state.verification = verification = self._verifier.begin(token, at=at)
            verification.data = check
        self._checks.add(check)
        check._state = state
        if verification is None:
            self._events.append(TokenReceived(check=check, token=token))
            return
        if verification.done:
            self._verified(verification, at)
        self._collect(at)

    def verified(
        self,
        check: AccessCheck,
        claims: Mapping[str, Any],
        *,
        needs_expiry: bool = True,
        at: float,
    ) -> bool:
        """Say what a token says, after it was verified: the answer to `TokenReceived`.

        Args:
            check: The request.
            claims: The claims: `iss`, `aud`, `exp`, `sub`, `client_id`, `scope`, `cnf`, ...
            needs_expiry: Whether `exp` must be there.
            at: The time in Unix seconds.

        Returns:
            Whether the check was open. It may have ended meanwhile, by `forget`.

        Raises:
            LocalProtocolError: The check is none of this server.
        """
        check_mapping("claims", claims)
        _check_time(at)
        state = self._state_of(check)
        if state is not None:
            self._judge(check, state, claims, needs_expiry, at)
        return state is not None

    def reject(self, check: AccessCheck, text: str = "the token is not valid") -> bool:
        """Say that a token is not valid: the client gets 401.

        Args:
            check: The request.
            text: One sentence for the client.

        Returns:
            Whether the check was open.

        Raises:
            LocalProtocolError: The check is none of this server.
        """
        state = self._state_of(check)
        if state is not None:
            refusal = Refusal(401, "invalid_token", text, "AUTH-010")
            self._refuse(check, refusal, state.credentials.scheme)
        return state is not None

    def fail(self, check: AccessCheck, text: str) -> bool:
        """Say that a token cannot be verified now: the client gets 503.

        Args:
            check: The request.
            text: What has failed, for `AccessRefused.cause`. The client does not see it.

        Returns:
            Whether the check was open.

        Raises:
            LocalProtocolError: The check is none of this server.
        """
        state = self._state_of(check)
        if state is not None:
            self._refuse(check, unavailable(_UNAVAILABLE), cause=text)
        return state is not None

    def forget(self, check: AccessCheck) -> bool:
        """End a check without an event: its client is gone.

        Returns:
            Whether the check was open.
        """
        was_open = self._state_of(check) is not None
        self._end(check)
        return was_open

    # -------------------------------------------------------------------- from the transport

    def receive_response(
        self,
        request: HTTPRequest,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        *,
        at: float,
    ) -> None:
        """Take the response to a request that `RequestWanted` has asked for.

        Args:
            request: The request.
            status: The status of the response.
            headers: Its headers.
            body: Its whole body.
            at: The time in Unix seconds.
        """
        _check_time(at)
        if self._verifier is not None:
            self._verifier.receive_response(request, status, headers, body, at=at)
            self._collect(at)

    def receive_failure(self, request: HTTPRequest, text: str, *, at: float) -> None:
        """A request that `RequestWanted` has asked for got no whole response.

        Args:
            request: The request.
            text: What has happened, for `AccessRefused.cause`.
            at: The time in Unix seconds.
        """
        _check_time(at)
        if self._verifier is not None:
            self._verifier.receive_failure(request, text, at=at)
            self._collect(at)

    def handle_timeout(self, at: float) -> None:
        """Let the time go on: a request that `RequestWanted` has asked for may have failed.

        `check` does that as well, so this is needed only where no further request may come.

        Args:
            at: The time in Unix seconds.
        """
        _check_time(at)
        self._expire(at)

    # ------------------------------------------------------------------------- to the caller

    def next_event(self) -> AccessEvent | None:
        """Take the next event; None means that there is nothing now."""
        return self._events.popleft() if self._events else None

    def next_timeout(self) -> float | None:
        """When `handle_timeout` is due, in Unix seconds; None: nothing waits."""
        return None if self._verifier is None else self._verifier.next_timeout()

    # ------------------------------------------------------------------------------- judging

    def _expire(self, at: float) -> None:
        if self._verifier is not None:
            self._verifier.handle_timeout(at)
            self._collect(at)

    def _collect(self, at: float) -> None:
        verifier = self._verifier
        assert verifier is not None  # whoever calls this has used it
        while (request := verifier.next_request()) is not None:
            self._events.append(RequestWanted(request=request))
        while (verification := verifier.next_ended()) is not None:
            self._verified(verification, at)

    def _verified(self, verification: Verification, at: float) -> None:
        check: AccessCheck = verification.data
        state = check._state
        if not check.open:
            self._abandoned -= 1
            return
        if verification.claims is not None:
            self._judge(check, state, verification.claims, verification.needs_expiry, at)
        elif verification.rejection is not None:
            self.reject(check, verification.rejection)
        else:
            self.fail(check, verification.failure or "")

    def _judge(
        self,
        check: AccessCheck,
        state: _State,
        claims: Mapping[str, Any],
        needs_expiry: bool,
        at: float,
    ) -> None:
        credentials, proof = state.credentials, state.proof
        found = accept_claims(
            self._resource,
            claims,
            digest=digest_of(credentials.token),
            scheme=credentials.scheme,
            thumbprint=None if proof is None else proof.thumbprint,
            needs_expiry=needs_expiry,
            at=at,
        )
        if isinstance(found, AccessToken) and proof is not None:
            assert self._memory is not None  # or there would be no proof
            found = self._memory.accept(proof, at) or found
        if isinstance(found, Refusal):
            self._refuse(check, found, credentials.scheme)
            return
        self._end(check)
        self._events.append(AccessGranted(check=check, token=found))

    def _refuse(
        self, check: AccessCheck, refusal: Refusal, scheme: str | None = None, cause: str = ""
    ) -> None:
        self._end(check)
        headers: list[tuple[str, str]] = []
        if refusal.retry_after is not None:
            headers.append(("retry-after", str(refusal.retry_after)))
        else:
            value = self._resource.challenge(
                refusal.error, refusal.text, scopes=refusal.scopes, scheme=scheme
            )
            headers.append(("www-authenticate", value))
        if refusal.nonce is not None:
            headers.append(("dpop-nonce", refusal.nonce))
        self._events.append(
            AccessRefused(
                check=check,
                status=refusal.status,
                text=refusal.text,
                headers=tuple(headers),
                error=refusal.error,
                rule=refusal.rule,
                cause=cause,
            )
        )

    def _end(self, check: AccessCheck) -> None:
        state: _State | None = check._state
        verification = None if state is None else state.verification
        if verification is not None and not verification.done:
            self._abandoned += 1
        check._open, check._state = False, None
        self._checks.discard(check)

    def _state_of(self, check: AccessCheck) -> _State | None:
        """The state of a check that is open; None: it has ended."""
        if not check.open:
            return None
        if check not in self._checks:
            raise LocalProtocolError("OWN-022", f"{check!r} belongs to another server")
        state: _State = check._state
        return state


def _check_time(at: float) -> None:
    """Raise `ValueError` unless a time is a finite number: no token would expire by NaN."""
    check_clock("at", at)
    if not isfinite(at):
        raise ValueError(f"at must be a finite number of seconds, not {at!r}")


_UNAVAILABLE: Final = "the token cannot be verified now: try again later"
