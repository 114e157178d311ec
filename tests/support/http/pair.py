"""A client endpoint and a server endpoint, wired together in memory.

What happens between them is told in steps, so that a test may do something else in between: hold
an exchange back, cut its bytes, lose it.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from sansmcp import ConnectionClosed, Ready
from sansmcp.http import (
    ClientEndpoint,
    ClientExchange,
    ClientHTTPEvent,
    HTTPEvent,
    SendBody,
    SendEnd,
    SendHead,
    ServerEndpoint,
    ServerExchange,
)
from tests.support.http.server_endpoint import new_endpoint
from tests.support.modern import BOTH
from tests.support.wire import CLIENT_CAPABILITIES, CLIENT_INFO

URL: Final = "http://localhost/mcp"
E = TypeVar("E", bound=ClientHTTPEvent)


def new_client(url: str = URL, **settings: Any) -> ClientEndpoint:
    """A client of both eras that has declared all it can, where nothing else is said."""
    settings.setdefault("capabilities", CLIENT_CAPABILITIES)
    settings.setdefault("revisions", BOTH)
    return ClientEndpoint(url, info=CLIENT_INFO, **settings)


def events_of(client: ClientEndpoint) -> list[ClientHTTPEvent]:
    """All events of a client that wait."""
    events: list[ClientHTTPEvent] = []
    while (event := client.next_event()) is not None:
        events.append(event)
    return events


def only(kind: type[E], events: Iterable[ClientHTTPEvent]) -> E:
    """The one event of a kind."""
    (event,) = [event for event in events if isinstance(event, kind)]
    return event


def exchanges_of(client: ClientEndpoint) -> list[ClientExchange]:
    """All exchanges that a client wants made now."""
    exchanges: list[ClientExchange] = []
    while (exchange := client.next_exchange()) is not None:
        exchanges.append(exchange)
    return exchanges


class HTTPPair:
    """Both sides, and the exchanges between them.

    Attributes:
        client: The client.
        now: The time of both.
        server: The server.
        wire: The exchanges under way, with what the server knows of each.
    """

    def __init__(self, client: ClientEndpoint, server: ServerEndpoint) -> None:
        self.client = client
        self.server = server
        self.now = 0.0
        self.wire: dict[ClientExchange, ServerExchange] = {}

    # ---------------------------------------------------------------------------------- steps

    def open(self, exchange: ClientExchange) -> ServerExchange:
        """The request of an exchange arrives."""
        headers = [(b"host", exchange.authority.encode()), *exchange.headers]
        served = self.server.exchange(exchange.method, exchange.target, headers, now=self.now)
        self.wire[exchange] = served
        if exchange.body:
            served.receive_data(exchange.body)
        served.receive_end()
        return served

    def abort(self, exchange: ClientExchange) -> None:
        """The client has closed the connection of an exchange."""
        served = self.wire.pop(exchange, None)
        if served is not None:
            served.receive_disconnect(now=self.now)

    def lose(self, exchange: ClientExchange) -> None:
        """The connection of an exchange breaks, as both sides see."""
        self.abort(exchange)
        exchange.receive_failure("the connection was reset", now=self.now)

    def bring(self, exchange: ClientExchange) -> bool:
        """One piece of a response arrives; whether there was any."""
        served = self.wire[exchange]
        output = served.next_output()
        match output:
            case SendHead():
                exchange.receive_head(output.status, output.headers, now=self.now)
            case SendBody():
                exchange.receive_data(output.data, now=self.now)
            case SendEnd():
                del self.wire[exchange]
                exchange.receive_end(now=self.now)
            case None:
                return False
        return True

    # ------------------------------------------------------------------------------ all of them

    def settle(self) -> None:
        """Bring everything that is on its way, until nothing is."""
        moved = True
        while moved:
            moved = False
            for exchange in self.client.aborts():
                self.abort(exchange)
                moved = True
            for exchange in exchanges_of(self.client):
                self.open(exchange)
                moved = True
            for exchange in list(self.wire):
                while exchange in self.wire and not exchange.over and self.bring(exchange):
                    moved = True

    def pass_time(self, seconds: float) -> None:
        """Let time go by on both sides, deadline after deadline."""
        until = self.now + seconds
        while True:
            self.settle()
            deadlines = [self.client.next_timeout(), self.server.next_timeout()]
            due = [deadline for deadline in deadlines if deadline is not None and deadline <= until]
            if not due:
                break
            self.now = max(self.now, min(due))
            self.client.handle_timeout(self.now)
            self.server.handle_timeout(self.now)
        self.now = until
        self.client.handle_timeout(until)
        self.server.handle_timeout(until)
        self.settle()

    def events(self) -> list[ClientHTTPEvent]:
        """What the client has to say."""
        return events_of(self.client)

    def served(self) -> list[HTTPEvent]:
        """What the server has to say."""
        events: list[HTTPEvent] = []
        while (event := self.server.next_event()) is not None:
            events.append(event)
        return events

    def start(self, **how: Any) -> Ready:
        """Open the conversation; nothing else is waiting then."""
        self.client.start(now=self.now, **how)
        self.settle()
        self.served()
        return only(Ready, self.events())

    def close(self) -> None:
        """End it, and look that nothing is left."""
        self.client.close(now=self.now)
        assert any(isinstance(event, ConnectionClosed) for event in self.events())
        self.settle()
        assert not self.client.exchanges
        assert not self.client.pending_requests
        assert self.client.next_timeout() is None


def pair(*, client: dict[str, Any] | None = None, **server: Any) -> HTTPPair:
    """A client and a server, not opened."""
    return HTTPPair(new_client(**(client or {})), new_endpoint(**server))


def opened(*, client: dict[str, Any] | None = None, **server: Any) -> HTTPPair:
    """A client and a server that have been opened."""
    both = pair(client=client, **server)
    both.start()
    return both
