"""An unreliable network between a client and a server, driven by one seed.

Requests arrive late and out of order, twice or not at all; bytes are cut anywhere; connections
break, seen by both sides at once or by one of them first; the server is started again.
"""

import itertools
from random import Random

from sansmcp import LEGACY_REVISIONS, MODERN_REVISIONS
from sansmcp.http import MemoryEventLog, ServerEndpoint, Sessions, SSEDecoder
from sansmcp.testing import HTTPExchange, HTTPPair
from tests.support.http.client_endpoint import new_client
from tests.support.http.server_endpoint import new_endpoint
from tests.support.modern import BOTH


class UnreliableNetwork:
    """Both sides, and what happens between them.

    Attributes:
        decoders: For each response that is under way, what the client has read of it.
        doubles: Copies of requests, whose responses nobody reads.
        gone: Exchanges that have broken, and the server has not seen it yet.
        is_reliable: The network loses nothing, and both applications answer.
        orphans: Sessions that the server has opened, and the client has not heard of.
        primed: Calls of which the client knows where their answer goes on after a break.
        restarts: How often the server was started again.
        unprimed: Something broke of which nobody could know where it goes on.
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
        self.client = new_client(revisions=self.spoken)
        self.pair = HTTPPair(self.client, self.new_server(), connected=False)
        self.is_reliable = self.unprimed = False
        self.restarts = self.orphans = 0
        self.decoders: dict[HTTPExchange, SSEDecoder] = {}
        self.doubles: list[HTTPExchange] = []
        self.gone: list[HTTPExchange] = []
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

    @property
    def waiting(self) -> list[HTTPExchange]:
        """The exchanges whose requests are on their way."""
        return [one for one in self.pair.exchanges if one.server is None]

    @property
    def answering(self) -> list[HTTPExchange]:
        """The exchanges whose requests have arrived, and whose responses are under way."""
        return [one for one in self.pair.exchanges if one in self.decoders and not one.client.over]

    def arrive(self, exchange: HTTPExchange) -> None:
        """A request arrives, twice now and then, or is lost on the way."""
        fate = 1.0 if self.is_reliable else self.random.random()
        if fate < 0.04:
            exchange.cut("connection refused")
            return
        exchange.deliver_request()
        last = dict(exchange.client.headers).get(b"last-event-id", b"").decode()
        self.decoders[exchange] = SSEDecoder(last_event_id=last)
        if fate < 0.08 and b'"method":"tools/call"' in exchange.client.body:
            double = HTTPExchange(self.pair, exchange.client)
            double.deliver_request()
            self.doubles.append(double)

    def bring(self, exchange: HTTPExchange) -> bool:
        """Some bytes of a response arrive, or its head alone; whether there was anything."""
        exchange.collect()
        size = len(exchange.response)
        if not self.is_reliable:
            size = self.random.randint(0, size)
        self.read(exchange, size)
        moved = exchange.deliver_response(size)
        if exchange.over:
            self.finish(exchange, is_whole=True)
        return moved

    def read(self, exchange: HTTPExchange, size: int) -> None:
        """The client reads bytes of a response: it learns where the stream would go on."""
        decoder = self.decoders[exchange]
        decoder.feed(bytes(exchange.response[:size]))
        if decoder.last_event_id:
            self.primed.add(exchange.client.request)

    def finish(self, exchange: HTTPExchange, *, is_whole: bool = False) -> None:
        """Nothing more of an exchange arrives at the client."""
        decoder = self.decoders.pop(exchange)
        if exchange.client.method == "GET" and not decoder.last_event_id:
            self.unprimed = True
        self.orphans += b'"method":"initialize"' in exchange.client.body and not is_whole

    def break_off(self, exchange: HTTPExchange) -> None:
        """A connection breaks; who sees it first is a matter of luck."""
        exchange.collect()
        if exchange.response and self.random.random() < 0.3:
            # All bytes of the response have arrived, and only its end has not.
            exchange.deliver_response(0)
            self.read(exchange, len(exchange.response))
            exchange.client.receive_data(bytes(exchange.response), now=self.pair.now)
        self.finish(exchange)
        is_seen = self.random.random() < 0.5
        exchange.cut("connection reset", server=is_seen)
        if not is_seen:
            self.gone.append(exchange)

    def restart(self) -> None:
        """The server is started again, and has forgotten everything."""
        self.restarts += 1
        for exchange in list(self.decoders):
            self.finish(exchange)
            exchange.cut("connection reset")
        self.doubles.clear()
        self.all_seen()
        self.forget()
        self.pair.server = self.new_server()

    def all_seen(self) -> None:
        """The server sees of every broken connection that it is."""
        while self.gone:
            self.gone.pop().cut(client=False)

    def flush(self) -> None:
        """What both sides have to say and to do, that takes no time."""
        _ = self.pair.exchanges  # which ends what the client has given up
        for exchange in list(self.decoders):
            if exchange.over:
                self.finish(exchange)
        for double in self.doubles:
            double.collect()

    def forget(self) -> None:
        """There is a new server: what the one before was doing is forgotten."""
