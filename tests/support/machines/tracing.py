"""Turns coverage off for tests that are long because they repeat the same lines."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_tracing() -> Generator[None, None, None]:
    """Do not measure coverage meanwhile: it makes such a run take thrice the time.

    What runs here has to be run by a shorter test, too.
    """
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
