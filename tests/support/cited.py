"""Finds the tests that cite a case from a public report.

What counts is a test function that pytest collects, and there its own docstring or decorator: an id
in a comment, a helper or a test that never runs says nothing.
"""

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_ID: Final = re.compile(r"\bc[0-9]{3}\b")
_NEIGHBOUR: Final = re.compile(r"\bNeighbours? of cases? c[0-9]{3}(?:(?:, | and )c[0-9]{3})*")
"""A test that stands beside that of a case, and is not it."""
_NEVER_PASSES: Final = {"skip", "xfail"}


def citations(root: Path, folder: str) -> dict[str, set[str]]:
    """The collected tests under `folder` that cite a case, by its id.

    Args:
        root: From where pytest is run, and what paths are relative to.
        folder: Where the tests are.
    """
    cited: dict[str, set[str]] = defaultdict(set)
    paths = sorted((root / folder).rglob("test_*.py"))
    citing = [path for path in paths if _ID.search(path.read_text(encoding="utf-8"))]
    names = _collected(root, [path.relative_to(root).as_posix() for path in citing])
    for path, of_path in names.items():
        for function in _functions(root / path):
            if function.name in of_path:
                for id in _cited_by(function):
                    cited[id].add(f"{path}::{function.name}")
    return dict(cited)


def _collected(root: Path, paths: list[str]) -> dict[str, set[str]]:
    """The names of the test functions in these files, as pytest itself finds them."""
    options = ["--collect-only", "-q", "-o", "addopts=", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *paths]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to load them takes seconds
    run = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    names: dict[str, set[str]] = defaultdict(set)
    for line in run.stdout.splitlines():
        path, _, name = line.partition("::")
        if name and not name.endswith("[NOTSET]"):  # parametrized with nothing: it never runs
            names[path].add(name.partition("[")[0])
    return names


def _functions(path: Path) -> Iterator[Function]:
    """The functions of a module, of each name the one that counts: the last."""
    functions: dict[str, Function] = {}
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, Function):
            functions[node.name] = node
    yield from functions.values()


def _cited_by(function: Function) -> set[str]:
    cited = set(_ID.findall(_NEIGHBOUR.sub("", ast.get_docstring(function) or "")))
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = ast.unparse(called).rpartition(".")[2]
        if name in _NEVER_PASSES:
            return set()
        if name == "case" and isinstance(decorator, ast.Call):
            cited |= {arg.value for arg in decorator.args if isinstance(arg, ast.Constant)}
    return cited
