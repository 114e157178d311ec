"""`sansmcp.types` costs nothing at run time, and both packages are typed throughout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sansmcp
import sansmcp_io

PACKAGES = {
    package.__name__: Path(package.__path__[0]).resolve() for package in (sansmcp, sansmcp_io)
}
LOADED = """
import json, sys
import sansmcp, sansmcp.testing, sansmcp_io.asyncio, sansmcp_io.trio, sansmcp_io.cli
print(json.dumps(sorted(sys.modules)))
"""


def test_nothing_imports_the_vocabulary_at_run_time() -> None:
    """Hundreds of classes that only type checkers need would be made at every start."""
    run = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)
    loaded: list[str] = json.loads(run.stdout)

    assert "sansmcp_io.trio" in loaded
    assert [name for name in loaded if name.startswith("sansmcp.types")] == []
    assert "sansmcp._connection.typed_requests" not in loaded


@pytest.mark.parametrize("name", PACKAGES)
def test_package_says_that_it_is_typed(name: str) -> None:
    """Without the marker, type checkers take nothing from a package."""
    assert (PACKAGES[name] / "py.typed").is_file()


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_type_is_complete(name: str, tmp_path: Path) -> None:
    """What pyright infers, another type checker may infer otherwise, or not at all."""
    for package, path in PACKAGES.items():  # pyright looks for installed packages only
        (tmp_path / package).symlink_to(path)
    command = ["--pythonpath", sys.executable, "--verifytypes", name, "--ignoreexternal"]
    run = subprocess.run(
        [sys.executable, "-m", "pyright", *command, "--outputjson"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    report = json.loads(run.stdout)["typeCompleteness"]
    symbols = report["symbols"]

    assert [symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]] == []
    assert report["completenessScore"] == 1
    assert len(symbols) > 20
