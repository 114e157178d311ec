"""Every case runs at each revision that opens with a handshake, unless a test names its own."""

import pytest

from sansmcp import LEGACY_REVISIONS


@pytest.fixture(params=LEGACY_REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    revision: str = request.param
    return revision
