"""What the surface of every adapter has in common, and needs no loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from sansmcp import ErrorCode, JSONObject

from ._errors import McpError

UNSENT_BYTES: Final = 1_048_576
"""While more output than this waits, none is added that can wait as well."""
FLUSH_SECONDS: Final = 1.0
"""How long the end of a connection waits for a peer that reads nothing of the last output."""
FLUSH_SECONDS_AT_EOF: Final = 5.0
"""The same where the peer has ended its stream and reads on, as a shell's pipeline does."""

NotificationHandler: TypeAlias = Callable[[str, JSONObject], object]
ProgressHandler: TypeAlias = Callable[[float, float | None, str | None], object]


def serves_nothing(call: object) -> JSONObject:
    """The handler of a client that was given none."""
    raise McpError(ErrorCode.METHOD_NOT_FOUND, "this client serves no requests")
