"""Runs each body of a test on the adapter that its argument `shim` stands for."""

import inspect
from functools import partial
from typing import Any

import pytest

from tests.adapters.shims import SERVERS, SHIMS, Shim, is_http, server


@pytest.fixture(params=SHIMS)
def shim(request: pytest.FixtureRequest) -> Shim:
    """The client's adapter."""
    return SHIMS[request.param]


@pytest.fixture
def serving(shim: Shim) -> list[str]:
    """The command of the server that goes with it, on the same adapter if there is one."""
    return server(shim.serving)


@pytest.fixture(params=SERVERS)
def any_serving(request: pytest.FixtureRequest) -> list[str]:
    """The command of each server with its transport: where the pace of the other side matters."""
    return server(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No client talks to a server on another transport."""
    items[:] = [item for item in items if not is_mixed(item)]


def is_mixed(item: pytest.Item) -> bool:
    callspec: Any = getattr(item, "callspec", None)
    parameters: dict[str, Any] = {} if callspec is None else callspec.params
    if not {"shim", "any_serving"} <= parameters.keys():
        return False
    return is_http(parameters["shim"]) != is_http(parameters["any_serving"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a body; pytest itself knows plain functions only."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    shim: Any = pyfuncitem.funcargs["shim"]
    shim.run(partial(pyfuncitem.obj, **arguments))
    return True
