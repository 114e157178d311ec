"""Each test of tasks that runs on the store in memory runs on Redis, too, for both forms."""

import inspect
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any, Final

import pytest

from tests.connection.tasks import test_legacy_server, test_modern_server, test_store
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_store import RedisShelf, Shared
from tests.support.tasks import Host, host


@pytest.fixture(scope="module")
def redis() -> Generator[RedisServer, None, None]:
    """A Redis for all tests of this module."""
    with running_redis() as server:
        yield server


@pytest.fixture
def kept(redis: RedisServer) -> Host:
    """A server whose tasks are kept in Redis."""
    kept = host(store="ask")
    kept.shelf = RedisShelf(Shared(redis))
    return kept


def contract_of(module: ModuleType) -> list[Callable[..., None]]:
    """The tests of a module that need a server with a store, and nothing else."""
    return [
        function
        for name, function in vars(module).items()
        if name.startswith("test_") and list(inspect.signature(function).parameters) == ["kept"]
    ]


TESTS: Final = [
    test
    for module in (test_store, test_modern_server, test_legacy_server)
    for test in contract_of(module)
]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_redis_is_a_store_as_the_one_in_memory(kept: Host, test: Callable[[Any], None]) -> None:
    """What holds for tasks in memory holds for those in Redis."""
    test(kept)


def test_there_are_tests_of_each_kind() -> None:
    """The list above must not become empty unseen."""
    assert len(TESTS) > 30
