"""Checks of options, and the options of every session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import attrs

from sansmcp import Config, IncomingRequest, Tasks

from .._common.bounds import is_number
from .._common.call import NotificationHandler


@attrs.frozen
class SessionOptions:
    """The options of a session: what to do with the messages of its peer.

    Attributes:
        handler: Serves the peer's requests.
        call_type: Makes the call that the handler gets, from the session and a request.
        on_notification: Called with method and params of each notification.
        context: Becomes `context` of each call.
        request_timeout: The default timeout of requests to the peer, in seconds.
        most_running: The number of tasks that are worked on at a time; 0: there are no tasks.
    """

    handler: Callable[[Any], Any]
    call_type: Callable[[Any, IncomingRequest], Any]
    on_notification: NotificationHandler | None
    context: Any
    request_timeout: float
    most_running: int = 0


class Checked:
    """Options that are checked before anything is opened or started."""

    __slots__ = ()

    def check(self) -> None:
        """Check the options by their names.

        Raises:
            ValueError: An option has a wrong type or value.
        """
        kind: Any = type(self)  # which attrs has made
        given = {field.name: getattr(self, field.name) for field in attrs.fields(kind)}
        check_given(**{name: value for name, value in given.items() if is_checked(name)})
        check_times(**{name: given[name] for name in given if name in _TIMES})
        check_waits(**{name: given[name] for name in given if name in _WAITS})
        for name in given:
            if name in _COUNTS:
                check_count(name, given[name], least=_COUNTS[name])


_TIMES: Final = ("request_timeout", "start_timeout", "probe_timeout", "lookup_timeout")
_WAITS: Final = ("drain", "terminate_after", "kill_after")
_COUNTS: Final[Mapping[str, int]] = {"restarts": 0, "threads": 1, "running_tasks": 1}


def check_times(**times: float) -> None:
    """Raise `ValueError` unless each is a time above zero; `math.inf` is no limit."""
    for name, seconds in times.items():
        if not is_number(seconds) or not seconds > 0:
            raise ValueError(
                f"{name} must be greater than zero, and a number of seconds (math.inf: no limit), "
                f"not {seconds!r}"
            )


def check_waits(**times: float) -> None:
    """Raise `ValueError` unless each is a number of seconds, which may be 0."""
    for name, seconds in times.items():
        if not is_number(seconds) or not seconds >= 0:
            raise ValueError(
                f"{name} must not be negative, and a number of seconds, not {seconds!r}"
            )


def check_count(name: str, count: int, *, least: int) -> None:
    """Raise `ValueError` unless a value is an integer of at least `least`."""
    if type(count) is not int or count < least:
        raise ValueError(f"{name} must be an integer of {least} or more, not {count!r}")


def check_limits(limits: object, kind: type[object]) -> None:
    """Raise `ValueError` unless these are limits of this class, or None."""
    if limits is not None and not isinstance(limits, kind):
        raise ValueError(f"limits must be {kind.__name__} or None, not {limits!r:.80}")


def check_given(**given: object) -> None:
    """Check the types of arguments by their names.

    Raises:
        ValueError: An argument has a wrong type. Its content is checked elsewhere.
    """
    for name, value in given.items():
        is_accepted, accepted = _KINDS[name]
        if not is_accepted(value):
            raise ValueError(f"{name} must be {accepted}, not {value!r:.80}")


def is_checked(name: str) -> bool:
    """Whether `check_given` checks the type of an argument of this name."""
    return name in _KINDS


def check_path(path: object) -> None:
    """Raise `ValueError` unless a value is the path of a URL."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"the path of an endpoint begins with /, unlike {path!r}")


def kept(value: Any) -> Any:
    """Return an iterable as a tuple, which can be read again; any other value unchanged."""
    return tuple(value) if _is_several(value) else value


def _is_several(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_reread(value: object) -> bool:
    """Whether a value is a collection that can be read again."""
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


def _is_cache_or_none(value: object) -> bool:
    if value is None:
        return True
    from sansmcp import Cache, CachePartition  # few programs have a cache

    return isinstance(value, Cache | CachePartition)


def _is_about_tasks(value: object) -> bool:
    return isinstance(value, bool | Tasks)


def _is_stderr_mode(value: object) -> bool:
    return isinstance(value, str) and value in ("inherit", "capture", "ignore")


def _is_about_proxies(value: object) -> bool:
    return isinstance(value, str) and value in ("use", "refuse", "ignore")


def _is_tls_or_none(value: object) -> bool:
    ssl = sys.modules.get("ssl")  # a program with a context has imported it
    return value is None or (ssl is not None and isinstance(value, ssl.SSLContext))


def _is_cluster_or_none(value: object) -> bool:
    return value is None or callable(getattr(value, "new_member", None))


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
    "cache": (_is_cache_or_none, "a Cache, a partition of one or None"),
    **dict.fromkeys(
        (
            *("on_request", "on_notification", "on_unauthorized", "on_ready", "on_stderr"),
            *("on_listening", "authenticate", "principal_key", "tool_schema", "verify_token"),
        ),
        _FUNCTION,
    ),
    "command": (_is_reread, "the program and its arguments, as a list or a tuple"),
    "env": (_is_mapping_or_none, "a mapping or None"),
    "stderr": (_is_stderr_mode, "'inherit' or 'capture' or 'ignore'"),
    "proxies": (_is_about_proxies, "'use' or 'refuse' or 'ignore'"),
    "tls": (_is_tls_or_none, "an ssl.SSLContext or None"),
    "tasks": (_is_about_tasks, "True, False or Tasks"),
    "cluster": (_is_cluster_or_none, "a sansmcp_io.redis.Cluster or None"),
    "port": (_is_port, f"an integer from 0 to {_MAX_PORT}"),
}
