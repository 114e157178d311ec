"""The log messages that a client wants: by `logging/setLevel`, or by each modern request.

Source: MCP 2025-11-25, server/utilities/logging; MCP 2026-07-28, server/utilities/logging.
"""

from __future__ import annotations

from typing import Final

import attrs

from .._rules.messages import UNKNOWN_WISH, is_level
from .._spec.registry import LOG_LEVELS
from .._wire.values import JSONObject
from ._history import SeenRequest, SideHistory
from ._observations import Observations

LOG: Final = "notifications/message"


@attrs.define(eq=False, repr=False)
class AgreedLogLevel:
    """The level below which a legacy server has certainly agreed not to log.

    The server may serve requests that are open together in any order. So the lowest of their
    levels counts once all are answered; while one is open, nothing is certain.
    """

    _observations: Observations
    _n_open: int = attrs.field(default=0, init=False)
    _lowest: int | None = attrs.field(default=None, init=False)
    _agreed: int = attrs.field(default=0, init=False)

    def take_request(self, sender: SideHistory, request: SeenRequest, params: JSONObject) -> None:
        """A client sent `logging/setLevel`."""
        request.subject = params.get("level")
        self._n_open += 1
        if not is_level(request.subject):
            self._observations.add_violation(sender.side, UNKNOWN_WISH, request.method, request.id)

    def take_result(self, request: SeenRequest, _result: JSONObject) -> None:
        """The request was answered with a result."""
        level: object = request.subject
        severity = LOG_LEVELS.get(level, 0) if isinstance(level, str) else 0
        self._lowest = severity if self._lowest is None else min(severity, self._lowest)
        self._close()

    def take_error(self, _request: SeenRequest) -> None:
        """The request was answered with an error."""
        self._close()

    def _close(self) -> None:
        self._n_open -= 1
        if not self._n_open and self._lowest is not None:
            self._agreed, self._lowest = self._lowest, None

    def lose(self) -> None:
        """Nothing is certain from here on."""
        self._n_open += 1

    def forbids(self, level: str) -> bool:
        """Whether a message of this level is below the agreed one."""
        return not self._n_open and LOG_LEVELS[level] < self._agreed


@attrs.define(eq=False, repr=False)
class WantedLogLevels:
    """How many modern requests that want log messages of each level may still be served."""

    _n_open: list[int] = attrs.field(factory=lambda: [0] * len(LOG_LEVELS), init=False)

    def add(self, severity: int) -> None:
        """A request that wants messages of this severity and above was sent."""
        self._n_open[severity] += 1

    def remove(self, severity: int) -> None:
        """Such a request was answered."""
        self._n_open[severity] -= 1

    def permit(self, level: str) -> bool:
        """Whether an open request may want a message of this level."""
        return any(self._n_open[: LOG_LEVELS[level] + 1])
