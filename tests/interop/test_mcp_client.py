"""A client on the `mcp` package with a server of ours that offers everything."""

import json
import subprocess
import sys
from pathlib import Path

from sansmcp import Side
from tests.interop.peers import ROOT
from tests.interop.reviewed import accusations, assert_accused, assert_reported

CLIENT = ROOT / "tests" / "peers" / "mcp_features.py"


def test_every_feature_of_a_server_of_ours_is_used(tmp_path: Path) -> None:
    """It probes for the newest era, falls back, and finds all that our server declared."""
    reports = tmp_path / "reports"
    server = [sys.executable, "-m", "tests.interop.hand_driven_server", str(reports)]
    done = subprocess.run(
        [sys.executable, CLIENT, *server],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "revision": "2025-11-25",
        "resources": ["1", "2", "3"],
        "templates": ["test://greetings/{name}"],
        "read": ["note 1", "Hello, Ada!", -32002],
        "prompts": ["greet"],
        "prompt": "Please greet Ada.",
        "completion": ["ada", "alan"],
        "subscription": ["not subscribed", "told", "not subscribed"],
        "updated": ["test://notes/1"],
        "logging": ["suppressed", "sent"],
        "logs": [["error", "hand", {"n": 1}]],
        "elicitation": "Ada",
        "change": "changed",
        "tools_changed": [True],
        "cancellations": "1",
        "faults": [],
    }
    assert_reported("mcp", reports.read_text().split(), {"LIFE-005"})
    assert_accused("mcp", Side.CLIENT, accusations(reports))
