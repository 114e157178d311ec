"""What the surface of every adapter has in common, and needs no loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from sansmcp import ErrorCode, JSONObject

from .errors import McpError

UNSENT_BYTES: Final = 1_048_576
"""While more output than this waits, none is added that can wait as well."""
FLUSH_SECONDS: Final = 1.0
"""How long the end of a connection waits for a peer that reads nothing of the last output."""
FLUSH_SECONDS_AT_EOF: Final = 5.0
"""The same where the peer has ended its stream and reads on, as a shell's pipeline does."""

NotificationHandler: TypeAlias = Callable[[str, JSONObject], object]
ProgressHandler: TypeAlias = Callable[[float, float | None, str | None], object]

Returned = TypeVar("Returned")


def is_async(function: object) -> bool:
    """Whether this is an async function, or an object whose `__call__` is one."""
    return callable(function) and (
        inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(type(function).__call__)
    )


def check_progress_handler(on_progress: ProgressHandler | None) -> None:
    """Check that `on_progress` is a plain function.

    Raises:
        TypeError: It is async, so calling it would do nothing.
    """
    if is_async(on_progress):
        raise TypeError(f"on_progress must be a plain function, and {on_progress!r} is async")


def not_async(outcome: Returned, what: str) -> Returned:
    """Check what a function of the application has returned, and return it.

    Args:
        outcome: What it has returned.
        what: The name of the function, for the exception.

    Raises:
        TypeError: It is awaitable: the function, which did not look async, is.
    """
    if inspect.isawaitable(outcome):
        if inspect.iscoroutine(outcome):
            outcome.close()
        raise TypeError(f"{what} is async: it must be a plain function here")
    return outcome


def serves_nothing(call: object) -> JSONObject:
    """The handler of a client that was given none."""
    raise McpError(ErrorCode.METHOD_NOT_FOUND, "this client serves no requests")
