"""npm's inspector in its command-line mode, on version 2 of the TypeScript SDK, as a client."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.interop.peers import ROOT, inspector


def inspect(home: Path, server: tuple[str, ...], *options: str) -> tuple[int, Any]:
    """The exit status, and the result or the error as the inspector prints it."""
    command = [*inspector().command, "--cli", sys.executable, *server, *options]
    done = subprocess.run(
        [*command, "--quiet", "--format", "json"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(home)},  # it keeps settings there
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    return done.returncode, json.loads(done.stderr if done.returncode else done.stdout)
