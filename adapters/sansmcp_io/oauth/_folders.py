"""Where programs keep what belongs to their user."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def settings_folder() -> Path:
    """The folder of sansmcp among those with the settings of the user, which may be missing."""
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "sansmcp"
