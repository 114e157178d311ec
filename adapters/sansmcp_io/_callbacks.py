"""Functions of the application that are called on the way, whatever the loop."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ._anomalies import LOGGER


@contextmanager
def logged(what: str) -> Generator[None, None, None]:
    """Keep what a callback raises from ending the connection."""
    try:
        yield
    except Exception as error:
        LOGGER.error("%s failed", what, exc_info=error)
