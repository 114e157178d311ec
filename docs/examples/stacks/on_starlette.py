"""MCP beside the other routes of a Starlette application."""

import asyncio
import sys
from functools import partial

import uvicorn
from shop import CAPABILITIES, INFO
from shop_calls import handle
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sansmcp_io.asgi import App

# -- application
mcp = App(partial(handle, sleep=asyncio.sleep), info=INFO, capabilities=CAPABILITIES)


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("the shop itself\n")


app = Starlette(
    routes=[Route("/", home), Route("/mcp", mcp)],
    lifespan=mcp.lifespan,  # so that requests under way end as they should when the server does
)

# -- run
if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
