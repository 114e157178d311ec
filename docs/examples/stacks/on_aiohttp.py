"""MCP beside the other routes of an aiohttp server, with streams, sessions and timers."""

import asyncio
import secrets
import sys
import time

from aiohttp import web
from shop import CAPABILITIES, INFO, handle

from sansmcp import RequestCancelled, RequestReceived
from sansmcp.http import SendBody, SendEnd, SendHead, ServerEndpoint, Sessions


# -- endpoint
def turn() -> None:
    """Called by the endpoint when there are events or output."""
    while (event := endpoint.next_event()) is not None:
        if isinstance(event, RequestReceived):
            event.request.data = asyncio.create_task(handle(endpoint, event.request))
        elif isinstance(event, RequestCancelled):
            event.request.data.cancel()
    for exchange in endpoint.ready():
        exchange.context.set()


async def keep_time(app: web.Application) -> None:
    """End idle sessions and send comments on silent streams, within a second after the time is
    due."""
    tick()


def tick() -> None:
    endpoint.handle_timeout(time.monotonic())
    asyncio.get_running_loop().call_later(1.0, tick)


endpoint = ServerEndpoint(
    info=INFO, capabilities=CAPABILITIES, sessions=Sessions(new_id=secrets.token_urlsafe), wake=turn
)


# -- exchange
async def serve(request: web.Request) -> web.StreamResponse:
    changed = asyncio.Event()  # that there is output; `turn` sets it
    exchange = endpoint.exchange(
        request.method, request.path_qs, request.raw_headers, context=changed
    )
    response = web.StreamResponse()
    try:
        async for data in request.content.iter_any():
            exchange.receive_data(data)
        exchange.receive_end(now=time.monotonic())
        while True:
            match exchange.next_output():
                case SendHead(status, headers):
                    response.set_status(status)
                    for name, value in headers:
                        response.headers.add(name.decode(), value.decode())
                    await response.prepare(request)
                case SendBody(data):
                    await response.write(data)
                case None:
                    changed.clear()
                    await changed.wait()
                case SendEnd():
                    await response.write_eof()
                    return response
    finally:  # the client is gone, unless the response is over
        exchange.receive_disconnect(now=time.monotonic())


# -- run
async def home(request: web.Request) -> web.Response:
    return web.Response(text="the shop itself\n")


app = web.Application()
app.router.add_get("/", home)
app.router.add_route("*", "/mcp", serve)
app.on_startup.append(keep_time)

if __name__ == "__main__":
    # `handler_cancellation` tells `serve` of clients that leave
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, handler_cancellation=True)
