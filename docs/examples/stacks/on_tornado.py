"""MCP beside the other routes of a Tornado application, with streams, sessions and timers."""

# pyright: reportUnknownMemberType=false
# Tornado's `write` takes a `dict` of it does not say what.

import asyncio
import secrets
import sys
import time
from contextlib import suppress

from shop import CAPABILITIES, INFO, handle
from tornado.ioloop import PeriodicCallback
from tornado.iostream import StreamClosedError
from tornado.web import Application, RequestHandler

from sansmcp import RequestCancelled, RequestReceived
from sansmcp.http import SendBody, SendHead, ServerEndpoint, Sessions


# -- endpoint
def turn() -> None:
    """Called by the endpoint when there are events, or output."""
    while (event := endpoint.next_event()) is not None:
        if isinstance(event, RequestReceived):
            event.request.data = asyncio.create_task(handle(endpoint, event.request))
        elif isinstance(event, RequestCancelled):
            event.request.data.cancel()
    for exchange in endpoint.ready():
        exchange.context.set()


endpoint = ServerEndpoint(
    info=INFO, capabilities=CAPABILITIES, sessions=Sessions(new_id=secrets.token_urlsafe), wake=turn
)


# -- exchange
class MCP(RequestHandler):
    async def serve(self) -> None:
        head, changed = self.request, asyncio.Event()  # that there is output; `turn` sets it
        self.exchange = exchange = endpoint.exchange(
            head.method or "", head.uri or "", head.headers.get_all(), context=changed
        )
        exchange.receive_data(head.body)
        exchange.receive_end(now=time.monotonic())
        while True:
            match exchange.next_output():
                case SendHead(status, headers):
                    self.clear_header("Content-Type")  # which Tornado has set
                    self.set_status(status)
                    for name, value in headers:
                        self.add_header(name.decode(), value.decode())
                case SendBody(data):
                    self.write(data)
                    with suppress(StreamClosedError):
                        await self.flush()
                case None if not exchange.ended:
                    changed.clear()
                    await changed.wait()
                case _:  # it is over, or the client is gone
                    return

    get = post = delete = options = serve

    def on_connection_close(self) -> None:
        self.exchange.receive_disconnect(now=time.monotonic())
        self.exchange.context.set()


# -- run
class Home(RequestHandler):
    def get(self) -> None:
        self.finish("the shop itself\n")


async def main() -> None:
    Application([("/", Home), ("/mcp", MCP)]).listen(int(sys.argv[1]), "127.0.0.1")
    # Idle sessions end, and silent streams get comments, within the second after it is due.
    PeriodicCallback(lambda: endpoint.handle_timeout(time.monotonic()), 1000).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
