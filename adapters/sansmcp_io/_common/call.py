"""Functions of the application: what a handler is given, and what becomes of what it returns."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import attrs

from sansmcp import (
    MODERN_REVISIONS,
    ClientConnection,
    ErrorCode,
    IncomingRequest,
    JSONObject,
    JSONValue,
    LocalProtocolError,
    OutgoingRequest,
    ServerConnection,
)

from .anomalies import LOGGER
from .errors import McpError

if TYPE_CHECKING:
    from sansmcp.http import ClientEndpoint, ServerEndpoint


ServerSide: TypeAlias = "ServerConnection | ServerEndpoint"
ClientSide: TypeAlias = "ClientConnection | ClientEndpoint"
Side: TypeAlias = "ServerSide | ClientSide"
"""What answers requests: it has the same verbs wherever it is."""
RequestingSide: TypeAlias = "ClientSide | ServerConnection"
"""What asks requests, with the same verbs wherever it is."""

_NO_LOCK: Final = nullcontext()
INTERNAL_ERROR = "internal error"
"""All that the peer is told of an exception which is no `McpError`."""


@attrs.frozen
class RequireInput:
    """What a handler returns that has to ask the client before it can answer.

    The handler is called again when the answers are there: they are `call.input_responses` then,
    and the state is `call.state`. Clients of every revision are asked in the way they know.

    Attributes:
        questions: By keys of your choice, objects with `method` (`elicitation/create`,
            `sampling/createMessage` or `roots/list`) and `params`.
        state: A text to have again when the answers come. It goes through the client's hands:
            see `sansmcp.Config.state_keys`.
    """

    questions: Mapping[str, JSONObject] = attrs.field(factory=dict[str, JSONObject])
    state: str | None = None


class CallBase:
    """A request of the peer, and what can be said about it while it is being handled.

    Attributes:
        context: What the application gave to be handed to every call.
    """

    context: Any
    # The adapters of the loops set these, each in its own `__init__`.
    _connection: Side
    _request: IncomingRequest
    _clock: Callable[[], float]
    _wake: Callable[[], None]

    @property
    def _lock(self) -> AbstractContextManager[object]:
        """Held while the connection is used; for one that is used in one thread only, nothing."""
        return _NO_LOCK

    def _flush(self) -> None:
        """Write what was queued, where nobody else does that."""

    @property
    def method(self) -> str:
        """The method name."""
        return self._request.method

    @property
    def params(self) -> JSONObject:
        """The params object, `{}` where there was none. It belongs to the handler."""
        return self._request.params

    @property
    def meta(self) -> JSONObject:
        """The `_meta` member of the params, `{}` where there was none."""
        meta: JSONObject = self.params.get("_meta") or {}
        return meta

    @property
    def revision(self) -> str | None:
        """The revision that the request is served at."""
        return self._request.revision

    @property
    def capabilities(self) -> JSONObject:
        """The capabilities of the peer."""
        return self._request.peer_capabilities

    @property
    def principal(self) -> object:
        """Who the peer is, as the transport found out; None where it did not."""
        return self._request.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Tell the peer how far this has come. Never blocks; below WSGI it is written at once.

        Returns:
            Whether it will be sent: not if the peer asked for no progress, or the call is over.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        with self._lock:
            will_be_sent = self._connection.send_progress(
                self._request, progress, total=total, message=message, now=self._clock()
            )
            self._wake()
        self._flush()
        return will_be_sent

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._request!r}>"


class ServerCallBase(CallBase):
    """A client's request. Only servers send log messages, and ask before they answer."""

    @property
    def input_responses(self) -> JSONObject:
        """The client's answers to the questions of `RequireInput`, by key; `{}` at first."""
        return self._request.input_responses

    @property
    def log_level(self) -> str | None:
        """The least severe level the client wants logged, or None for no wish."""
        return self._request.log_level

    @property
    def state(self) -> str | None:
        """The state of the `RequireInput` that came before; None at first.

        Where it is sealed and the seal is bad, it is None, the client is told that its request is
        not valid, and what the handler answers is not sent.
        """
        connection = cast(ServerSide, self._connection)
        with self._lock:
            state = connection.read_state(self._request, at=time.time(), now=self._clock())
            self._wake()
        return state

    def log(self, level: str, data: JSONValue, *, logger: str | None = None) -> bool:
        """Send the client a log message that belongs to this call.

        Never blocks; below WSGI it is written at once.

        Args:
            level: One of `sansmcp.LOG_LEVELS`.
            data: What to log, any JSON value. It must hold no credentials.
            logger: The name of the logger.

        Returns:
            Whether it will be sent: not if it is below the client's level, or the call is over.

        Raises:
            LocalProtocolError: The level is unknown, or `logging` is not among the capabilities.
        """
        connection = cast(ServerSide, self._connection)
        with self._lock:
            will_be_sent = connection.send_log(
                level, data, logger=logger, request=self._request, now=self._clock()
            )
            self._wake()
        self._flush()
        return will_be_sent


