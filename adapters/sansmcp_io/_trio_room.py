"""Room in the output: whoever has something large to say waits until there is some."""

from __future__ import annotations

from typing import Final

import trio

from sansmcp import ServerConnection, State

from ._call import ClientSide
from ._surface import UNSENT_BYTES


class Room:
    """Lets tasks that have output in one after the other, in the order in which they came.

    All at once, they would fill the output far beyond its bound as soon as a little of it is gone.

    Attributes:
        is_closed: Nobody may come in for now, however much room there is.
    """

    def __init__(self, connection: ClientSide | ServerConnection) -> None:
        self.is_closed = False
        self._connection: Final = connection
        self._turnstile = trio.Lock()
        self._has_come = trio.Event()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits."""
        return self._turnstile.locked()

    @property
    def is_short(self) -> bool:
        """Whether whoever comes now has to wait."""
        return self._is_full() or self._turnstile.locked()

    async def wait(self) -> None:
        """Wait for room, or for the end of the connection. To be used before anything else runs."""
        async with self._turnstile:
            while self._is_full() and not self._is_over():
                self._has_come = trio.Event()
                await self._has_come.wait()

    def look(self) -> None:
        """Let the next one in, if there is room now, or never will be."""
        if not self._is_full() or self._is_over():
            self._has_come.set()

    def _is_full(self) -> bool:
        return self.is_closed or self._connection.unsent_bytes > UNSENT_BYTES

    def _is_over(self) -> bool:
        return self._connection.state is State.CLOSED
