"""An unreliable network between a client and a server, driven by one seed.

Requests arrive late, in another order, twice or never; bytes are cut anywhere; connections break,
which both sides see at once, or one of them first; the server is restarted.
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
    """Both sides, and the network between them.

    Attributes:
        decoders: By open exchange, a decoder of the part of the response that the client has read.
        doubles: Copies of requests. Nothing reads their responses.
        gone: Exchanges that have broken without the server having seen it.
        is_reliable: The network loses nothing, and both applications answer.
        orphans: The number of sessions that the server has opened, unknown to the client.
        primed: Requests whose client has an event id with which it can resume the response.
        restarts: How often the server was restarted.
        unprimed: A stream has broken that cannot be resumed, since it had no event id.
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
        """A server without any state."""
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
        """The exchanges whose requests have not arrived yet."""
        return [one for one in self.pair.exchanges if one.server is None]

    @property
    def answering(self) -> list[HTTPExchange]:
        """The exchanges whose requests have arrived, and whose responses are not complete."""
        return [one for one in self.pair.exchanges if one in self.decoders and not one.client.over]

    def arrive(self, exchange: HTTPExchange) -> None:
        """Deliver a request, sometimes twice, or lose it."""
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
        """Deliver some bytes of a response, or its head alone.

        Returns whether there was anything to deliver.
        """
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
        """Note the event id that the client reads in these bytes, with which it could resume."""
        decoder = self.decoders[exchange]
        decoder.feed(bytes(exchange.response[:size]))
        if decoder.last_event_id:
            self.primed.add(exchange.client.request)

    def finish(self, exchange: HTTPExchange, *, is_whole: bool = False) -> None:
        """Note that the client gets nothing more of an exchange."""
        decoder = self.decoders.pop(exchange)
        if exchange.client.method == "GET" and not decoder.last_event_id:
            self.unprimed = True
        self.orphans += b'"method":"initialize"' in exchange.client.body and not is_whole

    def break_off(self, exchange: HTTPExchange) -> None:
        """Break a connection. Either both sides see it, or the server sees it later."""
        exchange.collect()
        if exchange.response and self.random.random() < 0.3:
            # All bytes of the response have arrived, but not its end.
            exchange.deliver_response(0)
            self.read(exchange, len(exchange.response))
            exchange.client.receive_data(bytes(exchange.response), now=self.pair.now)
        self.finish(exchange)
        is_seen = self.random.random() < 0.5
        exchange.cut("connection reset", server=is_seen)
        if not is_seen:
            self.gone.append(exchange)

    def restart(self) -> None:
        """Restart the server, which loses its state."""
        self.restarts += 1
        for exchange in list(self.decoders):
            self.finish(exchange)
            exchange.cut("connection reset")
        self.doubles.clear()
        self.all_seen()
        self.forget()
        self.pair.server = self.new_server()

    def all_seen(self) -> None:
        """Let the server see all broken connections."""
        while self.gone:
            self.gone.pop().cut(client=False)

    def flush(self) -> None:
        """Move everything that both sides have to send, without passing time."""
        _ = self.pair.exchanges  # reading it ends the exchanges that the client has closed
        for exchange in list(self.decoders):
            if exchange.over:
                self.finish(exchange)
        for double in self.doubles:
            double.collect()

    def forget(self) -> None:
        """Forget the work of the server before a restart."""