def answer(
    connection: Side,
    request: IncomingRequest,
    result: JSONObject | RequireInput,
    now: float,
) -> None:
    """Send what a handler returned. A result that cannot be sent is the handler's fault."""
    if not request.open:
        return  # it was cancelled, or refused because of its state
    try:
        if isinstance(result, RequireInput) and hasattr(connection, "require_input"):
            server = cast(ServerSide, connection)
            server.require_input(
                request, result.questions, state=result.state, at=time.time(), now=now
            )
        else:
            connection.send_result(request, cast(JSONObject, result), now=now)
    except LocalProtocolError as error:
        if error.needed is None:
            answer_failure(connection, request, error, now)
        elif request.revision in MODERN_REVISIONS:  # the client can declare it and try again
            data: JSONObject = {"requiredCapabilities": error.needed}
            code = ErrorCode.MISSING_CLIENT_CAPABILITY
            connection.send_error(request, code, error.text, data, now=now)
        else:
            connection.send_error(request, ErrorCode.INVALID_PARAMS, error.text, now=now)
    except Exception as error:  # what an encoder or a hash says of values that are no JSON
        answer_failure(connection, request, error, now)


def ends_program(failure: BaseException) -> bool:
    """Whether a handler raised what is meant for the program: SystemExit or KeyboardInterrupt."""
    if isinstance(failure, BaseExceptionGroup):
        group = cast(BaseExceptionGroup[BaseException], failure)
        return any(map(ends_program, group.exceptions))
    return isinstance(failure, (SystemExit, KeyboardInterrupt))


def answer_failure(
    connection: Side,
    request: IncomingRequest,
    failure: BaseException,
    now: float,
) -> None:
    """Send what a handler raised: an `McpError` as it is, of anything else only that it was.

    What is meant for the program gets one line in the log, without a traceback: the caller raises
    it again, and whoever runs the server needs to see why it has ended.
    """
    if isinstance(failure, McpError):
        if not request.open:
            return
        try:
            connection.send_error(request, failure.code, failure.message, failure.data, now=now)
        except Exception as error:  # its code, message or data have no JSON form
            failure = error
        else:
            return
    if ends_program(failure):
        text = "the handler of %.80r raised %.200r, which is not caught here and ends the program"
        LOGGER.warning(text, request.method, failure)
    else:
        LOGGER.error("the handler of %.80r failed", request.method, exc_info=failure)
    if request.open:
        connection.send_error(request, ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR, now=now)


def failure_of(method: str, failure: Exception) -> McpError:
    """What a handler has raised, as its asker is told: only an `McpError` says more than that."""
    if isinstance(failure, McpError):
        return failure
    LOGGER.error("the handler of %.80r failed", method, exc_info=failure)
    return internal_error(failure)


def internal_error(cause: Exception) -> McpError:
    """The error that the peer is told of a failure whose details are not for it."""
    error = McpError(ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR)
    error.__cause__ = cause
    return error


NotificationHandler: TypeAlias = Callable[[str, JSONObject], object]
ProgressHandler: TypeAlias = Callable[[float, float | None, str | None], object]

Returned = TypeVar("Returned")


def is_async(function: object) -> bool:
    """Whether this is an async function, or an object whose `__call__` is one."""
    return callable(function) and (
        inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(type(function).__call__)
    )


def check_progress_handler(on_progress: ProgressHandler | None) -> None:
    """Check that `on_progress` is a plain function.

    Raises:
        TypeError: It is async, so calling it would do nothing.
    """
    if is_async(on_progress):
        raise TypeError(f"on_progress must be a plain function, and {on_progress!r} is async")


def not_async(outcome: Returned, what: str) -> Returned:
    """Check what a function of the application has returned, and return it.

    Args:
        outcome: What it has returned.
        what: The name of the function, for the exception.

    Raises:
        TypeError: It is awaitable: the function, which did not look async, is.
    """
    if inspect.isawaitable(outcome):
        if inspect.iscoroutine(outcome):
            outcome.close()
        raise TypeError(f"{what} is async: it must be a plain function here")
    return outcome


def serves_nothing(call: object) -> JSONObject:
    """The handler of a client that was given none."""
    raise McpError(ErrorCode.METHOD_NOT_FOUND, "this client serves no requests")


class Question(CallBase):
    """To be mixed into the `Call` of a loop: it is handled like a request of the server.

    Whoever makes one sets `_question`, `_about` and `_asker`, besides what the loop needs.
    """

    _question: JSONObject
    _about: OutgoingRequest
    _asker: ClientSide | ServerConnection

    @property
    def method(self) -> str:
        """The method of the question."""
        method: str = self._question["method"]
        return method

    @property
    def params(self) -> JSONObject:
        """Its params, `{}` where there are none."""
        params: JSONObject = self._question.get("params") or {}
        return params

    @property
    def revision(self) -> str | None:
        """The revision of the conversation."""
        return self._asker.revision

    @property
    def capabilities(self) -> JSONObject:
        """The capabilities of the server."""
        return self._asker.peer.capabilities

    @property
    def principal(self) -> object:
        """Who the server is, as the transport found out; None where it did not."""
        return self._asker.peer.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Nobody waits for it: a question is no request."""
        return False

    @property
    def _serving(self) -> IncomingRequest | None:
        return None

    def __repr__(self) -> str:
        return f"<QuestionCall {self.method} about {self._about!r}>"
