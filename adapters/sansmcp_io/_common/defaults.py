"""The times that the adapters of every loop have by default, and checks of those that are given."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import attrs

from sansmcp import Config

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


def check_limits(limits: object, kind: type[object]) -> None:
    """Raise `ValueError` unless these are limits of this class, or None."""
    if limits is not None and not isinstance(limits, kind):
        raise ValueError(f"limits must be {kind.__name__} or None, not {limits!r:.80}")


def check_path(path: object) -> None:
    """Raise `ValueError` unless it is the path of a URL."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"the path of an endpoint begins with /, unlike {path!r}")


def check_given(**given: object) -> None:
    """Look at arguments of the adapters by their names, before anything is opened or started.

    Raises:
        ValueError: One is of another kind than its name stands for. What is in it is for others to
            look at.
    """
    for name, value in given.items():
        is_accepted, accepted = _KINDS[name]
        if not is_accepted(value):
            raise ValueError(f"{name} must be {accepted}, not {value!r:.80}")


def is_checked(name: str) -> bool:
    """Whether `check_given` knows what an argument of this name is."""
    return name in _KINDS


def kept(value: Any) -> Any:
    """Several items as a tuple, which can be read once more; anything else as it is."""
    return tuple(value) if _is_several(value) else value


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


def _is_several(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_reread(value: object) -> bool:
    """Whether it has several items, and has them again when it is read once more."""
    return _is_several(value) and isinstance(value, Collection)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_object_or_none(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _is_string_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_mapping_or_none(value: object) -> bool:
    return value is None or isinstance(value, Mapping)


def _is_function_or_none(value: object) -> bool:
    return value is None or callable(value)


def _is_config_or_none(value: object) -> bool:
    return value is None or isinstance(value, Config)


def _is_stderr_mode(value: object) -> bool:
    return isinstance(value, str) and value in ("inherit", "capture", "ignore")


def _is_about_proxies(value: object) -> bool:
    return isinstance(value, str) and value in ("refuse", "ignore")


def _is_tls_or_none(value: object) -> bool:
    ssl = sys.modules.get("ssl")  # whoever has a context has imported it
    return value is None or (ssl is not None and isinstance(value, ssl.SSLContext))


def _is_port(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_PORT


_MAX_PORT: Final = 65_535
_STRINGS: Final = "a list or a tuple of strings"
_FUNCTION: Final = (_is_function_or_none, "a callable or None")
_KINDS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "handler": (callable, "a callable"),
    "info": (_is_object, "a dict"),
    "capabilities": (_is_object_or_none, "a dict or None"),
    "instructions": (_is_string_or_none, "a string or None"),
    "revisions": (_is_reread, _STRINGS),
    "requires": (_is_several, _STRINGS),
    "config": (_is_config_or_none, "a Config or None"),
    **dict.fromkeys(
        (
            *("on_request", "on_notification", "on_unauthorized", "on_ready", "on_stderr"),
            *("on_listening", "authenticate", "principal_key", "tool_schema"),
        ),
        _FUNCTION,
    ),
    "command": (_is_reread, "the program and its arguments, as a list or a tuple"),
    "env": (_is_mapping_or_none, "a mapping or None"),
    "stderr": (_is_stderr_mode, "'inherit' or 'capture' or 'ignore'"),
    "proxies": (_is_about_proxies, "'refuse' or 'ignore'"),
    "tls": (_is_tls_or_none, "an ssl.SSLContext or None"),
    "port": (_is_port, f"an integer from 0 to {_MAX_PORT}"),
}
