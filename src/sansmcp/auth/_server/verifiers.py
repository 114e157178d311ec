"""What finds out what an access token says: a verifier, which may need HTTP requests for that."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, final

from .._common.requests import HTTPRequest

_ROUNDING: Final = 0.001  # seconds


@final
class Verification:
    """One token that is being verified. It ends once, in one of three ways.

    Attributes:
        claims: The claims of the token, once it was verified; else None.
        needs_expiry: Whether the token must say when it expires. It need not where its issuer has
            just said that it is active.
        rejection: Why the token is not accepted, in one sentence; else None.
        failure: Why the token cannot be verified now, in one sentence; else None.
        data: Anything; the slot is that of the object that has begun the verification.
    """

    __slots__ = ("claims", "data", "failure", "needs_expiry", "rejection", "token")

    def __init__(self, token: str) -> None:
        self.token: Final = token
        self.claims: Mapping[str, Any] | None = None
        self.needs_expiry: bool = True
        self.rejection: str | None = None
        self.failure: str | None = None
        self.data: Any = None

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return not (self.claims is None and self.rejection is None and self.failure is None)

    def __repr__(self) -> str:
        return f"<Verification done={self.done}>"


class TokenVerifier(Protocol):
    """Verifies access tokens. It is pure: what it has to ask others for is an HTTP request.

    `ResourceServer` takes its requests and endings after each call. Several requests may be under
    way at the same time, and be answered in any order; an answer that comes twice, or after its
    request has timed out, changes nothing. Each verification ends, if the time is told.
    """

    def begin(self, token: str, *, at: float) -> Verification:
        """Begin to verify a token. The verification may be done at once.

        Args:
            token: The token, of at most some thousand characters.
            at: The time in Unix seconds.
        """
        ...

    def receive_response(
        self,
        request: HTTPRequest,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        *,
        at: float,
    ) -> None:
        """Take the response to one of the requests. Never raises for what it is."""
        ...

    def receive_failure(self, request: HTTPRequest, text: str, *, at: float) -> None:
        """A request got no response; the text says why."""
        ...

    def handle_timeout(self, at: float) -> None:
        """Let the time go on: requests that were not answered in time have failed."""
        ...

    def next_timeout(self) -> float | None:
        """When `handle_timeout` is due, in Unix seconds; None: no request is under way."""
        ...

    def next_request(self) -> HTTPRequest | None:
        """Take the next request to make; None: there is none now."""
        ...

    def next_ended(self) -> Verification | None:
        """Take the next verification that was not done when it began, and is now; None: none is."""
        ...


class SteadyClock:
    """A count of seconds that follows the caller's clock, except backwards.

    The time of day may be put back; what was to be over by then must not last longer for that.

    Attributes:
        now: Seconds since the first time that was told.
    """

    __slots__ = ("_at", "now")

    def __init__(self) -> None:
        self._at: float | None = None
        self.now: float = 0.0

    def tell(self, at: float) -> float:
        """Go on to a time of the caller's clock, and return the count."""
        if self._at is not None:
            self.now += max(0.0, at - self._at)
        self._at = at
        return self.now

    def has_reached(self, count: float) -> bool:
        """Whether the count is reached, but for the rounding of sums."""
        return count - self.now < _ROUNDING

    def at(self, count: float) -> float:
        """The time of the caller's clock at which the count will be reached."""
        assert self._at is not None  # or there would be nothing to wait for
        return self._at + (count - self.now)


class VerifierOutput:
    """The requests and endings that a verifier has for others."""

    __slots__ = ("_ended", "_requests")

    def __init__(self) -> None:
        self._requests: deque[HTTPRequest] = deque()
        self._ended: deque[Verification] = deque()

    def want(self, request: HTTPRequest) -> None:
        """Have a request made."""
        self._requests.append(request)

    def end(self, verification: Verification) -> None:
        """A verification that has waited is done."""
        self._ended.append(verification)

    def next_request(self) -> HTTPRequest | None:
        """Take the next request."""
        return self._requests.popleft() if self._requests else None

    def next_ended(self) -> Verification | None:
        """Take the next verification that is done."""
        return self._ended.popleft() if self._ended else None
