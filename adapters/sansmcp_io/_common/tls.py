"""TLS without sockets: encrypted bytes in, encrypted bytes out. Nothing here waits."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

_READ_BYTES: Final = 65_536


class TLS:
    """The TLS state of one side of a connection.

    After each call, write what `take` returns.

    Args:
        context: The certificates of this side, and how those of the other side are verified.
        host: The name of the server, for a client; None: this is the server.

    Attributes:
        is_open: Whether the handshake is done.
        is_over: Whether the other side has ended its data.
    """

    def __init__(self, context: ssl.SSLContext, host: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=host is None, server_hostname=host
        )
        self._waiting: list[bytes] = []  # said before the handshake was done
        self.is_open = False
        self.is_over = False

    def receive(self, data: bytes) -> bytes:
        """Take encrypted bytes, and return their content. No bytes begin the handshake.

        Raises:
            ssl.SSLError: The other side is not trusted, or does not speak TLS.
        """
        self._incoming.write(data)
        parts: list[bytes] = []
        with suppress(ssl.SSLWantReadError):
            if not self.is_open:
                self._object.do_handshake()
                self.is_open = True
                for each in self._waiting:
                    self.send(each)
                self._waiting.clear()
            while not self.is_over:
                part = self._read()
                parts.append(part)
                self.is_over = not part
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def send(self, data: bytes) -> None:
        """Encrypt data, as soon as the handshake is done."""
        if not self.is_open:
            self._waiting.append(data)
        elif data:
            self._object.write(data)

    def close(self) -> None:
        """Send the closing alert. That of the other side is not waited for: HTTP needs none."""
        if self.is_open:
            with suppress(ssl.SSLError):
                self._object.unwrap()

    @property
    def has_output(self) -> bool:
        """Whether there is something to be written."""
        return self._outgoing.pending > 0

    def take(self) -> bytes:
        """Take the encrypted bytes that are to be written now."""
        return self._outgoing.read()

    def _read(self) -> bytes:
        try:
            return self._object.read(_READ_BYTES)
        except ssl.SSLZeroReturnError:
            return b""
