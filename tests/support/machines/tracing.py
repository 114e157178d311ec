"""Turns coverage off for tests that are long because they run the same lines many times."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_tracing() -> Generator[None, None, None]:
    """Do not measure coverage inside the block, since it makes a run three times as long.

    A shorter test has to run the same lines.
    """
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
