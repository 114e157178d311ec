"""Endpoints that ask their application questions, and functions that answer these questions."""

from typing import Any, TypeVar

from sansmcp.http import (
    EventToStore,
    HTTPEvent,
    LookupEnd,
    LookupEnded,
    RelayEnded,
    ReplayWanted,
    ServerEndpoint,
)
from tests.support.http.server_endpoint import drain, new_endpoint, of, sessions

E = TypeVar("E", bound=HTTPEvent)


def asking(**settings: Any) -> ServerEndpoint:
    """An endpoint that asks for everything that it can ask for, unless `settings` differ."""
    settings.setdefault(
        "sessions", sessions(opening="ask", unknown="ask", event_log="ask", retry_ms=None)
    )
    settings.setdefault("credentials", "ask")
    return new_endpoint(tool_schema="ask", **settings)


def one(kind: type[E], endpoint: ServerEndpoint) -> E:
    """The event of this type, which must be the only one. Events of other types are dropped."""
    (event,) = of(kind, drain(endpoint))
    return event


def ends(endpoint: ServerEndpoint) -> list[LookupEnd]:
    """The causes with which questions and relays have ended."""
    return [event.cause for event in drain(endpoint) if isinstance(event, LookupEnded | RelayEnded)]


def is_empty(endpoint: ServerEndpoint) -> bool:
    """Whether no question is open, and no event is held."""
    return not endpoint.open_questions and not endpoint.carried and endpoint.held_bytes == 0


class Store:
    """An event store of an application, which answers the questions of the endpoint."""

    def __init__(self, endpoint: ServerEndpoint, portion: int = 1_000) -> None:
        self.endpoint = endpoint
        self.portion = portion
        self.events: dict[tuple[Any, int], dict[int, bytes]] = {}
        self.others: list[HTTPEvent] = []
        self.replays = 0

    def keep(self, event: EventToStore) -> None:
        """Store one event. The events of a stream must come in order, and each once."""
        stream = self.events.setdefault((event.session, event.stream), {})
        assert event.event == max(stream, default=event.event - 1) + 1
        stream[event.event] = event.message

    def answer(self, wanted: ReplayWanted) -> bool:
        """Give the next portion of the stored events."""
        self.replays += 1
        stream = self.events.get((wanted.session, wanted.stream))
        if stream is None:
            return self.endpoint.replay(wanted, None)
        rest = [(number, text) for number, text in stream.items() if number > wanted.after]
        portion = rest[: self.portion]
        return self.endpoint.replay(wanted, portion, more=len(portion) < len(rest))

    def serve(self) -> list[HTTPEvent]:
        """Answer all questions of the endpoint, and return all other events."""
        while (event := self.endpoint.next_event()) is not None:
            if isinstance(event, EventToStore):
                self.keep(event)
            elif isinstance(event, ReplayWanted):
                self.answer(event)
            else:
                self.others.append(event)
        others, self.others = self.others, []
        return others
