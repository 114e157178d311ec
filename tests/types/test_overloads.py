"""The overloads cover every method, each with its own params and result.

The modules in `tests/typing` show that type checkers read them correctly.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final, Literal, get_args, get_origin, get_overloads, get_type_hints

import pytest

import sansmcp
import sansmcp_io.asgi
import sansmcp_io.blocking
import sansmcp_io.trio
import sansmcp_io.wsgi
from sansmcp import Side, types
from sansmcp._connection import typed_requests
from sansmcp.types.input_required import RetryMembers
from sansmcp_io._common import typed_requests as adapter_requests
from tests.support.tables import own_table
from tests.types.vocabulary import peeled
from tools import overloads

NAMES: Final = {**vars(types), **vars(sansmcp), **vars(adapter_requests), **vars(typed_requests)}


def filed(module: ModuleType, name: str) -> Any:
    """The key of a method for `get_overloads`, as there is no implementation to ask."""
    return SimpleNamespace(__module__=module.__name__, __qualname__=name)


FACES: Final[dict[Side, Any]] = {
    Side.CLIENT: filed(typed_requests, "ClientRequests.send_request"),
    Side.SERVER: filed(typed_requests, "ServerRequests.send_request"),
}
REQUEST: Final = filed(adapter_requests, "AsyncRequests.request")
START_TASK: Final = filed(adapter_requests, "TaskRequests.start_task")
BLOCKING: Final = filed(adapter_requests, "BlockingRequests.request")
SENT_BY_THE_LIBRARY: Final = {"initialize"}  # by `start`; `send_request` refuses it
ANSWERED_EMPTY: Final = {"logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"}


def methods_of(*sides: Side) -> set[str]:
    """The requests that a side may send, in any revision."""
    names = {side: f"{side.name.lower()}->{side.other.name.lower()}" for side in sides}
    return {
        row["method"]
        for row in own_table("methods.csv")
        if row["kind"] in ("request", "input_request") and row["direction"] in names.values()
    } - SENT_BY_THE_LIBRARY


def alternatives(kind: Any) -> list[Any]:
    """The members of a union; anything else is its only one."""
    kind, _ = peeled(kind)
    if get_origin(kind) in (None, list, dict) or get_origin(kind) is Literal:
        return [kind]
    return [one for part in get_args(kind) for one in alternatives(part)]


def overloads_of(function: Callable[..., Any]) -> list[tuple[list[str], dict[str, Any]]]:
    """The method names of each overload, and its type hints, but for the last two."""
    found: list[tuple[list[str], dict[str, Any]]] = []
    for overload in get_overloads(function)[:-2]:
        hints = get_type_hints(overload, localns=NAMES)
        found.append((list(get_args(hints["method"])), hints))
    return found


def request_types() -> dict[str, Any]:
    """The type of the request of each method."""
    found: dict[str, Any] = {}
    for request in alternatives(types.ClientRequest) + alternatives(types.ServerRequest):
        hints = get_type_hints(request)
        found[get_args(hints["method"])[0]] = request
    return found


@pytest.mark.parametrize("side", Side)
def test_send_request_has_an_overload_for_each_method_of_its_side(side: Side) -> None:
    """The params of a method without an overload would not be checked."""
    names = [name for names, _ in overloads_of(FACES[side]) for name in names]

    assert sorted(names) == sorted(methods_of(side))


def test_request_of_adapters_has_an_overload_for_each_method() -> None:
    """The result of a method without an overload would have no type."""
    names = {name for names, _ in overloads_of(REQUEST) for name in names}

    assert names == methods_of(*Side)


def test_start_task_has_an_overload_for_each_method_that_a_client_sends_for_a_task() -> None:
    """The params of a method without an overload would not be checked."""
    (rows,) = [names for names, _ in overloads_of(START_TASK)]

    assert rows == ["tools/call"]


@pytest.mark.parametrize(
    "function",
    [*FACES.values(), REQUEST, START_TASK],
    ids=["client", "server", "io", "task"],
)
def test_params_of_an_overload_are_those_of_its_method(function: Callable[..., Any]) -> None:
    """Type checkers would accept params of another method."""
    for names, hints in overloads_of(function):
        given = alternatives(hints["params"])
        for name in names:
            params = alternatives(get_type_hints(request_types()[name])["params"])
            if types.UncheckedParams in given:
                ours = [kind for kind in given if kind not in (types.UncheckedParams, type(None))]
                assert ours == params, name
            else:  # those that ask for a task
                assert keys_of(given) == keys_of(params) - keys_of([RetryMembers])
                assert all("task" in kind.__required_keys__ for kind in given)


def keys_of(kinds: list[Any]) -> set[str]:
    """The keys of several TypedDicts."""
    return {key for kind in kinds for key in kind.__annotations__}


def test_results_of_an_overload_are_those_of_its_method() -> None:
    """Callers would read a result with the wrong type."""
    for (name,), hints in overloads_of(REQUEST):
        if types.UncheckedParams not in alternatives(hints["params"]):
            expected = "CreateTaskResult"
        elif name == "tasks/result":  # the result of any method
            expected = "JSONObject"
        elif name in ANSWERED_EMPTY:
            expected = "EmptyResult"
        else:
            expected = request_types()[name].__name__.removesuffix("Request") + "Result"
        assert hints["return"] == vars(types)[expected], name


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (sansmcp.ClientConnection.send_request, typed_requests.RequestOptions),
        (sansmcp.ServerConnection.send_request, typed_requests.RequestOptions),
        (sansmcp_io.blocking.Client.request, adapter_requests.RequestKeywords),
        (sansmcp_io.blocking.Client.start_task, adapter_requests.RequestKeywords),
        (sansmcp_io.trio.Client.start_task, adapter_requests.RequestKeywords),
        (sansmcp_io.blocking.Server.request, adapter_requests.RequestKeywords),
        (sansmcp_io.blocking.Call.request, adapter_requests.RequestKeywords),
        (sansmcp_io.trio.Client.request, adapter_requests.RequestKeywords),
        (sansmcp_io.trio.Server.request, adapter_requests.RequestKeywords),
        (sansmcp_io.trio.Call.request, adapter_requests.RequestKeywords),
    ],
)
def test_options_are_the_keyword_arguments(function: Any, options: Any) -> None:
    """Type checkers read the TypedDict of options, and Python reads the signature."""
    keywords = {
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }

    assert options.__annotations__.keys() == keywords


def test_requests_that_block_have_the_same_overloads() -> None:
    """A method that is missing in one of the classes would not be checked there."""
    assert len(overloads_of(REQUEST)) > 20
    assert overloads_of(BLOCKING) == overloads_of(REQUEST)


@pytest.mark.parametrize("path", overloads.MODULES, ids=lambda path: path.parent.name)
def test_the_modules_of_overloads_are_those_that_the_script_writes(path: Path) -> None:
    """A method that was added to `sansmcp.types` only would have no overload."""
    written = overloads.MODULES[path]()

    assert path.read_text("utf-8") == written, "`make generated` writes it again"


@pytest.mark.parametrize(
    "owner",
    [
        *(sansmcp_io.trio.Client, sansmcp_io.trio.Server, sansmcp_io.trio.Call),
        *(sansmcp_io.blocking.Client, sansmcp_io.blocking.Server, sansmcp_io.blocking.Call),
        *(sansmcp_io.asgi.ServerCall, sansmcp_io.wsgi.ServerCall, sansmcp_io.wsgi.Server),
    ],
    ids=lambda owner: f"{owner.__module__}.{owner.__name__}",
)
def test_request_shows_its_docstring_in_an_editor(owner: Any) -> None:
    """Editors take it from the function that a class has, or has inherited, under this name.

    A type checker's overloads have no docstring of their own, and neither has an object.
    """
    function: Any = owner.request

    assert inspect.isfunction(function)
    assert "max_timeout: Seconds allowed in all" in str(function.__doc__)
    classes = [adapter_requests.AsyncRequests, adapter_requests.BlockingRequests]
    assert all(function in vars(kind.__mro__[1]).values() for kind in classes)
