"""The times that the adapters of every loop have by default, and checks of those that are given."""

from __future__ import annotations

import math
from typing import Any, Final

import attrs

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


def check_times(**times: float) -> None:
    """Raise `ValueError` unless each is a time above zero; `math.inf` is no limit."""
    for name, seconds in times.items():
        if not _is_number(seconds) or not seconds > 0:
            raise ValueError(
                f"{name} must be greater than zero, and a number of seconds (math.inf: no limit), "
                f"not {seconds!r}"
            )


def check_waits(**times: float) -> None:
    """Raise `ValueError` unless each is a time; 0 is none."""
    for name, seconds in times.items():
        if not _is_number(seconds) or not seconds >= 0:
            raise ValueError(
                f"{name} must not be negative, and a number of seconds, not {seconds!r}"
            )


def check_count(name: str, count: int, *, least: int) -> None:
    """Raise `ValueError` unless it is an integer of at least this value."""
    if type(count) is not int or count < least:
        raise ValueError(f"{name} must be an integer of {least} or more, not {count!r}")


def check_limit(_instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    """The validator of a limit: an integer or a time above zero, and `math.inf` for none."""
    is_whole = attribute.type in (int, "int") and value != math.inf
    if not _is_number(value) or not value > 0 or (is_whole and not isinstance(value, int)):
        kind = "an integer" if is_whole else "a number"
        raise ValueError(
            f"{attribute.name} must be greater than zero, and {kind} (math.inf: no limit), "
            f"not {value!r}"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
