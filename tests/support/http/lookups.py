"""Endpoints that ask their application, and what tests do with the questions."""

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
    """An endpoint that asks for all that it can ask for, where nothing else is said."""
    settings.setdefault(
        "sessions", sessions(opening="ask", unknown="ask", event_log="ask", retry_ms=None)
    )
    settings.setdefault("credentials", "ask")
    return new_endpoint(tool_schema="ask", **settings)


def one(kind: type[E], endpoint: ServerEndpoint) -> E:
    """The one event of this type that waits; all others are forgotten."""
    (event,) = of(kind, drain(endpoint))
    return event


def ends(endpoint: ServerEndpoint) -> list[LookupEnd]:
    """Why questions need no answer any more, and why relays have ended."""
    return [event.cause for event in drain(endpoint) if isinstance(event, LookupEnded | RelayEnded)]


def is_empty(endpoint: ServerEndpoint) -> bool:
    """Whether nothing waits, and nothing is held."""
    return not endpoint.open_questions and not endpoint.carried and endpoint.held_bytes == 0


class Store:
    """A store of events as an application has it, with the answers that it gives."""

    def __init__(self, endpoint: ServerEndpoint, portion: int = 1_000) -> None:
        self.endpoint = endpoint
        self.portion = portion
        self.events: dict[tuple[Any, int], dict[int, bytes]] = {}
        self.others: list[HTTPEvent] = []
        self.replays = 0

    def keep(self, event: EventToStore) -> None:
        """Store one event: events of a stream come in order, and each once."""
        stream = self.events.setdefault((event.session, event.stream), {})
        assert event.event == max(stream, default=event.event - 1) + 1
        stream[event.event] = event.message

    def answer(self, wanted: ReplayWanted) -> bool:
        """Give the next portion of what is stored."""
        self.replays += 1
        stream = self.events.get((wanted.session, wanted.stream))
        if stream is None:
            return self.endpoint.replay(wanted, None)
        rest = [(number, text) for number, text in stream.items() if number > wanted.after]
        portion = rest[: self.portion]
        return self.endpoint.replay(wanted, portion, more=len(portion) < len(rest))

    def serve(self) -> list[HTTPEvent]:
        """Do what is asked for, until there is nothing; all other events."""
        while (event := self.endpoint.next_event()) is not None:
            if isinstance(event, EventToStore):
                self.keep(event)
            elif isinstance(event, ReplayWanted):
                self.answer(event)
            else:
                self.others.append(event)
        others, self.others = self.others, []
        return others
