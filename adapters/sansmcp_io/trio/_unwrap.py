"""Nurseries that callers need not know about."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


@asynccontextmanager
async def unwrapped() -> AsyncGenerator[None, None]:
    """Take one exception out of the group that a nursery inside has put around it.

    Callers write `except PeerError`; that a nursery of ours lies between is our affair. Several
    exceptions at once stay a group.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        failure: BaseException = group.exceptions[0]
        context = failure.__context__
        try:
            raise failure
        finally:
            failure.__context__ = context  # not the group, which would show everything twice
            del failure, context  # or the traceback would refer to itself
