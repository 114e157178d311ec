"""Each test of tasks runs on the store in memory, and on one of the application."""

import pytest

from tests.support.tasks import Host, host


@pytest.fixture(params=["memory", "ask"])
def kept(request: pytest.FixtureRequest) -> Host:
    """A server whose tasks are kept here or there."""
    return host(store=request.param)
