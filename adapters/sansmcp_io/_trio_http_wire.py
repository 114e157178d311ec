"""The bytes of one HTTP connection on one trio stream.

One task reads, for as long as the connection lasts: that is how it learns that a client is gone.
What can be written without waiting is written by whichever task has caused it; for the rest a task
is started, which ends when all of it was written. So an idle connection has one task.
"""

from __future__ import annotations

import inspect
import math
from contextlib import suppress
from typing import Final, Protocol

import trio

from sansmcp.http import ServerEndpoint, ServerExchange

from ._anomalies import LOGGER
from ._async_callbacks import logged
from ._errors import Unauthorized
from ._http_limits import HTTPLimits
from ._listening import Authenticate
from ._trace import HTTPTrace
from ._trio_socket import NoWaitSocket, TLSSocket
from .h11 import ConnectionState, HTTPConnection, RequestHead

_PIECE_BYTES: Final = 65_536
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class Server(Protocol):
    """What a connection needs of the server that it belongs to."""

    endpoint: ServerEndpoint
    limits: HTTPLimits
    authenticate: Authenticate | None
    trace: HTTPTrace | None
    wires: dict[ServerExchange, HTTPWire]
    tasks: trio.Nursery

    def turn(self) -> None:
        """Handle all events, and have all output written."""
        ...

    def note_held(self, change: int) -> None:
        """A connection holds so much more, or less."""
        ...


