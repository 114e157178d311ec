"""Functions of the application: what a handler is given, and what becomes of what it returns."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, cast

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
from .errors import InsufficientScope, McpError

if TYPE_CHECKING:
    from sansmcp.http import ClientEndpoint, ServerEndpoint


ServerSide: TypeAlias = "ServerConnection | ServerEndpoint"
ClientSide: TypeAlias = "ClientConnection | ClientEndpoint"
Side: TypeAlias = "ServerSide | ClientSide"
"""A core object that answers requests. All of them have the same methods for that."""
RequestingSide: TypeAlias = "ClientSide | ServerConnection"
"""A core object that sends requests. All of them have the same methods for that."""

_NO_LOCK: Final = nullcontext()
INTERNAL_ERROR = "internal error"
"""The only text that the peer gets for an exception that is no `McpError`."""


class Model(Protocol):
    """An object of pydantic, or any with such a method."""

    def model_dump(self, *, mode: str = ..., by_alias: bool = ..., exclude_none: bool = ...) -> Any:
        """The members as JSON values."""
        ...


class Dataclass(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class AttrsClass(Protocol):
    """An instance of an attrs class (`attrs.AttrsInstance` is any object for pyright)."""

    __attrs_attrs__: ClassVar[Any]


HandlerResult: TypeAlias = Mapping[str, object] | Model | Dataclass | AttrsClass
"""The result of a handler: a dict, or an object that `sansmcp.content.as_json` takes."""


@attrs.frozen
class RequireInput:
    """The return value of a handler that needs answers of the client to its questions.

    The handler is called again with the answers in `call.input_responses` and the state in
    `call.state`. Each client is asked in the way of its revision.

    Attributes:
        questions: By keys that the handler chooses: objects with `method` (`elicitation/create`,
            `sampling/createMessage` or `roots/list`) and `params`.
        state: A text that comes back with the answers. The client can read and change it, unless
            it is sealed: see `sansmcp.Config.state_keys`.
    """

    questions: Mapping[str, JSONObject] = attrs.field(factory=dict[str, JSONObject])
    state: str | None = None


class Continued(ABC):
    """The work on a task that a request has become, while its handler goes on with its call.

    It is in the slot `data` of the request.

    Attributes:
        input_responses: The answers to the questions of the `RequireInput` that the handler
            returned before.
        state: The state of that `RequireInput`.
        is_restarted: Whether the handler was called before, in a worker that has ended. Its client
            can be sent nothing but what the task shows.
    """

    input_responses: JSONObject
    state: str | None
    is_restarted: bool

    @abstractmethod
    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Report how far the work is."""

    @abstractmethod
    def ask_one(self, method: str, params: JSONObject | None, timeout: float | None) -> Any:
        """Ask the client one question, and return its answer. On a loop this is awaited.

        Args:
            method: The method of the question.
            params: Its params.
            timeout: Seconds to wait; None: as long as the task is kept.

        Raises:
            RequestTimeout: The answer has not come in time.
        """


def continued(request: IncomingRequest) -> Continued | None:
    """The work on the task that a request has become; None: the request is open, or has ended."""
    data = request.data
    return data if isinstance(data, Continued) else None


