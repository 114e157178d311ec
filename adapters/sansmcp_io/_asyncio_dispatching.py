"""The shared parts of a conversation, bound to asyncio."""

from __future__ import annotations

from . import _async_dispatching
from ._async_dispatching import ENDINGS
from ._asyncio_loop import AsyncioLoop
from ._asyncio_serving import Serving

__all__ = ["ENDINGS", "Dispatching"]


class Dispatching(_async_dispatching.Dispatching):
    """Hands out events in the thread of the loop."""

    _new_loop = AsyncioLoop
    _new_serving = Serving
