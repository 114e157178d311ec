"""MCP over WebSockets, which carry whole messages; on trio, with its package for them."""

import math
import sys
from collections.abc import Callable

import trio
from shop import CAPABILITIES, INFO, handle
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from sansmcp import (
    ClientConnection,
    Event,
    IncomingRequest,
    RequestCancelled,
    RequestReceived,
    ServerConnection,
    State,
)


# -- carry
class Carrier:
    """Carries the messages of one connection, a client's or a server's, until it is closed."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self.socket = socket
        self.news = trio.Event()

    def wake(self) -> None:
        self.news.set()

    async def read(self, connection: ClientConnection | ServerConnection) -> None:
        try:
            while True:
                message = await self.socket.get_message()
                connection.receive_message(message, now=trio.current_time())
        except ConnectionClosed:
            connection.receive_eof(now=trio.current_time())

    async def run(
        self,
        connection: ClientConnection | ServerConnection,
        on_event: Callable[[Event], object],
    ) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.read, connection)
            while True:
                self.news = trio.Event()
                while (event := connection.next_event()) is not None:
                    on_event(event)
                try:
                    for message in connection.messages_to_send():
                        await self.socket.send_message(message.decode())
                except ConnectionClosed:
                    connection.send_failed()
                if connection.state is State.CLOSED:
                    break
                deadline = connection.next_timeout()
                with trio.move_on_at(math.inf if deadline is None else deadline):
                    await self.news.wait()
                connection.handle_timeout(trio.current_time())
            await self.socket.aclose()
            nursery.cancel_scope.cancel()


# -- handler
async def serve(request: WebSocketRequest) -> None:
    carrier = Carrier(await request.accept(subprotocol="mcp"))
    server = ServerConnection(info=INFO, capabilities=CAPABILITIES, wake=carrier.wake)

    async def work(request: IncomingRequest, scope: trio.CancelScope) -> None:
        with scope:
            await handle(server, request, trio.sleep)

    def on_event(event: Event) -> None:
        if isinstance(event, RequestReceived):
            scope = event.request.data = trio.CancelScope()
            tasks.start_soon(work, event.request, scope)
        elif isinstance(event, RequestCancelled):
            event.request.data.cancel()

    async with trio.open_nursery() as tasks:
        await carrier.run(server, on_event)


# -- run
if __name__ == "__main__":
    trio.run(serve_websocket, serve, "127.0.0.1", int(sys.argv[1]), None)
