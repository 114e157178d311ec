"""The times that the adapters of every loop have by default; the core has none."""

import math
from typing import Final

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
