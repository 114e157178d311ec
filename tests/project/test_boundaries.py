"""The line between pure and impure code, where import contracts cannot express it."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import sansmcp_io

ADAPTERS = sorted(Path(sansmcp_io.__file__).parent.rglob("*.py"))
PYPROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"
LOADED_BY_SANSMCP = """
import json, sys, attrs
before = set(sys.modules)
import sansmcp
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def names_imported_from_sansmcp(tree: ast.AST) -> Iterator[str]:
    """Dotted names, as in `sansmcp.http.Sessions` for `from sansmcp.http import Sessions`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found = [name.name for name in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found = [f"{module}.{name.name}" for name in names]
            case _:
                continue
        yield from (name for name in found if name.split(".")[0] == "sansmcp")


def private_names_of_loops(tree: ast.AST) -> Iterator[str]:
    """Names such as `loop._ready` and `self._loop._selector`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
                if owner.strip("_") == "loop" and name.startswith("_"):
                    yield f"{owner}.{name}"
            case _:
                pass


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.name)
def test_adapters_use_public_methods_of_loops_only(path: Path) -> None:
    """What is private to asyncio's own loop, uvloop does not have, nor the next version."""
    assert list(private_names_of_loops(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.name)
def test_adapters_use_public_names_only(path: Path) -> None:
    """An adapter that needs a private name shows what authors of other adapters cannot do."""
    names = names_imported_from_sansmcp(ast.parse(path.read_bytes()))
    private = [name for name in names if any(part.startswith("_") for part in name.split("."))]

    assert private == []


def test_import_loads_nothing_impure() -> None:
    """The contracts read our import statements; this sees what the imported modules bring along."""
    contracts = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    impure = set(contracts[0]["forbidden_modules"])
    run = subprocess.run(
        [sys.executable, "-c", LOADED_BY_SANSMCP], check=True, capture_output=True, text=True
    )
    loaded: list[str] = json.loads(run.stdout)

    assert "sansmcp" in loaded
    assert [name for name in loaded if name.split(".")[0] in impure] == []


def test_import_loads_no_room_that_was_not_asked_for() -> None:
    """Each takes time in every program that starts, and few programs need it."""
    run = subprocess.run(
        [sys.executable, "-c", LOADED_BY_SANSMCP], check=True, capture_output=True, text=True
    )
    loaded: list[str] = json.loads(run.stdout)
    rooms = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("sansmcp.")}

    assert rooms == {"sansmcp._connection", "sansmcp._rules", "sansmcp._spec", "sansmcp._wire"}
    assert "sansmcp._spec.extensions" not in loaded
