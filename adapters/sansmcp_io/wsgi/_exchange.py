"""Hands one HTTP request of WSGI to the endpoint, in the thread of the WSGI call.

A response that is complete at once is returned as a body. Any other is written as it comes, by the
function that `start_response` returns: only so, progress is sent while a handler still runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sansmcp import IncomingRequest
from sansmcp.http import SendBody, SendHead

from .._common.access import CHECK
from .._common.anomalies import LOGGER
from .._common.call import HandlerResult, RequireInput, answer_failure, ends_program, not_async
from .._common.errors import AccessDenied, CallCancelled, Unauthorized
from .._common.http_server import PrincipalKey, key_of
from .._common.lookups import LATE, RETRY_SECONDS, LookupTimeout, log_failed_lookup
from .._common.tasks import CreateTask
from ._calls import Environ
from ._runner import ThreadRunner

if TYPE_CHECKING:
    from ._access import ThreadAccessChecker

StartResponse: TypeAlias = Callable[..., Any]
Authenticate: TypeAlias = Callable[[Environ], Any]
"""Takes the environment of a request, and returns the principal, or raises `Unauthorized`."""
Result: TypeAlias = HandlerResult | RequireInput | CreateTask

_PIECE_BYTES: Final = 65_536
_LONGEST_LENGTH: Final = 20  # digits; the limit on bodies is far below
_OTHERS: Final = (("CONTENT_TYPE", "content-type"), ("CONTENT_LENGTH", "content-length"))


class ServingSettings:
    """The settings of an application, which are the same for all its requests."""

    def __init__(
        self,
        runner: ThreadRunner,
        authenticate: Authenticate | None,
        principal_key: PrincipalKey | None,
        access: ThreadAccessChecker | None,
    ) -> None:
        self.runner: Final = runner
        self.authenticate: Final = authenticate
        self.principal_key: Final = principal_key
        self.access: Final = access


class WSGIExchange:
    """One HTTP request of WSGI and its response, in the thread of the WSGI call."""

    def __init__(
        self, serving: ServingSettings, environ: Environ, start_response: StartResponse
    ) -> None:
        self.environ: Final = environ
        self.jobs: list[Callable[[], None]] = []
        self.is_over = False
        self._serving = serving
        self._runner = serving.runner
        self._start_response = start_response
        self._thread = threading.get_ident()
        self._has_ended = False
        self._is_gone = False  # the client
        self._exit: BaseException | None = None  # the exception of a handler that ends the program
        self._write: Callable[[bytes], Any] | None = None
        self._unwritten: list[bytes] = []  # where nothing can be written
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        query = environ.get("QUERY_STRING")
        with self._runner.lock:
            self._runner.keep_time()
            self._target = f"{path}?{query}" if query else path
            self._exchange = self._runner.endpoint.exchange(
                environ["REQUEST_METHOD"],
                self._target,
                fields_of(environ),
                context=self,
                now=time.monotonic(),
            )

    def run(self) -> Iterable[bytes]:
        """Serve the request, and return the body of the response, or its rest."""
        try:
            if self._exchange.needs_principal and not self._exchange.refused:
                self._authenticate()
            if not self._exchange.refused:
                self._receive_body()
            body = self._respond()
            if self._exit is not None:
                raise self._exit
            return body
        except BaseException:
            self._lose_client()
            raise
        finally:
            self.is_over = True

    def _lose_client(self) -> None:
        self._is_gone = True
        with self._runner.lock:
            self._exchange.receive_disconnect(now=time.monotonic())
            self._runner.turn(self)

    # ---------------------------------------------------------------------------- receiving

    def _authenticate(self) -> None:
        exchange, serving = self._exchange, self._serving
        if serving.authenticate is None and serving.access is None:
            return
        called = "authenticate" if serving.access is None else CHECK
        try:
            if serving.access is not None:
                fields = fields_of(self.environ)
                principal: Any = serving.access.check(exchange.method, self._target, fields)
            else:
                assert serving.authenticate is not None
                principal = not_async(serving.authenticate(self.environ), called)
            called = "principal_key"
            exchange.principal_key = key_of(principal, self._serving.principal_key)
            exchange.principal = principal
        except Unauthorized as error:
            self._refuse(error.status, error.text, ("www-authenticate", error.challenge))
        except AccessDenied as error:
            self._refuse(error.status, error.text, *error.headers)
        except LookupTimeout as error:
            log_failed_lookup(called, error)
            self._refuse(503, LATE, ("retry-after", str(RETRY_SECONDS)))
        except Exception as error:
            log_failed_lookup(called, error)
            self._refuse(500, "internal error")

    def _refuse(self, status: int, text: str, *fields: tuple[str, str]) -> None:
        with self._runner.lock:
            self._exchange.refuse(status, text, fields, now=time.monotonic())

    def _body_bytes(self) -> int | None:
        """The length of the body; None: until the server has no more of it."""
        length: str = self.environ.get("CONTENT_LENGTH") or ""
        if length.isdecimal() and len(length) < _LONGEST_LENGTH:
            return int(length)
        if length:  # some servers ignore this header
            self._refuse(400, "Content-Length is not valid")
        elif self.environ.get("wsgi.input_terminated"):
            return None
        elif "HTTP_TRANSFER_ENCODING" in self.environ:
            self._refuse(411, "this server takes no body without Content-Length")
        return 0

    def _receive_body(self) -> None:
        stream: Any = self.environ["wsgi.input"]
        left = self._body_bytes()
        while left != 0 and not self._exchange.refused:
            data: bytes = stream.read(_PIECE_BYTES if left is None else min(left, _PIECE_BYTES))
            if not data:
                break
            if left is not None:
                left -= len(data)
            with self._runner.lock:
                self._exchange.receive_data(data)
        if left and not self._exchange.refused:
            self._refuse(400, "the body is not complete")
        with self._runner.lock:
            self._exchange.receive_end(at=time.time(), now=time.monotonic())
            self._runner.turn(self)

    # ---------------------------------------------------------------------------- serving

    def serve(self, request: IncomingRequest) -> None:
        """Let the handler answer, in this thread and without the lock."""
        runner, endpoint = self._runner, self._runner.endpoint
        if not request.open:
            return  # the request was cancelled before its handler began
        failure: BaseException | None = None
        result: Any = None
        try:
            result = runner.tasks.handle(request)
        except BaseException as error:
            failure = error
            if ends_program(error):
                self._exit = error
        with runner.lock:
            if failure is None:
                runner.tasks.answer(request, result, time.monotonic())
            elif request.open or not isinstance(failure, CallCancelled):
                answer_failure(endpoint, request, failure, time.monotonic())
            runner.turn(self)
            runner.wake(self)  # threads of the handler that still wait for its client

    # ---------------------------------------------------------------------------- sending

    def _respond(self) -> Iterable[bytes]:
        runner, exchange = self._runner, self._exchange
        while True:
            while self.jobs:
                self.jobs.pop(0)()
            runner.lookups.work()
            with runner.lock:
                runner.turn(self)
                response = exchange.response()
                if response is not None:
                    self.is_over = True
                    runner.turn(self)  # requests that wait for room may follow now
                    break
            self._send_output()
            with runner.lock:
                if self._is_gone or self._has_ended:
                    self.is_over = not self.jobs
                    if self.is_over:
                        return self._unwritten
                elif not (self.jobs or exchange.has_output or runner.lookups.has_work):
                    runner.wait(self, until=runner.lookups.deadline)
                    runner.lookups.expire()
        status, fields, body = response
        write = self._begin(status, fields)
        if self._exit is not None:
            write(body)  # what is returned would not be read when this raises
        return () if exchange.method == "HEAD" else (body,)

    def flush(self) -> None:
        """Store sent events, and write the output of the stream, in the thread of the exchange."""
        self._runner.lookups.work()
        if self._exchange.is_stream and threading.get_ident() == self._thread:
            self._send_output()

    def _send_output(self) -> None:
        runner, exchange = self._runner, self._exchange
        while not self._has_ended:
            with runner.lock:
                output = exchange.next_output()
                runner.turn(self)  # the output that was taken makes room
            if output is None:
                return
            try:
                if isinstance(output, SendHead):
                    self._write = self._begin(output.status, output.headers)
                    if not exchange.has_output:
                        self._send(b"")  # some servers hold back a head without a body
                elif isinstance(output, SendBody):
                    self._send(output.data)
                else:
                    self._has_ended = True
            except Exception as error:  # each server has its own for a client that is gone
                LOGGER.debug("a client is gone: %s", error)
                self._lose_client()
                return

    def _begin(self, status: int, fields: Iterable[tuple[bytes, bytes]]) -> Any:
        return self._start_response(status_line(status), texts_of(fields))

    def _send(self, data: bytes) -> None:
        if self._write is None:
            self._unwritten.append(data)
        else:
            self._write(data)


def status_line(status: int) -> str:
    """A status in the form that `start_response` takes."""
    return f"{status} {HTTPStatus(status).phrase}"


def texts_of(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Header fields as `start_response` takes them."""
    return [(name.decode("ascii").title(), value.decode("latin-1")) for name, value in fields]


def fields_of(environ: Environ) -> list[tuple[str, str]]:
    """The headers of a request. Their names are restored except for upper and lower case."""
    fields = [
        (key[5:].replace("_", "-"), value)
        for key, value in environ.items()
        if key.startswith("HTTP_")
    ]
    for key, name in _OTHERS:
        if value := environ.get(key):
            fields.append((name, value))
    return fields
