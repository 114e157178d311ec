"""What all parts of an `AuthorizationClient` share: settings, clock, events, the attempt."""

from __future__ import annotations

from binascii import b2a_base64
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import attrs

from ..._spec.errors import LocalProtocolError
from ..._wire.setting_checks import check_clock
from .._common.addresses import AddressRules, WebURL
from .._common.requests import HTTPRequest, HTTPResponse, RequestWanted
from .events import (
    AssertionWanted,
    Attempt,
    AuthorizationEvent,
    AuthorizationFailed,
    AuthorizationFailure,
    AuthorizationStep,
    Authorized,
    ClientWanted,
    LoggedOut,
    StepOutcome,
    StepTaken,
    UserAgentWanted,
)
from .states import AUTHORIZATION, AuthorizationTrigger

if TYPE_CHECKING:
    from .settings import AssertionSigner, AuthorizationConfig, ProofSigner

T = TypeVar("T")

Entropy: TypeAlias = Callable[[int], bytes]
"""Gives as many unguessable bytes as it is asked for, such as `secrets.token_bytes`."""

_WANTED: Final = (RequestWanted, UserAgentWanted, ClientWanted, AssertionWanted)


class Refused(Exception):
    """What a server sent cannot be used, and the attempt ends. The text holds no secret."""

    def __init__(self, reason: AuthorizationFailure, text: str, rule: str | None = None) -> None:
        super().__init__(text)
        self.reason: Final = reason
        self.rule: Final = rule


def call(make: Callable[[], T]) -> T:
    """Call something that uses the signer or the entropy of the application.

    Raises:
        Refused: It has raised. The text does not repeat the message, which may hold a secret.
    """
    try:
        return make()
    except Refused:
        raise
    except Exception as error:
        raise Refused(
            AuthorizationFailure.UNSUPPORTED,
            "the request cannot be made: a signer, the entropy or a value of the application "
            f"has failed with {type(error).__name__}",
        ) from error


class Requester(Protocol):
    """The part that has asked for an HTTP request."""

    def receive(self, request: HTTPRequest, response: HTTPResponse) -> None:
        """Judge the response."""
        ...

    def receive_failure(self, request: HTTPRequest, text: str) -> None:
        """Go on without a response."""
        ...


def base64url(data: bytes) -> str:
    """The text of bytes in a URL, without padding (RFC 7636, appendix A)."""
    text = b2a_base64(data, newline=False).decode()
    return text.rstrip("=").replace("+", "-").replace("/", "_")


