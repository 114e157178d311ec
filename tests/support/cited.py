"""Finds the tests that cite a case from a public report.

A citation counts only in the docstring or the decorator of a test function that pytest collects. An
id in a comment, in a helper or in a test that never runs does not count.
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
"""A citation by a test that is related to the test of a case, and does not count."""
_NEVER_PASSES: Final = {"skip", "xfail"}


def citations(root: Path, folder: str) -> dict[str, set[str]]:
    """Return, for each case, the collected tests under `folder` that cite it.

    Args:
        root: The folder in which pytest is run; the paths in the result are relative to it.
        folder: The folder with the tests.
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
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # loading plugins takes seconds
    run = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    names: dict[str, set[str]] = defaultdict(set)
    for line in run.stdout.splitlines():
        path, _, name = line.partition("::")
        if name and not name.endswith("[NOTSET]"):  # it has no parameters, so it never runs
            names[path].add(name.partition("[")[0])
    return names


def _functions(path: Path) -> Iterator[Function]:
    """The functions of a module. Of several with one name, only the last one is a test."""
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
