"""One authorization server for all tests of this room that a process runs."""

from collections.abc import Generator

import pytest

from tests.interop.authorization.provider import DEFAULTS, Provider, serving_tokens


@pytest.fixture(scope="package")
def shared_provider() -> Generator[Provider]:
    with serving_tokens() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: Provider) -> Provider:
    """The authorization server, with the settings that it has at first."""
    shared_provider.control(**DEFAULTS)
    return shared_provider
