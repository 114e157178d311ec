"""What every session is told, and how options are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from sansmcp import IncomingRequest

from .._common.call import NotificationHandler
from .._common.defaults import check_count, check_given, check_times, check_waits, is_checked


@attrs.frozen
class SessionOptions:
    """What a session does with what its peer sends.

    Attributes:
        handler: Serves the peer's requests.
        call_type: From the session and a request to what the handler is called with.
        on_notification: Called with method and params of each notification.
        context: Becomes `context` of each call.
        request_timeout: For requests to the peer that say nothing else; seconds.
    """

    handler: Callable[[Any], Any]
    call_type: Callable[[Any, IncomingRequest], Any]
    on_notification: NotificationHandler | None
    context: Any
    request_timeout: float


class Checked:
    """Options that are looked at before anything is opened or started."""

    __slots__ = ()

    def check(self) -> None:
        """Look at the options by their names.

        Raises:
            ValueError: One is of another kind than its name stands for.
        """
        kind: Any = type(self)  # which attrs has made
        given = {field.name: getattr(self, field.name) for field in attrs.fields(kind)}
        check_given(**{name: value for name, value in given.items() if is_checked(name)})
        check_times(**{name: given[name] for name in given if name in _TIMES})
        check_waits(**{name: given[name] for name in given if name in _WAITS})
        for name in given:
            if name in _COUNTS:
                check_count(name, given[name], least=_COUNTS[name])


_TIMES: Final = ("request_timeout", "start_timeout", "probe_timeout")
_WAITS: Final = ("drain", "terminate_after", "kill_after")
_COUNTS: Final[Mapping[str, int]] = {"restarts": 0, "threads": 1}
