"""The programs of the documentation do what the pages say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints_what_its_page_shows(path: Path) -> None:
    """A page with a wrong program or output teaches a mistake."""
    shown = path.with_suffix(".out")
    expected = shown.read_text("utf-8") if shown.exists() else ""
    run = subprocess.run(
        [sys.executable, str(path)],
        input="",
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONWARNINGS": "error"},
        timeout=60,
    )

    assert run.stderr == ""
    assert run.returncode == 0
    assert run.stdout == expected


def test_every_output_belongs_to_an_example() -> None:
    """The output of a renamed program would stay on the page without a check."""
    outputs = {path.stem for path in (ROOT / "docs" / "examples").glob("*.out")}

    assert outputs <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_shown_on_a_page(path: Path) -> None:
    """A reader cannot find an example that no page shows."""
    name = path.name

    assert any(f"examples/{name}" in page.read_text("utf-8") for page in PAGES)


@pytest.mark.parametrize("name", ["readme.py", "hello_server.py"])
def test_readme_shows_the_example_as_it_is(name: str) -> None:
    """The README cannot include a file, so its copy must be compared."""
    code = (ROOT / "docs" / "examples" / name).read_text("utf-8")

    assert f"```python\n{code}```" in (ROOT / "README.md").read_text("utf-8")