@attrs.define(eq=False, repr=False)
class Core:
    """The common state of the parts.

    Attributes:
        server: The URL of the MCP server.
        attempt: The attempt that is running; None between attempts.
        step: The step that the attempt is at, for an ending from outside.
        deadline: The time at which the attempt stops waiting, on the caller's clock.
    """

    server: WebURL
    addresses: AddressRules
    config: AuthorizationConfig
    proofs: ProofSigner | None
    assertions: AssertionSigner | None
    _entropy: Entropy
    events: deque[AuthorizationEvent] = attrs.field(factory=deque[AuthorizationEvent], init=False)
    attempt: Attempt | None = attrs.field(default=None, init=False)
    step: AuthorizationStep = attrs.field(default=AuthorizationStep.CHALLENGE, init=False)
    deadline: float | None = attrs.field(default=None, init=False)
    _request: HTTPRequest | None = attrs.field(default=None, init=False)
    _requester: Requester | None = attrs.field(default=None, init=False)
    _now: float = attrs.field(default=-inf, init=False)
    _wall_offset: float = attrs.field(default=0.0, init=False)  # Unix time minus `now`

    # ------------------------------------------------------------------------------ time, entropy

    def tell(self, now: float | None) -> None:
        """Set the clock forward; a smaller time or None leaves it."""
        if now is not None:
            check_clock("now", now)
            if now > self._now:
                self._now = now

    def tell_wall_clock(self, at: float) -> None:
        """Note the Unix time that belongs to the time that was told last."""
        self._wall_offset = at - self._now

    @property
    def now(self) -> float:
        """The time on the caller's clock."""
        return self._now

    @property
    def at(self) -> float:
        """The Unix time, which advances with the caller's clock."""
        return self._now + self._wall_offset

    def draw(self, size: int = 32) -> str:
        """A new unguessable text. Keeps AUTH-235, AUTH-239.

        Raises:
            LocalProtocolError: The entropy of the caller has another length.
        """
        data: Any = self._entropy(size)  # callers may have no types
        if not isinstance(data, bytes) or len(data) != size:
            raise LocalProtocolError("AUTH-235", f"entropy({size}) must give {size} bytes")
        return base64url(data)

    # ---------------------------------------------------------------------------------- the attempt

    @property
    def running(self) -> Attempt:
        """The attempt that is running."""
        assert self.attempt is not None
        return self.attempt

    def move(self, trigger: AuthorizationTrigger, step: AuthorizationStep) -> None:
        """Take a step of the table of states."""
        self.running._state = AUTHORIZATION[self.running.state, trigger]
        self.step = step
        self._request = self._requester = self.deadline = None

    def wait_for_user(self) -> None:
        """Wait until the time that the user may take is over."""
        self.deadline = self._now + self.config.user_timeout

    def ask(
        self,
        requester: Requester,
        method: str,
        url: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes = b"",
        *,
        addresses: AddressRules | None = None,
    ) -> None:
        """Ask the driver for an HTTP request, and wait for its end. Keeps AUTH-345."""
        request = HTTPRequest(
            method=method,
            url=url,
            headers=headers,
            body=body,
            max_body_bytes=self.config.max_document_bytes,
            timeout=self.config.request_timeout,
            addresses=addresses or self.addresses,
        )
        self._request, self._requester = request, requester
        self.deadline = self._now + request.timeout
        self.events.append(RequestWanted(request=request))

    def take(self, request: HTTPRequest) -> Requester | None:
        """Stop waiting for a request; None if it is not waited for (any longer)."""
        if request is not self._request:
            return None
        requester = self._requester
        self._request = self._requester = self.deadline = None
        return requester

    @property
    def is_due(self) -> bool:
        """Whether a wait has a deadline that has come."""
        return self.deadline is not None and self._now >= self.deadline

    def expire(self, more: str) -> None:
        """End the wait whose deadline has come.

        Args:
            more: What else there is to say if an answer of the application is waited for.
        """
        request = self._request
        if request is None:
            text = f"no answer within {self.config.user_timeout:g} seconds{more}"
            self.fail(AuthorizationFailure.TIMED_OUT, text)
        else:
            requester = self.take(request)
            assert requester is not None  # it is set together with the request
            requester.receive_failure(request, f"no response within {request.timeout:g} seconds")

    # ---------------------------------------------------------------------------------- the endings

    def note(
        self,
        outcome: StepOutcome,
        tried: str,
        conclusion: str,
        *,
        step: AuthorizationStep | None = None,
        rule: str | None = None,
        url: str | None = None,
        status: int | None = None,
    ) -> None:
        """Report a step."""
        self.events.append(
            StepTaken(
                step=step or self.step,
                outcome=outcome,
                tried=tried,
                url=url,
                status=status,
                conclusion=conclusion,
                rule=rule,
            )
        )

    def succeed(self, issuer: str, scopes: tuple[str, ...], expires_at: float | None) -> None:
        """End the attempt with a token."""
        attempt = self._end(AuthorizationTrigger.SUCCEED)
        self.events.append(
            Authorized(attempt=attempt, issuer=issuer, scopes=scopes, expires_at=expires_at)
        )

    def log_out(self, issuer: str | None) -> None:
        """End an attempt to log out."""
        attempt = self._end(AuthorizationTrigger.LOG_OUT)
        self.events.append(LoggedOut(attempt=attempt, issuer=issuer))

    def fail(
        self,
        reason: AuthorizationFailure,
        text: str,
        rule: str | None = None,
        *,
        error: str | None = None,
    ) -> None:
        """End the attempt without a token."""
        attempt = self._end(AuthorizationTrigger.FAIL)
        self.events.append(
            AuthorizationFailed(
                attempt=attempt,
                step=self.step,
                reason=reason,
                text=text,
                rule=rule,
                error=error,
                issuer=attempt.issuer,
            )
        )

    def _end(self, trigger: AuthorizationTrigger) -> Attempt:
        attempt = self.running
        self.move(trigger, self.step)
        self.attempt = None
        # What was not made yet is not made any more.
        self.events = deque(event for event in self.events if not isinstance(event, _WANTED))
        return attempt