class HTTPWire:
    """Moves bytes between a client and its connection object, and tells that the time."""

    def __init__(
        self,
        server: Server,
        stream: NoWaitSocket | TLSSocket,
        connection: HTTPConnection,
        client: str,
    ) -> None:
        self._server = server
        self._stream = stream
        self._connection = connection
        self._client = client
        self.held = 0  # bytes that wait here, as far as the server was told
        self._reading = trio.CancelScope()
        self._writing = trio.CancelScope()
        self._is_writing = False
        self._written = trio.Event()
        self._exchange: ServerExchange | None = None  # whose output goes out here
        self._rest = b""  # what was taken to be written ...
        self._at = 0  # ... from here on
        self._has_sent_eof = False

    async def run(self) -> None:
        """Serve the client until the connection is over."""
        connection = self._connection
        try:
            while connection.state is not ConnectionState.CLOSED:
                if connection.state is ConnectionState.LINGERING and not self._is_writing:
                    await self._send_eof()
                with trio.CancelScope() as self._reading:
                    self._look_at_time()
                    await self._read()
                connection.handle_timeout(trio.current_time())
                self.flush()
            while self._is_writing:
                await self._written.wait()
        except _BROKEN as error:
            LOGGER.debug("a connection has broken: %s", error)
        except Exception as error:  # a fault of ours ends this connection, and no other
            LOGGER.error("serving a connection failed", exc_info=error)
        finally:
            self._rest = b""
            self._lose_client()
            with trio.CancelScope(shield=True), suppress(*_BROKEN):
                await self._stream.aclose()

    def close(self) -> None:
        """End it as soon as no request is under way."""
        self._connection.close(now=trio.current_time())
        self.flush()

    def give_up(self) -> None:
        """Let go of what waits here."""
        if self._is_writing:
            self._writing.cancel()
            self._rest = b""  # now, and not when the task that writes comes to its end
            self._lose_client()
        else:
            self._connection.give_up(now=trio.current_time())
            self.flush()
            self._note_held()

    # ---------------------------------------------------------------------------- reading

    async def _read(self) -> None:
        connection, server = self._connection, self._server
        while connection.state is not ConnectionState.CLOSED:
            data = await self._stream.receive_some()
            if server.trace is not None:
                with logged("the trace"):
                    server.trace.received(self._client, data)
            now = trio.current_time()
            if not data:
                self._lose_client()
                return
            connection.receive_data(data, now=now)
            if connection.awaiting is not None:
                # Who sends it may be asked for as long as its body may take, and not only for what
                # was left of the time for the head.
                deadline = connection.next_timeout()
                self._reading.deadline = math.inf if deadline is None else deadline
                await self._authenticate(connection.awaiting)
            self._follow()
            server.turn()
            self.flush()
            self._note_held()

    def _follow(self) -> None:
        """Tell the server whose output goes out here now."""
        exchange = self._connection.exchange
        if exchange is not self._exchange:
            if self._exchange is not None:
                self._server.wires.pop(self._exchange)
            if exchange is not None:
                self._server.wires[exchange] = self
            self._exchange = exchange

    def _note_held(self) -> None:
        held = len(self._rest) + self._connection.held_bytes
        if held != self.held:
            change, self.held = held - self.held, held
            self._server.note_held(change)

    async def _authenticate(self, head: RequestHead) -> None:
        connection = self._connection
        assert self._server.authenticate is not None
        try:
            principal = self._server.authenticate(head.headers)
            if inspect.isawaitable(principal):
                principal = await principal
        except Unauthorized as error:
            now = trio.current_time()
            connection.refuse(error.status, error.text, error.challenge, now=now)
        except Exception as error:
            LOGGER.error("authenticate failed", exc_info=error)
            connection.refuse(500, "internal error", now=trio.current_time())
        else:
            connection.admit(principal, now=trio.current_time())

    async def _send_eof(self) -> None:
        if not self._has_sent_eof:
            self._has_sent_eof = True
            await self._stream.send_eof()

    def _look_at_time(self) -> None:
        deadline = self._connection.next_timeout()
        if deadline is not None and deadline < self._reading.deadline:
            self._reading.deadline = deadline

    # ---------------------------------------------------------------------------- writing

    def flush(self) -> None:
        """Write what there is to be written, here if it goes without waiting."""
        if not self._is_writing:
            try:
                self._write_now()
            except Exception as error:
                self._writing_failed(error)
        if self._is_writing:
            self._note_held()

    def _write_now(self) -> None:
        connection = self._connection
        while data := self._take():
            sent = self._stream.send_now(data)
            if sent < len(data):
                self._is_writing = True
                self._written = trio.Event()
                self._rest, self._at = data, sent
                self._writing = trio.CancelScope()
                self._server.tasks.start_soon(self._write)
                return
        if connection.state is not ConnectionState.OPEN:
            self._reading.cancel()  # which sees how to go on
        else:
            self._look_at_time()

    def _take(self) -> bytes:
        data = self._connection.data_to_send(now=trio.current_time())
        if self._connection.exchange is not self._exchange:
            self._follow()
        if data and self._server.trace is not None:
            with logged("the trace"):
                self._server.trace.sent(self._client, data)
        return data

    async def _write(self) -> None:
        """Write all of this, and what comes meanwhile, however long that takes."""
        try:
            with self._writing:
                while self._rest:
                    self._writing.deadline = trio.current_time() + self._server.limits.stall
                    piece = self._rest[self._at : self._at + _PIECE_BYTES]
                    self._at += await self._stream.send_some(piece)
                    if self._at >= len(self._rest):
                        self._rest, self._at = self._take(), 0
            if self._writing.cancelled_caught:
                LOGGER.info("a client reads nothing: its connection is closed")
                self._lose_client()
                self._reading.cancel()
        except Exception as error:
            self._writing_failed(error)
        finally:
            self._rest = b""
            self._is_writing = False
            self._written.set()
        self._server.turn()
        self.flush()
        self._note_held()

    def _writing_failed(self, error: Exception) -> None:
        if not isinstance(error, _BROKEN):
            LOGGER.error("writing a response failed", exc_info=error)
        self._lose_client()
        self._reading.cancel()

    def _lose_client(self) -> None:
        """Nobody reads any more what there is to be said."""
        self._connection.receive_eof(now=trio.current_time())
        self._follow()
        self._server.turn()
        self._note_held()
