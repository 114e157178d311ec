"""A way to watch a connection at work, for people who look for a fault."""

from __future__ import annotations

from typing import Protocol

from sansmcp import Event


class Trace(Protocol):
    """Told of everything that one side sends, receives and learns, in order.

    It sees the payloads: what it is given may be confidential.
    """

    def sent(self, data: bytes) -> None:
        """These bytes are about to be written."""

    def received(self, data: bytes | bytearray) -> None:
        """These bytes were read."""

    def happened(self, event: Event) -> None:
        """The core reported this event; it is handled after this call."""
