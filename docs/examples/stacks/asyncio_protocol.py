"""A server on a Unix socket, as a protocol of asyncio: the loop owns the socket, and calls us."""

import asyncio
import sys
from typing import cast

from shop import CAPABILITIES, INFO, handle

from sansmcp import RequestCancelled, RequestReceived, ServerConnection, State


# -- protocol
class MCPServer(asyncio.Protocol):
    """Carries bytes between the transport and the connection, and the time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.timer: asyncio.TimerHandle | None = None
        self.mcp = ServerConnection(info=INFO, capabilities=CAPABILITIES, wake=self.turn)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.mcp.receive_data(data, now=self.loop.time())

    def eof_received(self) -> bool:
        self.mcp.receive_eof(drain=1.0, now=self.loop.time())
        return True  # answers may follow

    def connection_lost(self, exc: Exception | None) -> None:
        self.mcp.send_failed()
        self.mcp.receive_eof()

    def turn(self) -> None:
        """Take the events and output, and set the timer for the next deadline."""
        while (event := self.mcp.next_event()) is not None:
            if isinstance(event, RequestReceived):
                event.request.data = self.loop.create_task(handle(self.mcp, event.request))
            elif isinstance(event, RequestCancelled):
                event.request.data.cancel()
        self.transport.write(self.mcp.data_to_send())
        self.set_timer()
        if self.mcp.state is State.CLOSED:
            self.transport.close()

    def set_timer(self) -> None:
        """Keep one timer, for the next deadline: the one before is cancelled, or they would pile
        up."""
        if self.timer is not None:
            self.timer.cancel()
        deadline = self.mcp.next_timeout()
        self.timer = None if deadline is None else self.loop.call_at(deadline, self.keep_time)

    def keep_time(self) -> None:
        self.mcp.handle_timeout(self.loop.time())
        self.set_timer()  # a deadline may have been put off meanwhile


# -- run
async def main(path: str) -> None:
    server = await asyncio.get_running_loop().create_unix_server(MCPServer, path)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
