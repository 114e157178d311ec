"""Runs each body of a test on the adapter that its argument `shim` stands for."""

import inspect
from functools import partial
from typing import Any

import pytest

from tests.adapters.shims import SHIMS, Shim, server


@pytest.fixture(params=SHIMS)
def shim(request: pytest.FixtureRequest) -> Shim:
    """The client's adapter."""
    return SHIMS[request.param]


@pytest.fixture
def serving(shim: Shim) -> list[str]:
    """The command of a server on the same adapter."""
    return server(shim.name)


@pytest.fixture(params=SHIMS)
def any_serving(request: pytest.FixtureRequest) -> list[str]:
    """The command of a server on each adapter: where the pace of the other side matters."""
    return server(request.param)


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
