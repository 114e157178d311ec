"""The exceptions of all adapters, the same on every loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sansmcp import MISSING, JSONValue

from .stderr import StderrTail

if TYPE_CHECKING:
    from sansmcp import ConnectionFailed
    from sansmcp.auth import AuthorizationFailure, AuthorizationStep
    from sansmcp.http import Challenge


class McpError(Exception):
    """Raised by a handler to answer a request with this error.

    Attributes:
        code: A JSON-RPC error code.
        message: One concise sentence, for the peer.
        data: Any JSON value for the peer; left out if not given.
    """

    def __init__(self, code: int, message: str, data: Any = MISSING) -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class PeerError(Exception):
    """The peer answered a request of this side with an error.

    Attributes:
        code: The JSON-RPC error code.
        message: The peer's sentence.
        data: The `data` of the error, or None.
        text: One sentence on what the error means to this side, where there is more to say.
        status: The HTTP status of the response that brought the error; None elsewhere.
        retry_after: Seconds after which the request may be sent again, if the server said so.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: JSONValue = None,
        text: str | None = None,
        *,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data
        self.text: Final = text
        self.status: Final = status
        self.retry_after: Final = retry_after

    def __str__(self) -> str:
        return self.text or f"{self.message} ({self.code})"


class InvalidAnswer(Exception):
    """The peer's response is not valid, or its listing does not end.

    Attributes:
        result: The `result` member of the response, if a request has failed by it and it has
            one; else None.
    """

    def __init__(self, text: str, result: JSONValue = None) -> None:
        super().__init__(text)
        self.result: Final = result


class RequestTimeout(TimeoutError):
    """A request, or the start, was not answered in time."""


class ConnectionLost(ConnectionError):
    """The connection ended before a request was answered: the peer may have run it.

    The cause (`__cause__`) is set in two cases. If the session was lost over HTTP and no new one
    could be opened, it is what the start would have raised, such as `RequestRefused`. If an event
    hook or `auth=` of your httpx2 client has raised an exception, it is that exception.
    """

    _tail: StderrTail | None = None

    @property
    def stderr(self) -> str:
        """The end of the standard error of the server process, if it was captured.

        It may grow after the connection has ended, until the process has.
        """
        return "" if self._tail is None else self._tail.text

    @property
    def exit_status(self) -> int | None:
        """The exit status of the server process, or minus the signal that has ended it.

        None if there is no process, or as long as it has not been waited for: that is done
        when the block of `connect_stdio` is left, or a new process is started.
        """
        return None if self._tail is None else self._tail.exit_status


class TaskCancelledError(Exception):
    """The task that a request had become was cancelled: by the server, or by this side."""


class TaskLost(Exception):
    """The server does not have the task: its time is over, or its id is not known.

    Ids are known to the server that made them, and there to the principal that they were made for.
    """


class Refusal(NamedTuple):
    """The status and headers with which a server over HTTP has refused a request.

    Attributes:
        status: The status of the response.
        challenges: The challenges of `WWW-Authenticate`.
        retry_after: The seconds of `Retry-After`.
        cause: The exception that `on_unauthorized` has raised.
        opening: Why no session could be opened in the place of a lost one.
        may_have_run: The server may have run the request before its session was lost.
        hook_error: The exception that a hook of the httpx2 client has raised.
    """

    status: int | None = None
    challenges: Sequence[Challenge] = ()
    retry_after: float | None = None
    cause: Exception | None = None
    opening: ConnectionFailed | None = None
    may_have_run: bool = False
    hook_error: BaseException | None = None


class RequestRefused(ConnectionError):
    """A server over HTTP has refused the request with a status, and without a JSON-RPC error.

    Or the session was lost before the server ran the request, and the server has refused to open a
    new one. An exception that `on_unauthorized` has raised is the cause (`__cause__`).

    Attributes:
        status: The status; None where it is not known.
        challenges: The challenges of `WWW-Authenticate`, with 401 and 403.
        retry_after: Seconds after which the request may be sent again, if the server said so.
    """

    def __init__(
        self,
        text: str,
        status: int | None = None,
        challenges: Sequence[Challenge] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text)
        self.status: Final = status
        self.challenges: Final = tuple(challenges)
        self.retry_after: Final = retry_after


