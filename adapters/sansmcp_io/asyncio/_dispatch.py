"""The shared parts of a conversation, bound to asyncio."""

from __future__ import annotations

from .._async import dispatch
from .._async.dispatch import ENDINGS
from ._handlers import Serving
from ._loop import AsyncioLoop

__all__ = ["ENDINGS", "Dispatching"]


class Dispatching(dispatch.Dispatching):
    """Hands out events in the thread of the loop."""

    _new_loop = AsyncioLoop
    _new_serving = Serving
