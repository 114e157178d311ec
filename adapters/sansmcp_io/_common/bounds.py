"""Default limits on the messages that wait for the application, and on unsent output."""

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
"""The estimated memory that messages may take which wait or are being handled."""


def memory_of(value: object) -> int:
    """Estimate the bytes of memory that a JSON value takes, counting up to `MOST_BYTES`."""
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
    """Limits the number of messages that wait for the application, and the memory of all of them.

    A peer may send notifications, progress and changes faster than they are handled, and unlike
    requests nothing limits them. Reading must go on, since responses and cancellations may come
    behind them, so messages are dropped: first the oldest that wait, since a newer notice of a
    change replaces an older one; then the new one, if that is not enough.

    Args:
        most: How many may wait.
        what: A noun for the messages. The log says once that some of them were dropped.
    """

    def __init__(self, most: int, what: str) -> None:
        self._most: Final = most
        self._what: Final = what
        self._waiting = 0
        self._held_bytes = 0
        self._has_dropped = False

    def admit(self, size: int, drop_oldest: Callable[[], int]) -> bool:
        """Let one more message wait, if the limits allow that.

        Args:
            size: Its memory in bytes; see `memory_of`.
            drop_oldest: Removes the oldest that waits, and returns the memory that it took.

        Returns:
            Whether it may wait; if not, the caller drops it.
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
        """A message that waited is being handled now."""
        self._waiting -= 1

    def end(self, size: int) -> None:
        """A message of this size was handled or dropped."""
        self._held_bytes -= size

    def _has_memory_for(self, size: int) -> bool:
        """Whether `size` more bytes may be held. A single message may have any size."""
        return self._held_bytes == 0 or self._held_bytes + size <= MOST_BYTES

    def _say_dropped(self) -> None:
        if not self._has_dropped:
            self._has_dropped = True
            LOGGER.warning("%s come faster than they are handled: some are dropped", self._what)


UNSENT_BYTES: Final = 1_048_576
"""While there is more unsent output than this, output that can wait is not added."""
FLUSH_SECONDS: Final = 1.0
"""Seconds that the end of a connection waits for a peer that does not read the last output."""
FLUSH_SECONDS_AT_EOF: Final = 5.0
"""The same where the peer has ended its stream and reads on, as a shell's pipeline does."""

_JOINED_BYTES: Final = 262_144
"""Output up to this size is one buffer; of more, each message is one, which copies nothing."""


def take_output(
    connection: ClientConnection | ServerConnection, trace: Trace | None
) -> list[bytes]:
    """Take all output of the core as buffers."""
    if connection.unsent_bytes <= _JOINED_BYTES:
        buffers = [connection.data_to_send()]
    else:
        buffers = connection.buffers_to_send()
    if trace is not None:
        for data in buffers:
            trace.sent(data)
    return buffers


DEFAULT_REQUEST_TIMEOUT: Final = 60.0
"""Seconds without a response after which a request fails; progress restarts them."""
DEFAULT_START_TIMEOUT: Final = 30.0
"""Seconds in which the server must have answered `initialize`."""
DEFAULT_PROBE_TIMEOUT: Final = 10.0
"""Seconds after which a server that does not answer `server/discover` is taken for a legacy one."""
DEFAULT_DRAIN: Final = 1.0
"""Seconds that handlers of a server have to finish after its input has ended."""


def limit_of(seconds: float) -> float | None:
    """Return the core's form of a timeout: None for `math.inf`."""
    return None if seconds == math.inf else seconds


def check_limit(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    """Validate a limit: an integer or a number above zero, or `math.inf` for no limit."""
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
