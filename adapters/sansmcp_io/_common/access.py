"""The check of the tokens that come to a server over HTTP, as all adapters share it.

The rules are those of `sansmcp.auth.ResourceServer`. Programs that check no tokens import nothing
of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, final

from .anomalies import LOGGER, RecordLimit, printable
from .errors import AccessDenied, check_extra
from .one_shot import NoResponse, texts_of

if TYPE_CHECKING:
    from sansmcp import JSONObject
    from sansmcp.auth import (
        AccessCheck,
        AccessRefused,
        AccessToken,
        HTTPRequest,
        ProtectedResource,
        ResourceServer,
    )

    from .one_shot import OneShotResponse

Claims: TypeAlias = Mapping[str, Any]
VerifyToken: TypeAlias = Callable[[str], Claims | Awaitable[Claims | None] | None]
"""From an access token to its claims; None for a token that is not valid."""

CHECK: Final = "the check of a token"
"""What has failed or taken too long, for the log."""
_UNAVAILABLE: Final = 503
_CARRIED: Final = ("key", "issuer", "subject", "client_id", "expires_at", "scheme")


@final
class PendingAccess:
    """The check of one request, until it has ended: the `data` of its `AccessCheck`.

    Attributes:
        check: The handle of the check.
        token: The token that the application has to verify; None: a verifier does that.
        error: What `verify_token` has raised.
        has_ended: Whether `outcome` may be called.
        wake: Called when the check ends, if it is set before.
    """

    def __init__(self) -> None:
        self.check: AccessCheck | None = None
        self.token: str | None = None
        self.error: Exception | None = None
        self.wake: Callable[[], object] | None = None
        self._granted: AccessToken | None = None
        self._refused: AccessRefused | None = None

    @property
    def has_ended(self) -> bool:
        return self._granted is not None or self._refused is not None

    def end(self, granted: AccessToken | None, refused: AccessRefused | None) -> None:
        """The check has ended in one of two ways."""
        self._granted, self._refused = granted, refused
        if self.wake is not None:
            self.wake()

    def outcome(self) -> AccessToken:
        """Return the principal of the request, after the end.

        Raises:
            AccessDenied: The request must not be served.
        """
        if self._granted is not None:
            return self._granted
        refused = self._refused
        assert refused is not None  # or it has not ended
        raise AccessDenied(refused.status, refused.text, refused.headers)


@final
class AccessChecks:
    """The checks of the requests of a server: what they need, and how they end.

    It waits for nothing. One thread at a time may use it.

    Drivers need not call `ResourceServer.handle_timeout`: each request of a verifier is made at
    once, beside the checks that wait for it, and its sender reports a response or a failure within
    `HTTPRequest.timeout`, also if it is cancelled. A check waits no longer than `lookup_timeout`.

    Args:
        server: Checks tokens.
    """

    def __init__(self, server: ResourceServer) -> None:
        self._server: Final = server
        self._requests: list[HTTPRequest] = []
        # Clients without a valid token must not fill the log while nothing can be verified.
        self._failures: Final = RecordLimit("failed checks of tokens")

    def begin(self, method: str, target: str, headers: Any) -> PendingAccess:
        """Begin to check a request. That may be its end, too.

        Args:
            method: The method.
            target: Path and query, as the client sees them.
            headers: A mapping or pairs of names and values.
        """
        pending = PendingAccess()
        at = time.time()
        pending.check = self._server.check(method, target, headers, at=at, data=pending)
        self._turn()
        return pending

    def forget(self, pending: PendingAccess) -> None:
        """End a check whose outcome is of no interest any more, if it has not ended."""
        assert pending.check is not None
        self._server.forget(pending.check)

    # ----------------------------------------------------------------- by the application

    def provide(self, pending: PendingAccess, claims: object) -> None:
        """End a check by what `verify_token` has returned."""
        assert pending.check is not None
        if claims is None:
            self._server.reject(pending.check)
        elif isinstance(claims, Mapping):
            # `isinstance` does not tell the types of keys and values; the server checks them.
            self._server.verified(pending.check, claims, at=time.time())  # pyright: ignore[reportUnknownArgumentType]
        else:  # its value is not in the text, since it may be the token
            kind = type(claims).__name__
            self.fail(
                pending, TypeError(f"verify_token returned {kind}, and not a mapping or None")
            )
        self._turn()

    def fail(self, pending: PendingAccess, error: Exception) -> None:
        """End a check since `verify_token` has raised an exception."""
        assert pending.check is not None
        pending.error = error
        self._server.fail(pending.check, "verify_token failed")
        self._turn()

    # ---------------------------------------------------------------------- by a verifier

    def take_requests(self) -> list[HTTPRequest]:
        """Take the requests that the verifier needs. For each, call one of the next two methods."""
        requests, self._requests = self._requests, []
        return requests

    def receive_response(self, request: HTTPRequest, response: OneShotResponse) -> None:
        """Take the response to a request of the verifier."""
        headers = texts_of(response.headers)
        receive = self._server.receive_response
        self._tell(receive, request, response.status, headers, response.body)

    def receive_failure(self, request: HTTPRequest, error: Exception) -> None:
        """Take the news that a request of the verifier has no response."""
        text = str(error)
        if not isinstance(error, NoResponse):
            LOGGER.error("a request to %s failed", request.url, exc_info=error)
            text = "the request could not be made"
        self._fail(request, text)

    def abandon(self, request: HTTPRequest) -> None:
        """A request of the verifier was cancelled: those that would follow are not made either.

        The verifier may outlive the loop of this server, and would wait for them.
        """
        self._fail(request, "the server ends")
        while requests := self.take_requests():
            for following in requests:
                self._fail(following, "the server ends")

    def _fail(self, request: HTTPRequest, text: str) -> None:
        self._tell(self._server.receive_failure, request, text)

    def _tell(self, method: Callable[..., object], *args: object) -> None:
        """Tell the verifier of the end of a request. If it raises, its checks wait in vain."""
        try:
            method(*args, at=time.time())
        except Exception as error:  # of a verifier of the application
            LOGGER.error("the verifier of tokens failed", exc_info=error)
        self._turn()

    def _turn(self) -> None:
        """Handle all events of the server."""
        # Imported here: a program that checks tokens has imported it.
        from sansmcp.auth import AccessGranted, AccessRefused, RequestWanted, TokenReceived

        while (event := self._server.next_event()) is not None:
            match event:
                case RequestWanted():
                    self._requests.append(event.request)
                case TokenReceived():
                    event.check.data.token = event.token
                case AccessGranted():
                    event.check.data.end(event.token, None)
                case AccessRefused():
                    self._note(event)
                    event.check.data.end(None, event)
                case _:
                    assert_never(event)

    def _note(self, refused: AccessRefused) -> None:
        if refused.status != _UNAVAILABLE:
            text = printable(refused.text)
            LOGGER.debug("a request was refused by %s: %s", refused.rule, text)
        elif self._failures.admits(time.monotonic()):
            text, error = printable(refused.cause or refused.text), refused.check.data.error
            LOGGER.error("an access token could not be verified: %s", text, exc_info=error)


def check_access(
    access: ResourceServer | None,
    verify_token: object,
    *,
    authenticate: object,
    principal_key: object,
) -> None:
    """Refuse options about the check of tokens that contradict each other.

    Raises:
        ValueError: They do; the text says what to change.
        ModuleNotFoundError: A verifier needs the extra `h11` for its requests.
    """
    if access is None:
        if verify_token is not None:
            raise ValueError("verify_token is for access=ResourceServer(...), which is missing")
        return
    # Imported here: a program with such an option has imported it.
    from sansmcp.auth import ResourceServer

    if not isinstance(access, ResourceServer):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ValueError(f"access must be a sansmcp.auth.ResourceServer, not {access!r:.80}")
    for name, value in (("authenticate", authenticate), ("principal_key", principal_key)):
        if value is not None:
            raise ValueError(f"access says who sends a request: leave out {name}")
    if access.asks and verify_token is None:
        raise ValueError(
            "nothing verifies tokens: give ResourceServer a verifier, such as"
            " sansmcp.auth.jose.JWTVerifier, or give verify_token="
        )
    if not access.asks:
        if verify_token is not None:
            raise ValueError("the ResourceServer has a verifier: leave out verify_token")
        check_extra("h11")


# --------------------------------------------------------------------- tokens as principals


def token_key(token: AccessToken) -> str:
    """The key of a token that is a principal: see `PrincipalKey`."""
    return token.key


def dump_token(token: AccessToken) -> JSONObject:
    """A token that is a principal as a JSON value, for another worker of a cluster.

    Raises:
        TypeError: `verify_token` has returned claims that have no JSON form.
    """
    members: JSONObject = {name: getattr(token, name) for name in _CARRIED}
    claims = json.loads(json.dumps(dict(token.claims)))
    return {**members, "scopes": sorted(token.scopes), "claims": claims}


def load_token(resource: ProtectedResource, value: Any) -> AccessToken:
    """The token that `dump_token` has turned into a value, in a worker with the same resource."""
    from sansmcp.auth import AccessToken

    members = {name: value[name] for name in _CARRIED}
    scopes, claims = frozenset(value["scopes"]), value["claims"]
    return AccessToken(**members, scopes=scopes, claims=claims, resource=resource)
