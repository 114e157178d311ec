"""The packages that extras install: where one is missing, the error names the extra."""

from __future__ import annotations

from importlib import import_module


def check_extra(name: str) -> None:
    """Import the package of an extra that has the same name.

    Raises:
        ModuleNotFoundError: It is not installed, or lacks a package itself.
    """
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        raise without_extra(name, error) from None


def without_extra(name: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """What to raise where the package of an extra cannot be imported."""
    if error.name != name:
        return error  # it is installed, and lacks a package itself
    text = f"this part of sansmcp needs {name}: pip install 'sansmcp[{name}]'"
    return ModuleNotFoundError(text, name=name, path=error.path)
