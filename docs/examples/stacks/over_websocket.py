"""MCP over WebSockets, which carry whole messages; on trio, with its package for them."""

import math
import sys
from collections.abc import Callable

import trio
from shop import CAPABILITIES, INFO, handle
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

import sansmcp
from sansmcp import Event, IncomingRequest, RequestCancelled, RequestReceived, State


# -- carry
class Carrier:
    """Carries the messages of one connection, a client's or a server's, until it is closed."""

    connection: sansmcp.ClientConnection | sansmcp.ServerConnection

    def __init__(self, socket: WebSocketConnection, on_event: Callable[[Event], object]) -> None:
        self.socket, self.on_event = socket, on_event
        self.news = trio.Event()

    def turn(self) -> None:
        """The `wake` of the connection: events, output, or an earlier deadline are there."""
        while (event := self.connection.next_event()) is not None:
            self.on_event(event)
        self.news.set()
        self.news = trio.Event()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.read)
            nursery.start_soon(self.keep_time)
            await self.write()
            await self.socket.aclose()
            nursery.cancel_scope.cancel()

    async def read(self) -> None:
        try:
            while True:
                message = await self.socket.get_message()
                self.connection.receive_message(message, now=trio.current_time())
        except ConnectionClosed:
            self.connection.receive_eof(now=trio.current_time())

    async def write(self) -> None:
        """A peer that reads slowly holds up this task only."""
        while True:
            news = self.news
            try:
                for message in self.connection.messages_to_send():
                    await self.socket.send_message(message.decode())
            except ConnectionClosed:
                self.connection.send_failed()
            if self.connection.state is State.CLOSED:
                break
            await news.wait()

    async def keep_time(self) -> None:
        while True:
            news, deadline = self.news, self.connection.next_timeout()
            with trio.move_on_at(math.inf if deadline is None else deadline):
                await news.wait()
            self.connection.handle_timeout(trio.current_time())


# -- serve
async def serve(request: WebSocketRequest) -> None:
    # -- handler
    def on_event(event: Event) -> None:
        if isinstance(event, RequestReceived):
            event.request.data = trio.CancelScope()
            tasks.start_soon(work, event.request)
        elif isinstance(event, RequestCancelled):
            event.request.data.cancel()

    async def work(request: IncomingRequest) -> None:
        with request.data:
            await handle(server, request, trio.sleep)

    # -- connection
    carrier = Carrier(await request.accept(subprotocol="mcp"), on_event)
    server = sansmcp.ServerConnection(info=INFO, capabilities=CAPABILITIES, wake=carrier.turn)
    carrier.connection = server
    async with trio.open_nursery() as tasks:
        await carrier.run()


# -- run
if __name__ == "__main__":
    trio.run(serve_websocket, serve, "127.0.0.1", int(sys.argv[1]), None)
