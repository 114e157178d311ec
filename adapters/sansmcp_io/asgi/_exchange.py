"""Hands one HTTP request of ASGI to the endpoint, and sends the response."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from sansmcp.http import SendBody, SendHead, ServerExchange

from .._common.access import CHECK
from .._common.anomalies import LOGGER
from .._common.errors import AccessDenied, Unauthorized
from .._common.http_server import Headers, PrincipalKey, Response, key_of
from .._common.lookups import LATE, RETRY_SECONDS, LookupTimeout, log_failed_lookup
from ._runner import ASGIRunner, Scope

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Authenticate: TypeAlias = Callable[[Scope], Any]
"""Takes the scope of a request, and returns the principal, or raises `Unauthorized`. Plain or
async."""

_SKIPPED_BYTES: Final = 65_536
_END: Final = {"type": "http.response.body", "body": b"", "more_body": False}


async def serve(
    runner: ASGIRunner,
    authenticate: Authenticate | None,
    principal_key: PrincipalKey | None,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Serve one HTTP request, and raise the exception of a handler that ends the program."""
    failures: list[BaseException] = []
    runner.failures[id(scope)] = failures
    try:
        await _serve(runner, authenticate, principal_key, scope, receive, send)
    finally:
        del runner.failures[id(scope)]
    if failures:
        raise failures[0]


async def _serve(
    runner: ASGIRunner,
    authenticate: Authenticate | None,
    principal_key: PrincipalKey | None,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    target: str = scope["path"]
    if query := scope.get("query_string"):
        target = f"{target}?{query.decode('latin-1')}"
    exchange = runner.endpoint.exchange(
        scope["method"], target, scope["headers"], context=scope, now=time.monotonic()
    )
    try:
        is_open = authenticate is None and runner.access is None
        if exchange.needs_principal and not is_open:
            await _authenticate(runner, authenticate, principal_key, exchange, scope, target)
        if exchange.refused:
            if scope.get("http_version") == "2":
                await _skip_body(receive)
        elif not await _receive_body(exchange, receive):
            exchange.receive_disconnect(now=time.monotonic())
            runner.turn()
            await _respond_to_lost_client(send)
            return
        runner.turn()
        response = exchange.response()
        if response is None:
            await _ResponseStream(runner, exchange, receive, send).run()
            return
        runner.turn()  # requests that wait for room may follow now
        await respond(send, response)
    except BaseException as error:
        exchange.receive_disconnect(now=time.monotonic())
        runner.turn()
        if not isinstance(error, OSError):
            raise
        LOGGER.debug("a client is gone: %s", error)  # as some servers tell it


async def respond(send: Send, response: Response) -> None:
    """Send a response that is complete."""
    status, headers, body = response
    await send(_start(status, headers))
    await send({"type": "http.response.body", "body": body})


async def _skip_body(receive: Receive) -> None:
    """Read a short body that is not needed.

    hypercorn ends the whole connection when some of it comes after the response, and with it all
    that the client has open there.
    """
    left = _SKIPPED_BYTES
    while left > 0:
        message = await receive()
        if not message.get("more_body"):  # the end, or the client is gone
            return
        left -= len(message.get("body", b""))


def _start(status: int, headers: Headers) -> Message:
    # A list, since middleware adds headers to it.
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


async def _respond_to_lost_client(send: Send) -> None:
    """Send an empty response for a client that has disconnected. Servers drop it.

    An application must not return without a response: middleware such as Starlette's raises then,
    and the server logs an error. Status 499 stands for a client that has left in the logs of nginx.
    """
    await send(_start(499, ((b"content-length", b"0"),)))
    await send(dict(_END))


async def _authenticate(
    runner: ASGIRunner,
    authenticate: Authenticate | None,
    principal_key: PrincipalKey | None,
    exchange: ServerExchange,
    scope: Scope,
    target: str,
) -> None:
    called = "authenticate" if runner.access is None else CHECK
    try:
        if runner.access is not None:
            principal: Any = runner.access.check(exchange.method, target, scope["headers"])
        else:
            assert authenticate is not None  # or this would not be called
            principal = authenticate(scope)
        if inspect.isawaitable(principal):
            principal = await runner.lookups.bounded(called, principal)
        called = "principal_key"
        key = key_of(principal, principal_key)
    except Unauthorized as error:
        challenge = (("www-authenticate", error.challenge),)
        exchange.refuse(error.status, error.text, challenge, now=time.monotonic())
    except AccessDenied as error:
        exchange.refuse(error.status, error.text, error.headers, now=time.monotonic())
    except Exception as error:
        log_failed_lookup(called, error)
        if isinstance(error, LookupTimeout):
            more = {"retry-after": str(RETRY_SECONDS)}
            exchange.refuse(503, LATE, more, now=time.monotonic())
        else:
            exchange.refuse(500, "internal error", now=time.monotonic())
    else:
        exchange.principal, exchange.principal_key = principal, key


async def _receive_body(exchange: ServerExchange, receive: Receive) -> bool:
    """Read the body, unless the request is refused. Return False if the client disconnects."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return False
        if body := message.get("body"):
            exchange.receive_data(body)
            if exchange.refused:
                return True
        if not message.get("more_body"):
            try:
                exchange.receive_end(at=time.time(), now=time.monotonic())
            except Exception as error:  # what `tool_schema` raises; the client gets 500
                LOGGER.error("tool_schema failed", exc_info=error)
            return True


class _ResponseStream:
    """A response that is not complete yet: its parts are sent as they come."""

    def __init__(
        self, runner: ASGIRunner, exchange: ServerExchange, receive: Receive, send: Send
    ) -> None:
        self._runner = runner
        self._exchange = exchange
        self._receive = receive
        self._send = send
        self._is_gone = False  # the client
        self._has_begun = False  # the response
        self._has_news = False
        self._sleeping: asyncio.Future[None] | None = None

    def flush(self) -> None:
        """Wake `run`: there is output, or the client has disconnected."""
        self._has_news = True
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def run(self) -> None:
        """Send output until the response is complete, or the client has disconnected."""
        runner, exchange = self._runner, self._exchange
        loop = asyncio.get_running_loop()
        runner.wires[exchange] = self
        watching = loop.create_task(self._watch())
        try:
            while not self._is_gone:
                self._has_news = False
                is_complete = await self._send_all()
                runner.turn()  # the output that was taken makes room
                if is_complete:
                    return
                if not self._has_news:
                    self._sleeping = loop.create_future()
                    await self._sleeping
                    self._sleeping = None
            if not self._has_begun:
                await _respond_to_lost_client(self._send)
        finally:
            watching.cancel()
            del runner.wires[exchange]

    async def _watch(self) -> None:
        """Wait until the client has disconnected."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except OSError as error:
            LOGGER.debug("a client is gone: %s", error)
        except Exception as error:  # of the server, or of what is around the application
            LOGGER.error("receiving from a client failed", exc_info=error)
        self._is_gone = True
        # Now, since a send that is under way may never return.
        self._exchange.receive_disconnect(now=time.monotonic())
        self._runner.turn()
        self.flush()

    async def _send_all(self) -> bool:
        """Send all output, and return whether the response is complete."""
        send = self._send
        while (output := self._exchange.next_output()) is not None:
            if type(output) is SendBody:
                await send({"type": "http.response.body", "body": output.data, "more_body": True})
            elif type(output) is SendHead:
                self._has_begun = True
                await send(_start(output.status, output.headers))
                if not self._exchange.has_output:
                    # A server may keep the head until the first piece of the body.
                    await send({"type": "http.response.body", "body": b"", "more_body": True})
            else:
                await send(dict(_END))
                return True
        return False
