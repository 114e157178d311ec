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
LOADED_BY = """
import json, sys, attrs
before = set(sys.modules)
import {}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(module: str) -> list[str]:
    """The modules that an import loads, without those that attrs has loaded."""
    run = subprocess.run(
        [sys.executable, "-c", LOADED_BY.format(module)], check=True, capture_output=True, text=True
    )
    loaded: list[str] = json.loads(run.stdout)
    return loaded


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
    """Private attributes of asyncio's loop are missing in uvloop, and may change."""
    assert list(private_names_of_loops(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.name)
def test_adapters_use_public_names_only(path: Path) -> None:
    """Authors of other adapters can use public names only."""
    names = names_imported_from_sansmcp(ast.parse(path.read_bytes()))
    private = [name for name in names if any(part.startswith("_") for part in name.split("."))]

    assert private == []


@pytest.mark.parametrize(
    "module",
    [
        "sansmcp",
        "sansmcp.check",
        "sansmcp.content",
        "sansmcp.http",
        "sansmcp.limits",
        "sansmcp.auth",
    ],
)
def test_import_loads_nothing_impure(module: str) -> None:
    """The import contracts check our own imports; this test sees indirect ones too."""
    contracts = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    impure = set(contracts[0]["forbidden_modules"])
    loaded = loaded_by(module)

    assert module in loaded
    assert [name for name in loaded if name.split(".")[0] in impure] == []


def test_import_loads_no_room_that_was_not_asked_for() -> None:
    """Each room costs start-up time, and few programs need all."""
    loaded = loaded_by("sansmcp")
    rooms = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("sansmcp.")}

    assert rooms == {"sansmcp._connection", "sansmcp._rules", "sansmcp._spec", "sansmcp._wire"}
    assert "sansmcp._spec.extensions" not in loaded


def test_http_loads_nothing_of_authorization() -> None:
    """Most clients and servers over HTTP need no authorization."""
    assert not [name for name in loaded_by("sansmcp.http") if name.startswith("sansmcp.auth")]


def test_authorization_loads_no_cryptography() -> None:
    """Cryptography takes 18 MB; only `sansmcp.auth.jose` needs it."""
    packages = {name.partition(".")[0] for name in loaded_by("sansmcp.auth")}

    assert "hashlib" in packages
    assert packages.isdisjoint({"joserfc", "cryptography"})


def test_authorization_knows_only_what_is_below_it() -> None:
    """The import of `sansmcp.http` is for type checkers alone."""
    rooms = {".".join(name.split(".")[:2]) for name in loaded_by("sansmcp.auth")}

    assert not {"sansmcp.http", "sansmcp.observer", "sansmcp.testing"} & rooms
