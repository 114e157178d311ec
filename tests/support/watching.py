"""Feeds an observer with the messages of two sides, and returns what it reports."""

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
"""The sender, and a message or raw bytes."""

NEWEST: Final = "2025-11-25"


def opening(
    revision: str = NEWEST,
    client: JSONObject = CLIENT_CAPABILITIES,
    server: JSONObject = SERVER_CAPABILITIES,
) -> list[Step]:
    """A complete handshake. The first request of the client has the id "init"."""
    return [
        (C, initialize("init", revision, client)),
        (S, result("init", agreement(revision, server))),
        (C, INITIALIZED),
    ]


def agreement(revision: str = NEWEST, server: JSONObject = SERVER_CAPABILITIES) -> JSONObject:
    """The result of `initialize`."""
    return {"protocolVersion": revision, "capabilities": server, "serverInfo": SERVER_INFO}


def taken(observer: Observer) -> list[Observation]:
    """All events that wait in an observer."""
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
    """All events of an observer that gets these messages, each as a line, and then the ends."""
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
