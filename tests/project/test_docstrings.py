"""The form of docstrings, where the linter does not look."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def strings_in_bodies(tree: ast.AST) -> Iterator[str]:
    """Strings that stand alone in the body of a function, after its first statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body[1:]:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield f"{node.name}, line {statement.lineno}: {text:.40}"
                    case _:
                        pass


@pytest.mark.parametrize("folder", ["src", "adapters", "tests"])
def test_no_function_has_a_second_docstring(folder: str) -> None:
    """A docstring that stands twice, or below an assignment, is kept right in one place only."""
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in strings_in_bodies(ast.parse(path.read_bytes()))
    ]

    assert found == []