class AuthorizationError(Exception):
    """A client was not authorized: its attempt has ended without a token.

    It is the cause (`__cause__`) of the `RequestRefused` of each request that needed the token.

    Attributes:
        text: What happened, and what to change.
        step: The step at which the attempt ended; None if it did not begin.
        reason: The reason; None if it did not begin.
        rule: The id of the rule that decided; None where no rule did.
        error: The OAuth error code of the authorization server; None without one.
        issuer: The authorization server; None if it is not known.
    """

    def __init__(
        self,
        text: str,
        step: AuthorizationStep | None = None,
        reason: AuthorizationFailure | None = None,
        *,
        rule: str | None = None,
        error: str | None = None,
        issuer: str | None = None,
    ) -> None:
        super().__init__(text)
        self.text: Final = text
        self.step: Final = step
        self.reason: Final = reason
        self.rule: Final = rule
        self.error: Final = error
        self.issuer: Final = issuer


class CallCancelled(Exception):
    """The peer has cancelled the call that a handler works on, or has disconnected.

    Raised without a loop, by methods of the call that wait.
    """


class StartFailed(ConnectionError):
    """The peer lacks a common revision or a required capability."""


class Unauthorized(Exception):
    """Raised by `authenticate` for a request that must not be served.

    Attributes:
        challenge: The header `WWW-Authenticate`, such as `Bearer resource_metadata="https://..."`.
        status: 401 if credentials are missing or not valid; 403 if they do not suffice.
        text: One sentence, for the client.
    """

    def __init__(
        self, challenge: str, *, status: int = 401, text: str = "authorization is required"
    ) -> None:
        super().__init__(challenge, status, text)
        self.challenge: Final = challenge
        self.status: Final = status
        self.text: Final = text

    def __str__(self) -> str:
        return f"{self.text} ({self.status})"


class InsufficientScope(Exception):
    """Raised by a handler: the credentials of the client lack scopes that this request needs.

    Over HTTP the client gets 403 with a challenge that names the scopes, and may ask the user for
    them. Where its response has begun as a stream, and without HTTP, it gets a JSON-RPC error.

    Attributes:
        scopes: All scopes that the request needs, not only those that are missing.
        text: One sentence, for the client.
    """

    def __init__(
        self,
        scopes: Iterable[str],
        text: str = "the token lacks a scope that this request needs",
    ) -> None:
        self.scopes: Final = (scopes,) if isinstance(scopes, str) else tuple(scopes)
        self.text: Final = text
        super().__init__(self.scopes, text)

    def __str__(self) -> str:
        return f"{self.text}: {' '.join(self.scopes)}"


class AccessDenied(Exception):
    """A request must not be served, as the check of its credentials says.

    Attributes:
        status: The status of the response.
        text: One sentence, for the client.
        headers: Names and values: the challenge, and others.
    """

    def __init__(self, status: int, text: str, headers: Sequence[tuple[str, str]]) -> None:
        super().__init__(status, text)
        self.status: Final = status
        self.text: Final = text
        self.headers: Final = tuple(headers)


def check_extra(name: str, package: str = "") -> None:
    """Import the package of an extra, which has the same name if nothing else is said.

    Raises:
        ModuleNotFoundError: The package is not installed, or lacks a package itself.
    """
    try:
        import_module(package or name)
    except ModuleNotFoundError as error:
        raise without_extra(name, error, package=package) from None


def without_extra(
    name: str, error: ModuleNotFoundError, *, package: str = ""
) -> ModuleNotFoundError:
    """Return the exception for the package of an extra that cannot be imported."""
    package = package or name
    if error.name != package:
        return error  # the package is installed, and lacks a package itself
    text = f"this part of sansmcp needs {package}: pip install 'sansmcp[{name}]'"
    return ModuleNotFoundError(text, name=package, path=error.path)
