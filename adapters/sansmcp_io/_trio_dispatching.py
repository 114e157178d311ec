"""The shared parts of a conversation, bound to trio."""

from __future__ import annotations

from . import _async_dispatching
from ._async_dispatching import ENDINGS
from ._trio_loop import TrioLoop
from ._trio_serving import Serving

__all__ = ["ENDINGS", "Dispatching"]


class Dispatching(_async_dispatching.Dispatching):
    """Hands out events in trio's thread."""

    _new_loop = TrioLoop
    _new_serving = Serving
