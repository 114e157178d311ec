"""The shared parts of a conversation, bound to trio."""

from __future__ import annotations

from .._async import dispatch
from .._async.dispatch import ENDINGS
from ._handlers import Serving
from ._loop import TrioLoop

__all__ = ["ENDINGS", "Dispatching"]


class Dispatching(dispatch.Dispatching):
    """Hands out events in trio's thread."""

    _new_loop = TrioLoop
    _new_serving = Serving
