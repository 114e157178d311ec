"""Runs each test body on the adapter that its argument `shim` stands for."""

import inspect
from functools import partial
from typing import Any

import pytest

from tests.adapters.everywhere.shims import SHIMS, Shim, forked, server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each client with a server on the same adapter, or on each adapter that has its
    transport."""
    names = metafunc.fixturenames
    module: Any = metafunc.definition.getparent(pytest.Module)
    if "shim" not in names or hasattr(module.obj, "shim"):  # it has one of its own
        return
    found = SHIMS
    if metafunc.definition.get_closest_marker("process") is not None:
        found = {name: shim for name, shim in SHIMS.items() if shim.transport == "stdio"}
    if "any_serving" not in names:
        metafunc.parametrize("shim", found.values(), ids=list(found))
        return
    pairs = {
        f"{name}-{other.serving}": (shim, (other.serving, shim.transport))
        for name, shim in found.items()
        for other in SHIMS.values()
        if other.transport == shim.transport
        # What carries a client is nothing to the server: one of them is enough for httpx2.
        and ("httpx2" not in name or other.serving == shim.serving)
    }
    metafunc.parametrize(
        ("shim", "any_serving"), pairs.values(), ids=list(pairs), indirect=["any_serving"]
    )


@pytest.fixture
def serving(shim: Shim, request: pytest.FixtureRequest) -> list[str]:
    """The command of the server for this client, on the same adapter if there is one.

    A test of the process gets one that starts as users start it.
    """
    if request.node.get_closest_marker("process") is not None:
        return server(shim.serving, shim.transport)
    return forked(shim.serving, shim.transport)


@pytest.fixture
def any_serving(request: pytest.FixtureRequest) -> list[str]:
    """The command of a server on any adapter."""
    return forked(*request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a body; pytest itself runs plain functions only."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    shim: Any = pyfuncitem.funcargs["shim"]
    shim.run(partial(pyfuncitem.obj, **arguments))
    return True
