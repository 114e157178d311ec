"""A client over HTTP, on the reactor of Twisted: its own agent makes the requests."""

# pyright: basic, reportArgumentType=false
# mypy: disable-error-code="no-untyped-call, arg-type"
# Twisted's interfaces are those of zope, which type checkers do not follow.

import sys
from io import BytesIO
from typing import Any
from weakref import WeakKeyDictionary

from twisted.internet import defer, protocol, task
from twisted.web.client import Agent, FileBodyProducer, HTTPConnectionPool, ResponseDone
from twisted.web.http_headers import Headers

import sansmcp
from sansmcp import JSONObject
from sansmcp.http import ClientEndpoint, ClientExchange


# -- endpoint
class MCPClient:
    """Makes the exchanges that the endpoint asks for, and gives it their responses."""

    def __init__(self, reactor: Any, url: str) -> None:
        self.now, self.call_later = reactor.seconds, reactor.callLater
        self.timer = reactor.callLater(0.0, self.keep_time)
        self.agent = Agent(reactor, pool=HTTPConnectionPool(reactor))
        self.made: WeakKeyDictionary[ClientExchange, defer.Deferred[None]] = WeakKeyDictionary()
        self.mcp = ClientEndpoint(url, info={"name": "twisted", "version": "1"}, wake=self.turn)

    def turn(self) -> None:
        """Make and abort exchanges, take the events, and set the timer for the next deadline."""
        for aborted in self.mcp.aborts():
            self.made[aborted].cancel()
        while (exchange := self.mcp.next_exchange()) is not None:
            self.latest = self.made[exchange] = defer.ensureDeferred(self.make(exchange))
        while (event := self.mcp.next_event()) is not None:
            self.handle(event)
        if self.timer.active():  # there is one, for the next deadline, or they pile up
            self.timer.cancel()
        if (deadline := self.mcp.next_timeout()) is not None:
            self.timer = self.call_later(max(0.0, deadline - self.now()), self.keep_time)

    def keep_time(self) -> None:
        self.mcp.handle_timeout(self.now())
        self.turn()  # a deadline may only have been put off, which wakes nobody

    async def make(self, exchange: ClientExchange) -> None:
        """Make one HTTP request. The body of the response goes to the endpoint as it arrives."""
        headers = Headers({name: [value] for name, value in exchange.headers})
        content = FileBodyProducer(BytesIO(exchange.body)) if exchange.body else None
        method, url = exchange.method.encode(), exchange.url.encode()
        try:
            response: Any = await self.agent.request(method, url, headers, content)
            raw = response.headers.getAllRawHeaders()
            exchange.receive_head(response.code, [(name, one) for name, all in raw for one in all])
            response.deliverBody(body := Body(self, exchange))
            await body.over
        except ResponseDone:
            exchange.receive_end(now=self.now())
        except Exception as error:  # that it was aborted is one, too
            exchange.receive_failure(str(error), now=self.now())

    # -- handler
    def handle(self, event: Any) -> None:
        """Each request has one ending, and so has the start."""
        match event:
            case sansmcp.Ready(start=sansmcp.Start() as start, revision=revision):
                start.data.callback(revision)
            case sansmcp.ConnectionFailed(start=start, text=text):
                start.data.errback(ConnectionError(text))
            case sansmcp.ResponseReceived(request=request, result=result):
                request.data.callback(result)
            case sansmcp.ErrorReceived(request=request, message=text):
                request.data.errback(RuntimeError(text))
            case sansmcp.RequestFailed(request=request, text=text):
                request.data.errback(ConnectionError(text))
            case _:
                pass

    # -- requests
    def start(self) -> "defer.Deferred[str]":
        ready: defer.Deferred[str] = defer.Deferred()
        self.mcp.start(data=ready, timeout=30.0, now=self.now())
        return ready

    def request(self, method: str, params: JSONObject | None = None) -> "defer.Deferred[Any]":
        ended: defer.Deferred[JSONObject] = defer.Deferred()
        self.mcp.send_request(method, params, data=ended, timeout=60.0, now=self.now())
        return ended


# -- body
class Body(protocol.Protocol):
    """Passes the body on. `over` fires with its end; cancelling it closes the connection."""

    transport: Any

    def __init__(self, client: MCPClient, exchange: ClientExchange) -> None:
        self.client, self.exchange = client, exchange
        self.over: defer.Deferred[None] = defer.Deferred(lambda _: self.transport.loseConnection())

    def dataReceived(self, data: bytes) -> None:
        self.exchange.receive_data(data, now=self.client.now())

    def connectionLost(self, reason: Any = None) -> None:
        if not self.over.called:
            self.over.errback(reason)


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
    task.react(lambda *arguments: defer.ensureDeferred(talk(*arguments)), sys.argv[1:])
