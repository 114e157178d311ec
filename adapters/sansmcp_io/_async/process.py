"""How a server process is started and ended, on loops with `async`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Final

import attrs

from ..stdio import DEFAULT_KILL_AFTER, DEFAULT_TERMINATE_AFTER, StderrMode

STDERR_SECONDS: Final = 2.0
"""How long the end of standard error is waited for after the process has ended."""
LAST_WORDS_SECONDS: Final = 0.5
"""How long what a process has left in its output may lie there before it is read."""
LOOK_AGAIN_SECONDS: Final = 0.01
"""How often to look whether what it has left behind has ended."""


@attrs.frozen(kw_only=True)
class ProcessOptions:
    """What somebody who starts one may choose."""

    env: Mapping[str, str] | None = None
    cwd: str | PathLike[str] | None = None
    stderr: StderrMode = "inherit"
    on_stderr: Callable[[str], object] | None = None
    terminate_after: float = DEFAULT_TERMINATE_AFTER
    kill_after: float = DEFAULT_KILL_AFTER

    @property
    def stderr_mode(self) -> StderrMode:
        """With a callback, standard error is captured."""
        return self.stderr if self.on_stderr is None else "capture"
