"""Each option is defined once, and is an argument of the functions of all adapters."""

import inspect
import re
from typing import Any

import pytest

import sansmcp_io.asgi
import sansmcp_io.asyncio
import sansmcp_io.blocking
import sansmcp_io.trio
import sansmcp_io.wsgi

TAKERS = [
    *(sansmcp_io.trio.connect, sansmcp_io.trio.connect_stdio, sansmcp_io.trio.connect_http),
    *(sansmcp_io.trio.serve, sansmcp_io.trio.serve_stdio, sansmcp_io.trio.serve_http),
    *(sansmcp_io.asyncio.connect, sansmcp_io.asyncio.connect_stdio),
    *(sansmcp_io.asyncio.connect_http, sansmcp_io.asyncio.serve, sansmcp_io.asyncio.serve_stdio),
    *(sansmcp_io.asyncio.serve_http, sansmcp_io.blocking.connect_stdio),
    *(sansmcp_io.blocking.connect_http, sansmcp_io.blocking.serve_stdio),
    *(sansmcp_io.asgi.App, sansmcp_io.wsgi.App),
]


def name_of(taker: Any) -> str:
    return f"{taker.__module__}.{taker.__name__}"


@pytest.mark.parametrize("taker", TAKERS, ids=name_of)
def test_docstrings_describe_each_argument_in_the_order_of_the_signature(taker: Any) -> None:
    """The reference and `help` describe an argument nowhere else."""
    docstring = inspect.getdoc(taker) or ""
    arguments = docstring.partition("Args:\n")[2].partition("\n\n")[0]

    described = re.findall(r"^    (\w+): ", arguments, re.MULTILINE)
    assert described == list(inspect.signature(taker).parameters)


@pytest.mark.parametrize("taker", TAKERS, ids=name_of)
def test_signatures_name_no_type_variable(taker: Any) -> None:
    """Users must see the type of the adapter's own call, and not a type variable."""
    annotations = [str(p.annotation) for p in inspect.signature(taker).parameters.values()]

    assert not [text for text in annotations if re.search(r"\w+T\b", text)]


@pytest.mark.parametrize("taker", TAKERS, ids=name_of)
def test_an_argument_that_does_not_exist_is_an_error_at_once(taker: Any) -> None:
    """A misspelt option must not be ignored."""
    given = [None for p in inspect.signature(taker).parameters.values() if p.default is p.empty]

    wrong = rf"^{taker.__name__}\(\) got an unexpected keyword argument 'no_such_option'"
    with pytest.raises(TypeError, match=wrong):
        taker(*given[:-1], info={}, no_such_option=1)


@pytest.mark.parametrize("taker", TAKERS, ids=name_of)
def test_an_argument_that_is_missing_is_an_error_at_once(taker: Any) -> None:
    """The error must name the function and the missing argument."""
    given = [p for p in inspect.signature(taker).parameters.values() if p.default is p.empty]
    others = {p.name: None for p in given if p.name != "info"}

    with pytest.raises(TypeError, match=rf"^{taker.__name__}\(\) missing .*'info'"):
        taker(**others)
