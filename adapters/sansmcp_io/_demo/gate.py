"""A stream whose received data can be held back, so that a race has a known winner."""

from __future__ import annotations

import trio

from ..trio import HalfCloseableByteStream


class Gate:
    """Between the demo's client and the process. It begins open."""

    def __init__(self, inner: HalfCloseableByteStream) -> None:
        self._inner = inner
        self._open = trio.Event()
        self._open.set()

    def hold(self) -> None:
        """Keep what comes from here on."""
        self._open = trio.Event()

    def release(self) -> None:
        """Let it through."""
        self._open.set()

    async def receive_some(self) -> bytes | bytearray:
        """Receive, and wait at the gate."""
        data = await self._inner.receive_some()
        await self._open.wait()
        return data

    async def send_all(self, data: bytes) -> None:
        """Send at once: only the other direction has a gate."""
        await self._inner.send_all(data)

    async def send_eof(self) -> None:
        """As the inner stream."""
        await self._inner.send_eof()
