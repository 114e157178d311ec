"""The bytes of one HTTP connection on one trio stream.

One task reads as long as the connection lasts, and so notices a disconnect. Output that needs no
waiting is written by the task that has caused it. For the rest a task is started, which ends when
everything was written. So an idle connection has one task.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final

import trio

from .._async.http_server_wire import HTTPServerWireBase
from .._async.http_service import HTTPServiceBase
from .._common.anomalies import LOGGER
from ..h11 import ConnectionState, HTTPConnection
from ._socket import NoWaitSocket, TLSSocket

_PIECE_BYTES: Final = 65_536
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class HTTPServerWire(HTTPServerWireBase):
    """Moves bytes between a client and its connection object, and keeps the time of both."""

    def __init__(
        self,
        server: HTTPServiceBase,
        stream: NoWaitSocket | TLSSocket,
        connection: HTTPConnection,
        client: str,
    ) -> None:
        super().__init__(server, connection, client)
        self._stream = stream
        self._reading = trio.CancelScope()
        self._writing = trio.CancelScope()
        self._is_writing = False
        self._written = trio.Event()
        self._rest = b""  # what was taken to be written ...
        self._at = 0  # ... from here on
        self._has_sent_eof = False

    async def run(self) -> None:
        """Serve the client until the connection has ended."""
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
        except Exception as error:  # an internal error ends this connection only
            LOGGER.error("serving a connection failed", exc_info=error)
        finally:
            self._rest = b""
            self._lose_client()
            with trio.CancelScope(shield=True), suppress(*_BROKEN):
                await self._stream.aclose()

    def drop_request(self) -> None:
        """Drop the buffered request and the unwritten output."""
        if self._is_writing:
            self._writing.cancel()
            self._rest = b""  # now, and not when the task that writes comes to its end
            self._lose_client()
        else:
            self._connection.drop_request(now=trio.current_time())
            self.flush()
            self._note_held()

    # ---------------------------------------------------------------------------- reading

    async def _read(self) -> None:
        connection, server = self._connection, self._server
        while connection.state is not ConnectionState.CLOSED:
            data = await self._stream.receive_some()
            self._note_received(data)
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
                if (asked := self._authenticate(connection.awaiting)) is not None:
                    await asked
            self._follow()
            self._is_due = True
            server.turn()
            if self._is_due:  # otherwise, the turn has flushed it
                self.flush()
            self._note_held()

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
        """Write all output, at once if that needs no waiting."""
        self._is_due = False
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

    async def _write(self) -> None:
        """Write `data` and the output that is queued meanwhile, however long that takes."""
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

    def _unwritten(self) -> int:
        return len(self._rest)
