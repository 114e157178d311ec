"""A client over HTTP, on the reactor of Twisted: its own agent makes the requests."""

# pyright: basic, reportArgumentType=false
# mypy: disable-error-code="no-untyped-call, arg-type"
# Twisted's interfaces are those of zope, which type checkers do not follow.

import sys
from io import BytesIO
from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred
from twisted.internet.protocol import Protocol
from twisted.internet.task import react
from twisted.web.client import Agent, FileBodyProducer, HTTPConnectionPool, ResponseDone
from twisted.web.http_headers import Headers

from sansmcp import (
    ConnectionFailed,
    ErrorReceived,
    Event,
    JSONObject,
    Ready,
    RequestFailed,
    ResponseReceived,
    Start,
)
from sansmcp.http import ClientEndpoint, ClientExchange


# -- endpoint
class MCPClient:
    """Makes the exchanges that the endpoint wants, and tells it what they bring."""

    def __init__(self, reactor: Any, url: str) -> None:
        self.now, self.call_later = reactor.seconds, reactor.callLater
        self.agent = Agent(reactor, pool=HTTPConnectionPool(reactor))
        self.bodies: dict[ClientExchange, Any] = {}
        self.mcp = ClientEndpoint(url, info={"name": "twisted", "version": "1"}, wake=self.turn)

    def turn(self) -> None:
        """There are exchanges to make or to abort, events, or an earlier deadline."""
        while (exchange := self.mcp.next_exchange()) is not None:
            self.latest = ensureDeferred(self.make(exchange))
        for exchange in self.bodies.keys() & self.mcp.aborts():
            self.bodies[exchange].transport.abortConnection()
        while (event := self.mcp.next_event()) is not None:
            self.handle(event)
        if (deadline := self.mcp.next_timeout()) is not None:
            wait = max(0.0, deadline - self.now())
            self.call_later(wait, lambda: self.mcp.handle_timeout(self.now()))

    async def make(self, exchange: ClientExchange) -> None:
        """One request of HTTP. The body of the response goes to the endpoint as it comes."""
        headers = Headers({name: [value] for name, value in exchange.headers})
        content = FileBodyProducer(BytesIO(exchange.body)) if exchange.body else None
        method, url = exchange.method.encode(), exchange.url.encode()
        try:
            response: Any = await self.agent.request(method, url, headers, content)
        except Exception as error:
            exchange.receive_failure(str(error), now=self.now())
            return
        raw = response.headers.getAllRawHeaders()
        exchange.receive_head(response.code, [(name, one) for name, all in raw for one in all])
        response.deliverBody(self.bodies.setdefault(exchange, Body(self, exchange)))

    # -- handler
    def handle(self, event: Event | Any) -> None:
        """Each request has one ending, and so has the start."""
        match event:
            case Ready(start=Start() as start, revision=revision):
                start.data.callback(revision)
            case ConnectionFailed(start=start, text=text):
                start.data.errback(ConnectionError(text))
            case ResponseReceived(request=request, result=result):
                request.data.callback(result)
            case ErrorReceived(request=request, message=text):
                request.data.errback(RuntimeError(text))
            case RequestFailed(request=request, text=text):
                request.data.errback(ConnectionError(text))
            case _:
                pass

    def start(self) -> "Deferred[str]":
        ready: Deferred[str] = Deferred()
        self.mcp.start(data=ready, timeout=30.0, now=self.now())
        return ready

    def request(self, method: str, params: JSONObject | None = None) -> "Deferred[JSONObject]":
        ended: Deferred[JSONObject] = Deferred()
        self.mcp.send_request(method, params, data=ended, timeout=60.0, now=self.now())
        return ended


# -- body
class Body(Protocol):
    def __init__(self, client: MCPClient, exchange: ClientExchange) -> None:
        self.client, self.exchange = client, exchange

    def dataReceived(self, data: bytes) -> None:
        self.exchange.receive_data(data, now=self.client.now())

    def connectionLost(self, reason: Any = None) -> None:
        self.client.bodies.pop(self.exchange)
        if reason.check(ResponseDone):
            self.exchange.receive_end(now=self.client.now())
        else:
            self.exchange.receive_failure(reason.getErrorMessage(), now=self.client.now())


# -- handler
async def talk(reactor: Any, url: str) -> None:
    client = MCPClient(reactor, url)
    print("revision", await client.start())
    tools = (await client.request("tools/list"))["tools"]
    print("tools:", *(tool["name"] for tool in tools))
    echo: JSONObject = {"name": "echo", "arguments": {"message": "Twisted"}}
    result = await client.request("tools/call", echo)
    print(result["content"][0]["text"])
    client.mcp.close()
    await client.latest  # which ends the session


# -- run
if __name__ == "__main__":
    react(lambda *arguments: ensureDeferred(talk(*arguments)), sys.argv[1:])
