"""Each test has a time limit, also where the tests run in the background of a terminal."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import SECONDS
from tests.support.processes import ROOT

WAITS = "import os\n\ndef test_waits():\n    os.read(os.pipe()[0], 1)\n"
STUBBORN = """
import os

def test_waits():
    while True:
        try:
            os.read(os.pipe()[0], 1)
        except BaseException:
            pass
"""


def ignore_signals() -> None:
    """As `nohup` and shells in the background do."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(WAITS, "Failed: Timeout (>0.5s) from pytest-timeout."), (STUBBORN, "Timeout (0:00:01)!")],
    ids=["waits", "stubborn"],
)
def test_a_test_that_hangs_fails_and_shows_where(tmp_path: Path, code: str, expected: str) -> None:
    """Without a limit, one test that waits for ever hides the results of all others."""
    (tmp_path / "test_it.py").write_text(code)
    limits = ("--timeout=0.5", "-ofaulthandler_timeout=1", "-pno:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", *limits, tmp_path],
        preexec_fn=ignore_signals,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )

    assert done.returncode == 1
    assert expected in done.stdout + done.stderr
    assert "in test_waits" in done.stderr or "os.read(os.pipe()[0], 1)" in done.stdout


def test_the_limits_are_set(pytestconfig: pytest.Config) -> None:
    """The second one ends the process of a test that does not let the first one through."""
    first: float = pytestconfig.option.timeout
    assert 0 < first < float(pytestconfig.getini("faulthandler_timeout"))
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
