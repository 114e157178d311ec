"""Changes that one worker publishes, and of which the clients of all workers are notified."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from sansmcp import (
    Change,
    JSONObject,
    LocalProtocolError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterHost
from ._commands import Command, Engine, Keys
from ._entries import Fields

_MOST: Final = 1_000
"""Changes in their stream."""
_SECONDS: Final = 3600
_KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (ToolsListChanged, PromptsListChanged, ResourcesListChanged, ResourceUpdated)
}


class Changes:
    """Tells changes to other workers, and the clients of this one of theirs.

    Args:
        host: Runs the endpoint.
        engine: Sends commands to Redis.
        keys: The names of keys.
        worker: The id of this worker.
    """

    def __init__(self, host: ClusterHost, engine: Engine, keys: Keys, worker: str) -> None:
        self._host: Final = host
        self._engine: Final = engine
        self._key: Final = keys.changes
        self._worker: Final = worker
        self._waiting = 0
        self._has_dropped = False

    def publish(self, change: Change, meta: JSONObject | None) -> None:
        """Tell the other workers of a change; while Redis is away, of the first ones only."""
        if self._waiting >= _MOST:
            if not self._has_dropped:
                self._has_dropped = True
                LOGGER.warning("%d changes wait for Redis: more are not told to others", _MOST)
            return
        self._waiting += 1
        uri = getattr(change, "uri", None)
        subscribed = getattr(change, "subscribed", None)
        told = json.dumps([self._worker, type(change).__name__, uri, subscribed, meta])
        words = ("XADD", self._key, "MAXLEN", "~", _MOST, "*", "c", told)
        self._engine.put(Command(words, self._told, is_lasting=True))
        self._engine.put(Command(("PEXPIRE", self._key, _SECONDS * 1000), is_lasting=True))

    def _told(self, _outcome: Any) -> None:
        self._waiting -= 1
        self._has_dropped = False

    def receive(self, entries: Iterable[Fields]) -> None:
        """Tell the clients of this worker of changes that others have published."""
        for fields in entries:
            try:
                worker, name, uri, subscribed, meta = json.loads(fields[1])
                kind = _KINDS[name]
                change = kind(uri, subscribed) if kind is ResourceUpdated else kind()
                if worker != self._worker:
                    self._host.endpoint.publish(change, meta=meta, now=self._host.now())
            except (KeyError, TypeError, ValueError, RecursionError, LocalProtocolError) as error:
                LOGGER.warning("a change of another worker cannot be published here: %s", error)
        self._host.turn()
