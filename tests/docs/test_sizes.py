"""The table of the sizes of adapters counts every module."""

import functools
import subprocess
import sys
from textwrap import dedent

import pytest

from docs._ext.sizes import Size, adapters, code_lines, measure, source_of


@functools.cache
def sizes() -> dict[str, Size]:
    """The sizes, measured in a test and not during collection, which must be fast."""
    return {size.name: size for size in measure(adapters())}


def test_only_code_is_counted() -> None:
    """Otherwise comments and docstrings would count as code."""
    source = '''
        """What it is.

        And more.
        """

        import os  # a comment beside code

        # a comment
        TEXT = """a text
        is data"""


        class Thing:
            """What it is."""

            def act(
                self,
            ) -> None:
                """What it does."""
                os.getpid()
    '''

    assert code_lines(dedent(source)) == 8


def test_all_adapters_are_in_it() -> None:
    """The size of an adapter that is left out would not be watched."""
    known = {"asgi", "asyncio", "blocking", "h11", "httpx", "oauth", "redis", "stdio"}
    known |= {"trio", "wsgi"}
    assert set(sizes()) == known


@pytest.mark.parametrize("name", adapters())
def test_all_that_an_adapter_loads_is_counted(name: str) -> None:
    """A part that is missing would make the adapter look small."""
    # The package itself imports some for its own names, whichever adapter is used.
    code = f"import sys, sansmcp_io; old = set(sys.modules); import sansmcp_io.{name}"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules.keys() - old)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {
        module.removeprefix("sansmcp_io.")
        for module in run.stdout.split()
        if module.startswith("sansmcp_io.")
    }

    assert name in loaded
    assert loaded <= sizes()[name].own | sizes()[name].shared


@pytest.mark.parametrize("name", adapters())
def test_lines_add_up(name: str) -> None:
    """Each part is counted once, as the adapter's own or as shared."""
    size = sizes()[name]
    lines = {module: code_lines(source_of(module) or "") for module in size.own | size.shared}

    assert not size.own & size.shared
    assert name in size.own
    assert sum(lines[module] for module in size.own) == size.own_lines
    assert sum(lines[module] for module in size.shared) == size.shared_lines
    assert max(lines[module] for module in size.own) == size.longest


@pytest.mark.parametrize("name", adapters())
def test_no_module_of_an_adapter_is_long(name: str) -> None:
    """A long module is hard to understand, and hides mistakes."""
    assert sizes()[name].longest <= 400
