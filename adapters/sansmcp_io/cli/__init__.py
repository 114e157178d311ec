"""The command `sansmcp`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        from ._commands import run  # takes a while: only after Ctrl-C is handled

        return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # outside of a conversation, which handles Ctrl-C itself
        return 130
