"""An example whose handler waits until it is cancelled, and then prints this.

Usage: python tests/support/programs/waiting_stack.py NAME PORT
"""

import asyncio
import runpy
import sys
import time
from importlib import import_module

from sansmcp import IncomingRequest
from sansmcp.http import ServerEndpoint
from tests.support.stacks import STACKS


async def handle(side: ServerEndpoint, request: IncomingRequest) -> None:
    """Begin the stream, so that the client can close it."""
    side.send_progress(request, 1, now=time.monotonic())
    try:
        await asyncio.sleep(3600)  # until it is cancelled
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise


if __name__ == "__main__":
    sys.path.insert(0, str(STACKS))
    setattr(import_module("shop"), "handle", handle)  # noqa: B010  # no checker lets it be assigned
    name = sys.argv.pop(1)
    runpy.run_path(str(STACKS / f"{name}.py"), run_name="__main__")
