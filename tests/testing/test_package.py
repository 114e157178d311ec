"""The public names of `sansmcp.testing`, and the packages that they need."""

import subprocess
import sys

import pytest

import sansmcp.testing

WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None  # importing it raises ImportError
from sansmcp.testing import Pair, canonical, explore, plain
pair = Pair()
pair.client.ping()
pair.deliver()
print(plain(pair.client_events), explore(pair, eof=False))
from sansmcp.testing import wire_bytes
"""


def test_every_public_name_is_there() -> None:
    """Some names are imported only on use, where a mistake would show late."""
    for name in sansmcp.testing.__all__:
        assert getattr(sansmcp.testing, name) is not None


def test_no_other_name_is_there() -> None:
    """A misspelt name must raise as in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Pear'"):
        getattr(sansmcp.testing, "Pear")  # noqa: B009  # not an attribute for the type checkers


def test_only_strategies_need_hypothesis() -> None:
    """The pair must be usable without hypothesis."""
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_HYPOTHESIS], capture_output=True, text=True, check=False
    )

    assert "PingEnded(ping=<Ping over>" in run.stdout
    assert "1 states, 0 transitions, depth 0" in run.stdout
    assert run.stderr.splitlines()[-1].startswith("ModuleNotFoundError")
