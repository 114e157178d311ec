"""The bytes of one HTTP connection on one transport of asyncio.

There is no task for it: input is handled in the callbacks of the transport, and output is handed to
the transport. More output is taken only when the transport has written everything, so unsent output
is counted.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from .._async.http_server_wire import HTTPServerWireBase
from .._common.anomalies import LOGGER
from .._common.tls import TLS
from .._common.trace import address_text
from ..h11 import ConnectionState

if TYPE_CHECKING:
    from ._http_service import HTTPService


class HTTPServerWire(HTTPServerWireBase, asyncio.BufferedProtocol):
    """Moves bytes between a client and its connection object, and keeps the time of both."""

    _server: HTTPService
    _transport: asyncio.Transport

    def __init__(self, server: HTTPService, tls: ssl.SSLContext | None) -> None:
        super().__init__(server, server.new_connection(), "")
        self._loop = asyncio.get_running_loop()
        # Nothing else is read between the two calls that read something, but on Windows.
        shared = sys.platform != "win32"
        self._buffer = server.buffer if shared else memoryview(bytearray(len(server.buffer)))
        self._tls = None if tls is None else TLS(tls)
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf  # when the timer goes off
        self._asking: asyncio.Task[None] | None = None  # the sender of the request
        self._is_writing = False  # the transport has not written all that it was given
        self._stalling: asyncio.TimerHandle | None = None  # while that is so
        self._unread = 0  # bytes that the transport had when it was looked at last
        self._most_unwritten = 0  # since the transport had written all that it was given
        self._has_sent_eof = False
        self._is_over = False
        self._is_unwritable = False  # what the transport still has is dropped

    # ---------------------------------------------------------------------------- of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast(asyncio.Transport, transport)
        if not self._server.add(self):
            self._is_over = True
            if self._tls is None:
                self._transport.write(self._server.busy)
            self._transport.close()
            return
        self._transport.set_write_buffer_limits(high=0)
        if self._server.trace is not None:
            self._client = client_of(self._transport)
        self._look_at_time()

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer to read into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Note that data has arrived."""
        if self._is_over:
            return
        try:
            self._receive(bytes(self._buffer[:nbytes]))
        except Exception as error:  # an internal error ends this connection only
            LOGGER.error("serving a connection failed", exc_info=error)
            self._break_off()

    def eof_received(self) -> bool:
        """Handle EOF of the client, which counts as a disconnect. Output is still written."""
        if not self._is_over:
            self._note_received(b"")
            self._lose_client()
            self.flush()
        return True  # else the transport would be closed by others than us

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""
        if exc is not None:
            LOGGER.debug("a connection has broken: %s", exc)
        self._is_over = self._is_unwritable = True
        self._is_writing = False
        for timer in (self._timer, self._stalling):
            if timer is not None:
                timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
        self._lose_client()
        self._server.remove(self)

    def pause_writing(self) -> None:
        """Note that output waits until the client reads."""
        self._is_writing = True
        self._unread = self._transport.get_write_buffer_size()
        self._stalling = self._loop.call_later(self._server.limits.stall, self._look_at_stall)

    def resume_writing(self) -> None:
        """Note that all output was written."""
        self._is_writing = False
        self._most_unwritten = 0
        if self._stalling is not None:
            self._stalling.cancel()
            self._stalling = None
        self.flush()
        self._server.turn()  # the output that was taken makes room, maybe in another connection
        self._note_held()

    # ---------------------------------------------------------------------------- reading

    def _receive(self, data: bytes) -> None:
        tls = self._tls
        if tls is not None:
            try:
                data = tls.receive(data)
            except ssl.SSLError as error:
                LOGGER.debug("a connection has broken: %s", error)
                self._transport.write(tls.take())  # why
                self._lose_client()
                self.flush()
                return
            self._transport.write(tls.take())
            if not data and not tls.is_over:
                return
        self._note_received(data)
        connection = self._connection
        if data:
            connection.receive_data(data, now=self._loop.time())
        if connection.awaiting is not None:
            asking = self._authenticate(connection.awaiting)
            if asking is not None:
                self._transport.pause_reading()
                self._asking = self._server.tasks.start_soon(self._ask, asking)
                self._look_at_time()
                return
        if tls is not None and tls.is_over:
            self._lose_client()
        self._go_on()

    async def _ask(self, asking: Awaitable[None]) -> None:
        try:
            await asking
        finally:  # the connection may have been dropped meanwhile
            self._asking = None
            if not self._is_over:
                self._transport.resume_reading()
                self._go_on()

    def _go_on(self) -> None:
        """Handle the data that the client has sent."""
        self._follow()
        self._is_due = True
        self._server.turn()
        if self._is_due:  # otherwise, the turn has flushed it
            self.flush()
        self._note_held()

    # ---------------------------------------------------------------------------- time

    def _look_at_time(self) -> None:
        deadline = self._connection.next_timeout()
        if deadline is not None and deadline < self._alarm:
            if self._timer is not None:
                self._timer.cancel()
            self._alarm = deadline
            self._timer = self._loop.call_at(deadline, self._handle_timeout)

    def _handle_timeout(self) -> None:
        """Handle a timeout. The timer may be early: it stays when a deadline is moved to later."""
        self._timer, self._alarm = None, math.inf
        try:
            self._connection.handle_timeout(self._loop.time())
            if self._asking is not None and self._connection.awaiting is None:
                self._asking.cancel()
            self._go_on()
            self._look_at_time()
        except Exception as error:  # as where it reads
            LOGGER.error("serving a connection failed", exc_info=error)
            self._break_off()

    def _look_at_stall(self) -> None:
        unread = self._transport.get_write_buffer_size()
        if unread < self._unread:
            self._unread = unread
            self._stalling = self._loop.call_later(self._server.limits.stall, self._look_at_stall)
        else:
            LOGGER.info("a client reads nothing: its connection is closed")
            self._break_off()

    # ---------------------------------------------------------------------------- writing

    def flush(self) -> None:
        """Write all output."""
        self._is_due = False
        if not self._is_writing and not self._is_over:
            try:
                self._write()
            except Exception as error:
                LOGGER.error("writing a response failed", exc_info=error)
                self._break_off()
        if self._is_writing:
            self._note_held()

    def _write(self) -> None:
        connection, transport = self._connection, self._transport
        if data := self._take():
            if self._tls is not None:
                self._tls.send(data)
                data = self._tls.take()
            transport.write(data)
            if self._is_writing:
                return
        if connection.state is ConnectionState.CLOSED:
            self._close()
        elif connection.state is ConnectionState.LINGERING and not self._has_sent_eof:
            self._has_sent_eof = True
            if self._tls is None:  # which has no such thing
                transport.write_eof()
        self._look_at_time()

    def _close(self) -> None:
        """Close the connection after all output was handed to the transport, which writes it."""
        self._is_over = True
        if self._tls is not None:
            self._tls.close()
            self._transport.write(self._tls.take())
        self._transport.close()

    def drop_request(self) -> None:
        """Drop the buffered request and the unwritten output."""
        if self._is_writing:
            self._break_off()
        else:
            self._connection.drop_request(now=self._loop.time())
            self.flush()
            self._note_held()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_over = self._is_unwritable = True
        self._transport.abort()

    def _break_off(self) -> None:
        self.abort()
        self._is_writing = False
        self._lose_client()

    def _unwritten(self) -> int:
        if self._is_unwritable:
            return 0  # some loops drop it only later
        # A part that was written stays in memory: with all the rest on uvloop, and with as much as
        # it is itself where the transport has a bytearray.
        unwritten = self._transport.get_write_buffer_size()
        self._most_unwritten = max(self._most_unwritten, unwritten)
        return self._most_unwritten


def client_of(transport: asyncio.Transport) -> str:
    """Address and port of the other end, as `127.0.0.1:50123` or `[::1]:50123`."""
    found = transport.get_extra_info("peername")
    return address_text(found) if found else "nowhere"  # the client has disconnected before
