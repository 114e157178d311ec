"""A network that does everything that networks do, between a client and a server, from one seed.

Requests arrive late and out of order, twice or not at all; bytes are cut anywhere; connections
break, seen by both sides at once or by one of them first; the server is started again.
"""

import itertools
from random import Random

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS
from sansmcp.http import (
    ClientExchange,
    MemoryEventLog,
    SendBody,
    SendEnd,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    Sessions,
    SSEDecoder,
)
from tests.support.http.pair import HTTPPair, exchanges_of, new_client
from tests.support.http.server_endpoint import new_endpoint
from tests.support.modern import BOTH


class Weather:
    """Both sides, and what happens between them.

    Attributes:
        is_calm: The network is well, and everybody answers.
        orphans: Sessions that the server has opened, and the client has not heard of.
        primed: Calls of which the client knows where their answer goes on after a break.
        restarts: How often the server was started again.
        unprimed: Something broke of which nobody could know where it goes on.
        waiting: Requests that are on their way.
    """

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.session_ids = itertools.count(1)
        self.served = random.choice(
            [BOTH, LEGACY_REVISIONS, LEGACY_REVISIONS[1:], MODERN_REVISIONS]
        )
        self.spoken = random.choice([BOTH, self.served])
        self.has_log = random.random() < 0.75
        self.answers = random.choice(["auto", "sse"])
        self.pair = HTTPPair(new_client(revisions=self.spoken), self.new_server())
        self.client = self.pair.client
        self.is_calm = self.unprimed = False
        self.restarts = self.orphans = 0
        self.waiting: list[ClientExchange] = []
        self.bytes: dict[ClientExchange, bytes] = {}
        self.decoders: dict[ClientExchange, SSEDecoder] = {}
        self.doubles: list[ServerExchange] = []
        self.gone: list[ServerExchange] = []  # whose end the server has not seen yet
        self.primed: set[object] = set()

    def new_server(self) -> ServerEndpoint:
        """A server that remembers nothing."""
        sessions = Sessions(
            new_id=lambda: f"s{next(self.session_ids)}",
            event_log=MemoryEventLog if self.has_log else None,
            retry_ms=self.random.choice([None, 0, 2000]),
        )
        return new_endpoint(
            revisions=self.served,
            sessions=None if self.served == MODERN_REVISIONS else sessions,
            answers=self.answers,
        )

    def arrive(self, exchange: ClientExchange) -> None:
        """A request arrives, twice now and then, or is lost on the way."""
        fate = 1.0 if self.is_calm else self.random.random()
        if fate < 0.04:
            exchange.receive_failure("connection refused", now=self.pair.now)
            return
        served = self.pair.open(exchange)
        last = dict(exchange.headers).get(b"last-event-id", b"").decode()
        self.decoders[exchange] = SSEDecoder(last_event_id=last)
        if fate < 0.08 and b'"method":"tools/call"' in exchange.body:
            self.doubles.append(self.pair.open(exchange))
            self.pair.wire[exchange] = served

    def bring(self, exchange: ClientExchange) -> bool:
        """Some bytes of a response arrive; whether there were any."""
        rest = self.bytes.pop(exchange, b"")
        if not rest:
            output = self.pair.wire[exchange].next_output()
            match output:
                case SendHead():
                    exchange.receive_head(output.status, output.headers, now=self.pair.now)
                    return True
                case SendEnd():
                    self.over(exchange, is_whole=True)
                    exchange.receive_end(now=self.pair.now)
                    return True
                case None:
                    return False
                case SendBody():
                    rest = output.data
        size = len(rest) if self.is_calm else self.random.randint(1, len(rest))
        if size < len(rest):
            self.bytes[exchange] = rest[size:]
        self.decoders[exchange].feed(rest[:size])
        if self.decoders[exchange].last_event_id:
            self.primed.add(exchange.request)
        exchange.receive_data(rest[:size], now=self.pair.now)
        return True

    def over(self, exchange: ClientExchange, *, is_whole: bool = False) -> ServerExchange:
        """An exchange is off the wire."""
        self.bytes.pop(exchange, None)
        decoder = self.decoders.pop(exchange)
        if exchange.method == "GET" and not decoder.last_event_id:
            self.unprimed = True
        served = self.pair.wire.pop(exchange)
        self.orphans += b'"method":"initialize"' in exchange.body and not is_whole
        return served

    def break_off(self, exchange: ClientExchange) -> None:
        """A connection breaks; who sees it first is a matter of luck."""
        served = self.over(exchange)
        if self.random.random() < 0.5:
            self.gone.append(served)
        else:
            served.receive_disconnect(now=self.pair.now)
        exchange.receive_failure("connection reset", now=self.pair.now)

    def restart(self) -> None:
        """The server is started again, and has forgotten everything."""
        self.restarts += 1
        for exchange in list(self.pair.wire):
            self.over(exchange)
            exchange.receive_failure("connection reset", now=self.pair.now)
        self.doubles.clear()
        self.gone.clear()
        self.forget()
        self.pair.server = self.new_server()

    def flush(self) -> None:
        """What both sides have to say and to do, that takes no time."""
        for aborted in self.client.aborts():
            if aborted in self.pair.wire:
                self.over(aborted).receive_disconnect(now=self.pair.now)
        self.waiting += exchanges_of(self.client)
        self.waiting = [exchange for exchange in self.waiting if not exchange.over]
        for double in self.doubles:
            while double.next_output() is not None:
                pass

    def forget(self) -> None:
        """There is a new server: what the one before was doing is forgotten."""
