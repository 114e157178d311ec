"""A server on standard input and output, on the reactor of Twisted."""

# pyright: basic, reportArgumentType=false
# mypy: disable-error-code="no-untyped-call, import-untyped"
# Twisted's interfaces are those of zope, which type checkers do not follow.

import sys
from typing import Any

from shop import CAPABILITIES, INFO, STEPS, answer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import Protocol
from twisted.internet.stdio import StandardIO
from twisted.internet.task import react
from zope.interface import implementer

from sansmcp import IncomingRequest, RequestCancelled, RequestReceived, ServerConnection, State


# -- protocol
@implementer(IHalfCloseableProtocol)
class MCPServer(Protocol):
    """Carries bytes between the transport and the connection, and the time."""

    transport: Any
    timer: Any

    def __init__(self, reactor: Any) -> None:
        self.reactor, self.timer = reactor, None
        self.over: Deferred[None] = Deferred()
        self.mcp = ServerConnection(info=INFO, capabilities=CAPABILITIES, wake=self.turn)

    def dataReceived(self, data: bytes) -> None:
        self.mcp.receive_data(data, now=self.reactor.seconds())

    def readConnectionLost(self) -> None:
        self.mcp.receive_eof(drain=1.0, now=self.reactor.seconds())

    def writeConnectionLost(self) -> None:
        self.mcp.send_failed()

    def connectionLost(self, reason: Any = None) -> None:
        self.over.callback(None)

    def turn(self) -> None:
        """Take the events and output, and set the timer for the next deadline."""
        while (event := self.mcp.next_event()) is not None:
            if isinstance(event, RequestReceived):
                self.begin(event.request)
            elif isinstance(event, RequestCancelled):
                self.stop(event.request)
        self.transport.write(self.mcp.data_to_send())
        self.set_timer()
        if self.mcp.state is State.CLOSED:
            self.transport.loseConnection()

    def set_timer(self) -> None:
        """Keep one timer, for the next deadline: the one before is cancelled, or they would pile
        up."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if (deadline := self.mcp.next_timeout()) is not None:
            wait = max(0.0, deadline - self.reactor.seconds())
            self.timer = self.reactor.callLater(wait, self.keep_time)

    def keep_time(self) -> None:
        self.timer = None
        self.mcp.handle_timeout(self.reactor.seconds())
        self.set_timer()  # a deadline may have been put off meanwhile

    # -- handler
    def begin(self, request: IncomingRequest) -> None:
        self.step(request, 1, STEPS if request.params.get("name") == "count" else 0)

    def step(self, request: IncomingRequest, step: int, last: int) -> None:
        """Do slow work in steps, between which the reactor runs."""
        if step > last:
            answer(self.mcp, request)
        else:
            self.mcp.send_progress(request, step, total=last, now=self.reactor.seconds())
            request.data = self.reactor.callLater(0.01, self.step, request, step + 1, last)

    def stop(self, request: IncomingRequest) -> None:
        if request.data.active():
            request.data.cancel()


# -- run
def main(reactor: Any) -> "Deferred[None]":
    server = MCPServer(reactor)
    StandardIO(server, reactor=reactor)
    return server.over


if __name__ == "__main__":
    react(main, sys.argv[1:])
