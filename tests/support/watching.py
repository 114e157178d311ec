"""An observer that is fed with the messages of two sides, and its reports."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from sansmcp import (
    Config,
    JSONObject,
    Observation,
    Observer,
    Side,
    ViolationSeen,
)
from sansmcp.testing import CLIENT_CAPABILITIES, SERVER_CAPABILITIES
from tests.support.wire import INITIALIZED, SERVER_INFO, initialize, result, wire

C, S = Side.CLIENT, Side.SERVER
Step: TypeAlias = tuple[Side, Any]
"""Who sends, and what: a message, or bytes as they are."""

NEWEST: Final = "2025-11-25"


def opening(
    revision: str = NEWEST,
    client: JSONObject = CLIENT_CAPABILITIES,
    server: JSONObject = SERVER_CAPABILITIES,
) -> list[Step]:
    """A whole handshake; the client's first request has the id "init"."""
    return [
        (C, initialize("init", revision, client)),
        (S, result("init", agreement(revision, server))),
        (C, INITIALIZED),
    ]


def agreement(revision: str = NEWEST, server: JSONObject = SERVER_CAPABILITIES) -> JSONObject:
    """The result of `initialize`."""
    return {"protocolVersion": revision, "capabilities": server, "serverInfo": SERVER_INFO}


def taken(observer: Observer) -> list[Observation]:
    """All events that wait."""
    events: list[Observation] = []
    while (event := observer.next_event()) is not None:
        events.append(event)
    return events


def observe(
    *steps: Step,
    from_start: bool = True,
    config: Config | None = None,
    times: Iterable[float] | None = None,
    ended: bool = True,
) -> list[Observation]:
    """All that an observer says of these, each given as a line of its own, and of the end."""
    observer = Observer(config=config, from_start=from_start)
    clock = None if times is None else iter(times)
    for side, message in steps:
        observer.receive_data(side, wire(message), now=None if clock is None else next(clock))
    if ended:
        observer.close()
    return taken(observer)


def accused(events: Iterable[Observation]) -> list[tuple[Side, str]]:
    """The side and the rule of each violation, in order."""
    return [(event.side, event.rule) for event in events if isinstance(event, ViolationSeen)]
