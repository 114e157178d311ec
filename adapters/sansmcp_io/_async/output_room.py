"""Room in the output: whoever has something large to say waits until there is some."""

from __future__ import annotations

from typing import Final

from sansmcp import ServerConnection, State

from .._common.call import ClientSide
from .._common.callbacks import UNSENT_BYTES
from .loop import Loop


class Room:
    """Lets tasks that have output in one after the other, in the order in which they came.

    All at once, they would fill the output far beyond its bound as soon as a little of it is gone.

    Attributes:
        is_closed: The session is lost: nothing can be sent, however much room there is.
        needs_reopening: No other session is being opened, so the next request opens one.
    """

    def __init__(self, connection: ClientSide | ServerConnection, loop: Loop) -> None:
        self.is_closed = False
        self.needs_reopening = False
        self._connection: Final = connection
        self._loop: Final = loop
        self._turnstile = loop.new_lock()
        self._has_come = loop.new_event()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits."""
        return self._turnstile.locked()

    @property
    def is_short(self) -> bool:
        """Whether whoever comes now has to wait."""
        return self._is_full() or self._turnstile.locked()

    async def wait(self) -> None:
        """Wait for room, or until there will be none. To be used before anything else runs."""
        await self._turnstile.acquire()
        try:
            while self._is_full() and not self._is_over():
                self._has_come = self._loop.new_event()
                await self._has_come.wait()
        finally:
            self._turnstile.release()

    def look(self) -> None:
        """Let the next one in, if there is room now, or never will be."""
        if not self._is_full() or self._is_over():
            self._has_come.set()

    def _is_full(self) -> bool:
        return self.is_closed or self._connection.unsent_bytes > UNSENT_BYTES

    def _is_over(self) -> bool:
        return self.needs_reopening or self._connection.state is State.CLOSED
