"""What holds for all tests: everything that a connection of ours sends is valid."""

import signal
from collections.abc import Iterator

import hypothesis
import pytest

from tests.support import processes
from tests.support.judges.connection import judging
from tests.support.judges.http_client import judging_http_client
from tests.support.judges.http_server import judging_http

# How long an example takes says more about the machine than about the code. Whether a change is
# good must not depend on luck: examples are the same in each run, `make fuzz` looks for others, and
# `make proof` tries many more.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("proof", deadline=None, derandomize=True, max_examples=500)
hypothesis.settings.register_profile("fuzz", deadline=None, print_blob=True)
hypothesis.settings.load_profile("tests")


# A shell ignores it in what it starts in the background. Tests of Ctrl-C need it, here and in what
# they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def everything_sent_is_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    """Invariant 9: whatever a test is about, what the library sends in it fits the schema."""
    if request.node.get_closest_marker("unjudged") is not None:
        yield
        return
    with judging(), judging_http(), judging_http_client():
        yield


@pytest.fixture(autouse=True)
def only_its_own_processes_count() -> None:
    """A test that looks for what it has left must not find what another one has."""
    processes.begin_to_count()
