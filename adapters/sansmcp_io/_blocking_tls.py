"""TLS without sockets: bytes of one side in, bytes of the other out. Nothing here waits."""

from __future__ import annotations

import ssl
from collections import deque
from typing import Final

_READ_BYTES: Final = 65_536


class TLS:
    """One connection of a client. What is said before the handshake is over waits for that.

    Args:
        context: What the server is checked by.
        host: Who the server has to be.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._waiting: deque[bytes] = deque()
        self.is_ready = False

    def start(self) -> bytes:
        """The first bytes to write."""
        self._shake_hands()
        return self._outgoing.read()

    def send(self, data: bytes) -> bytes:
        """What to write, so that the server reads this."""
        if not self.is_ready:
            self._waiting.append(data)
            return b""
        self._object.write(data)
        return self._outgoing.read()

    def receive(self, data: bytes) -> tuple[bytes | None, bytes]:
        """Take what was read; `b""` is the end of the connection.

        Returns:
            What the server says: None is nothing yet, and `b""` its end. And what to write.

        Raises:
            ssl.SSLError: It is not the server, or not TLS.
        """
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        if not self.is_ready and not self._shake_hands():
            return None, self._outgoing.read()
        return self._read(), self._outgoing.read()

    def _shake_hands(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_ready = True
        while self._waiting:
            self._object.write(self._waiting.popleft())
        return True

    def _read(self) -> bytes | None:
        parts: list[bytes] = []
        try:
            while part := self._object.read(_READ_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts) or None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass  # HTTP says by itself whether a message is complete, so a good-bye is not needed
        return b"".join(parts)
