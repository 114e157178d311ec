"""How a server process is started and ended, on loops with `async`."""

from __future__ import annotations

from typing import Final

STDERR_SECONDS: Final = 2.0
"""How long the end of standard error is waited for after the process has ended."""
LAST_WORDS_SECONDS: Final = 0.5
"""How long what a process has left in its output may lie there before it is read."""
LOOK_AGAIN_SECONDS: Final = 0.01
"""How often to look whether what it has left behind has ended."""
