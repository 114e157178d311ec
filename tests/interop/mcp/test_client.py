"""A client on the `mcp` package, with a server of this project that offers everything."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.peers import ROOT
from tests.interop.reviewed import assert_told

CLIENT = ROOT / "tests" / "peers" / "mcp_features.py"
SAME: dict[str, Any] = {
    "resources": ["1", "2", "3"],
    "templates": ["test://greetings/{name}"],
    "prompts": ["greet"],
    "prompt": "Please greet Ada.",
    "completion": ["ada", "alan"],
    "subscription": ["not subscribed", "told", "not subscribed"],
    "asked": "Ada: a sample, file:///a/root",
    "updated": ["test://notes/1"],
    "logs": [["error", "hand", {"n": 1}]],
    "change": "changed",
    "tools_changed": [True],
    "cancellations": "1",
    "faults": [],
}
"""What comes of it in every era."""
LEGACY: dict[str, Any] = {
    **SAME,
    "revision": "2025-11-25",
    "read": ["note 1", "Hello, Ada!", -32002],
    "logging": ["suppressed", "sent"],
}
MODERN: dict[str, Any] = {
    **SAME,
    "revision": "2026-07-28",
    "read": ["note 1", "Hello, Ada!", -32602],
    "logging": ["suppressed", "suppressed", "sent"],
    "events": ["ResourceUpdated(uri='test://notes/1')", "ToolsListChanged()"],
    "hung_up": ["1 ended", []],
}


@pytest.mark.parametrize(
    ("mode", "speaks", "expected"),
    [
        ("auto", "dual-era", MODERN),
        ("2026-07-28", "modern", MODERN),
        ("auto", "legacy", LEGACY),
        ("legacy", "dual-era", LEGACY),
    ],
    ids=["both", "modern", "falls back", "legacy"],
)
def test_every_feature_of_a_server_of_ours_is_used(
    mode: str, speaks: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    """The client must find all declared features in each era, and make no breach."""
    reports = tmp_path / "reports"
    server = [sys.executable, "-m", "tests.interop.hand_driven_server", str(reports), speaks]
    done = subprocess.run(
        [sys.executable, CLIENT, mode, *server],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected
    assert_told("mcp", reports)