class CallBase:
    """A request of the peer that is being handled.

    Attributes:
        context: The `context` that the application gave to the adapter.
    """

    context: Any
    # The adapters of the loops set these, each in its own `__init__`.
    _connection: Side
    _request: IncomingRequest
    _clock: Callable[[], float]
    _wake: Callable[[], None]

    @property
    def _lock(self) -> AbstractContextManager[object]:
        """The lock of the connection; without threads, a lock that does nothing."""
        return _NO_LOCK

    def _flush(self) -> None:
        """Write queued output, where no other task or thread does so."""

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
        """The principal that the transport has found for the peer; None if there is none."""
        return self._request.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Report progress to the peer. Never blocks; below WSGI it is written at once.

        Returns:
            Whether it will be sent: not if the peer asked for no progress, or the call has ended.

        Raises:
            LocalProtocolError: `progress` does not increase, or a number is not finite.
        """
        if (running := continued(self._request)) is not None:
            return running.progress(progress, total=total, message=message)
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
    """A client's request, with the methods that only servers have: logging and questions."""

    @property
    def input_responses(self) -> JSONObject:
        """The client's answers to the questions of `RequireInput`, by key; `{}` at first."""
        if (running := continued(self._request)) is not None:
            return running.input_responses
        return self._request.input_responses

    @property
    def log_level(self) -> str | None:
        """The least severe level of log messages that the client wants; None: not set."""
        return self._request.log_level

    @property
    def state(self) -> str | None:
        """The state of the `RequireInput` that the handler returned before; None in the first call.

        If a sealed state has no valid seal, this is None, the client gets an error for its request,
        and the result of the handler is not sent.
        """
        if (running := continued(self._request)) is not None:
            return running.state
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
            data: The JSON value to log. It must contain no credentials.
            logger: The name of the logger.

        Returns:
            Whether it will be sent: not if it is below the client's level, or the call has ended.

        Raises:
            LocalProtocolError: The level is unknown, or `logging` is not among the capabilities.
        """
        connection = cast(ServerSide, self._connection)
        if (running := continued(self._request)) is not None and running.is_restarted:
            return False
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
    result: HandlerResult | RequireInput,
    now: float,
) -> None:
    """Send the result of a handler. A result that cannot be sent is a failure of the handler."""
    if not request.open:
        return  # the request was cancelled, or refused because of its state
    try:
        if isinstance(result, RequireInput) and hasattr(connection, "require_input"):
            server = cast(ServerSide, connection)
            server.require_input(
                request, result.questions, state=result.state, at=time.time(), now=now
            )
        else:
            connection.send_result(request, object_of(result), now=now)
    except LocalProtocolError as error:
        if error.needed is None:
            answer_failure(connection, request, error, now)
        elif request.revision in MODERN_REVISIONS:  # the client can retry with the capability
            data: JSONObject = {"requiredCapabilities": error.needed}
            code = ErrorCode.MISSING_CLIENT_CAPABILITY
            connection.send_error(request, code, error.text, data, now=now)
        else:
            connection.send_error(request, ErrorCode.INVALID_PARAMS, error.text, now=now)
    except Exception as error:  # what an encoder or a hash says of values that are no JSON
        answer_failure(connection, request, error, now)


def object_of(result: object) -> JSONObject:
    """The result of a handler as a dict: that of the fields, where a handler returns an object.

    Raises:
        TypeError: A part of the object has no JSON value.
        ValueError: It is nested too deep.
    """
    # A wish for input is refused where it is sent.
    if type(result) is dict or isinstance(result, (dict, RequireInput)):
        return cast(JSONObject, result)
    from sansmcp.content import as_json  # imported here: most handlers return dicts

    return cast(JSONObject, as_json(result, nulls=False))


def ends_program(failure: BaseException) -> bool:
    """Whether an exception of a handler ends the program: SystemExit or KeyboardInterrupt."""
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
    """Answer with an error for an exception of a handler: an `McpError` as it is, others as -32603.

    For an `InsufficientScope`, the response has a status and a challenge, where there is HTTP.

    An exception that ends the program is logged in one line, without a traceback: the caller raises
    it again, and the log says why the server has ended.
    """
    if isinstance(failure, (McpError, InsufficientScope)):
        if not request.open:
            return
        try:
            if isinstance(failure, InsufficientScope):
                _forbid(connection, request, failure, now)
            else:
                connection.send_error(request, failure.code, failure.message, failure.data, now=now)
        except Exception as error:  # its code, message or data have no JSON form
            failure = error
        else:
            return
    if ends_program(failure):
        text = "the handler of %.80r raised %.200r, which ends the program"
        LOGGER.warning(text, request.method, failure)
    else:
        LOGGER.error("the handler of %.80r failed", request.method, exc_info=failure)
    if request.open:
        connection.send_error(request, ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR, now=now)


def _forbid(
    connection: Side, request: IncomingRequest, failure: InsufficientScope, now: float
) -> None:
    """Answer a request whose principal lacks scopes."""
    code = ErrorCode.INVALID_REQUEST
    data: JSONObject = {"error": "insufficient_scope", "scope": " ".join(failure.scopes)}
    # Imported here: most programs need nothing of HTTP and authorization.
    from sansmcp.auth import insufficient_scope
    from sansmcp.http import ServerEndpoint

    if not isinstance(connection, ServerEndpoint):
        connection.send_error(request, code, failure.text, data, now=now)
        return
    challenge = insufficient_scope(request.principal, failure.scopes, failure.text)
    fields = {"www-authenticate": challenge}
    connection.send_error(request, code, failure.text, data, status=403, headers=fields, now=now)


def failure_of(method: str, failure: Exception) -> McpError:
    """Return the error for a question whose handler has failed: its `McpError`, or -32603."""
    if isinstance(failure, McpError):
        return failure
    LOGGER.error("the handler of %.80r failed", method, exc_info=failure)
    return internal_error(failure)


def internal_error(cause: BaseException) -> McpError:
    """The error for the peer after an internal failure, without details of the failure."""
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
        TypeError: The function is async, so calling it would do nothing.
    """
    if is_async(on_progress):
        raise TypeError(f"on_progress must be a plain function, and {on_progress!r} is async")


def not_async(outcome: Returned, what: str) -> Returned:
    """Return the value that a function of the application has returned, unless it is awaitable.

    Args:
        outcome: The value that the function has returned.
        what: The name of the function, for the exception.

    Raises:
        TypeError: The value is awaitable, so the function is async.
    """
    if inspect.isawaitable(outcome):
        if inspect.iscoroutine(outcome):
            outcome.close()
        raise TypeError(f"{what} is async: it must be a plain function here")
    return outcome


def serves_nothing(call: object) -> JSONObject:
    """The handler of a client without `on_request`: it refuses all requests."""
    raise McpError(ErrorCode.METHOD_NOT_FOUND, "this client serves no requests")


class Question(CallBase):
    """A question in an input-required result of the server, with the methods of a call.

    It is mixed into the `Call` of an adapter, which sets `_question`, `_about` and `_asker`.
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
        """The params of the question, `{}` where there are none."""
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
        """The principal that the transport has found for the server; None if there is none."""
        return self._asker.peer.principal

    def progress(
        self, progress: float, *, total: float | None = None, message: str | None = None
    ) -> bool:
        """Do nothing: a question is no request, so the server expects no progress."""
        return False

    @property
    def _serving(self) -> IncomingRequest | None:
        return None

    def __repr__(self) -> str:
        return f"<QuestionCall {self.method} about {self._about!r}>"
