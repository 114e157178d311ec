"""How much may wait and how long, by default: for the application, and for a slow peer."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import attrs

from sansmcp import ClientConnection, ServerConnection

from .anomalies import LOGGER
from .trace import Trace

MOST_BYTES: Final = 268_435_456
"""Memory, by estimate, of what waits and of what is being handled."""


def memory_of(value: object) -> int:
    """Bytes of memory that a JSON value takes, by estimate; counted up to `MOST_BYTES`."""
    total = 0
    values: list[Any] = [value]
    while values and total <= MOST_BYTES:
        value = values.pop()
        total += sys.getsizeof(value)
        if isinstance(value, dict):
            members = cast(dict[str, object], value)
            values.extend(members)
            values.extend(members.values())
        elif isinstance(value, list):
            values.extend(cast(list[object], value))
    return total


class Allowance:
    """Bounds what waits for the application, in number and in memory, and what is being handled.

    A peer may send notifications, progress and changes faster than they are handled, and unlike
    requests nothing limits them. To stop reading would keep back the answers and cancellations
    behind them, so what is too much is dropped: the oldest that waits, because of two notices that
    something has changed the newer one counts, and the new one where that is not enough.

    Args:
        most: So many may wait.
        what: A noun for them, for the log, which says once that some were dropped.
    """

    def __init__(self, most: int, what: str) -> None:
        self._most: Final = most
        self._what: Final = what
        self._waiting = 0
        self._held_bytes = 0
        self._has_dropped = False

    def admit(self, size: int, drop_oldest: Callable[[], int]) -> bool:
        """Let one more wait, which takes so many bytes.

        Args:
            size: Its memory in bytes; see `memory_of`.
            drop_oldest: Removes the oldest that waits, and returns the memory that it took.

        Returns:
            Whether it may wait; it is to be dropped if not.
        """
        while self._waiting and (self._waiting == self._most or not self._has_memory_for(size)):
            self.begin()
            self.end(drop_oldest())
            self._say_dropped()
        if not self._has_memory_for(size):
            self._say_dropped()
            return False
        self._waiting += 1
        self._held_bytes += size
        return True

    def begin(self) -> None:
        """One that waited is being handled now."""
        self._waiting -= 1

    def end(self, size: int) -> None:
        """One that took so many bytes is not needed any more."""
        self._held_bytes -= size

    def _has_memory_for(self, size: int) -> bool:
        """Whether so many bytes may be held; a single one always may."""
        return self._held_bytes == 0 or self._held_bytes + size <= MOST_BYTES

    def _say_dropped(self) -> None:
        if not self._has_dropped:
            self._has_dropped = True
            LOGGER.warning("%s come faster than they are handled: some are dropped", self._what)


UNSENT_BYTES: Final = 1_048_576
"""While more output than this waits, none is added that can wait as well."""
FLUSH_SECONDS: Final = 1.0
"""How long the end of a connection waits for a peer that reads nothing of the last output."""
FLUSH_SECONDS_AT_EOF: Final = 5.0
"""The same where the peer has ended its stream and reads on, as a shell's pipeline does."""

_JOINED_BYTES: Final = 262_144
"""Output up to this is written as one buffer; of more, each message is, which copies nothing."""


def take_output(
    connection: ClientConnection | ServerConnection, trace: Trace | None
) -> list[bytes]:
    """Take all output of the core: little as one buffer, much without copying it."""
    if connection.unsent_bytes <= _JOINED_BYTES:
        buffers = [connection.data_to_send()]
    else:
        buffers = connection.buffers_to_send()
    if trace is not None:
        for data in buffers:
            trace.sent(data)
    return buffers


DEFAULT_REQUEST_TIMEOUT: Final = 60.0
"""Seconds of silence after which a request is given up; progress for it starts them anew."""
DEFAULT_START_TIMEOUT: Final = 30.0
"""Seconds in which the server must have answered `initialize`."""
DEFAULT_PROBE_TIMEOUT: Final = 10.0
"""Seconds after which a server that does not answer `server/discover` is taken for an older one."""
DEFAULT_DRAIN: Final = 1.0
"""Seconds in which a server finishes what it has read when its input ends."""


def limit_of(seconds: float) -> float | None:
    """The core's form of a timeout: `math.inf` means none."""
    return None if seconds == math.inf else seconds


def check_limit(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    """The validator of a limit: an integer or a time above zero, and `math.inf` for none."""
    is_whole = attribute.type in (int, "int") and value != math.inf
    if not is_number(value) or not value > 0 or (is_whole and not isinstance(value, int)):
        kind = "an integer" if is_whole else "a number"
        raise ValueError(
            f"{attribute.name} must be greater than zero, and {kind} (math.inf: no limit), "
            f"not {value!r}"
        )


def is_number(value: object) -> bool:
    """Whether this is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
