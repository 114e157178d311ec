"""The principal of a request, as JSON, on its way to the worker that serves the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from sansmcp import JSONValue

DumpPrincipal: TypeAlias = Callable[[Any], JSONValue]
"""Takes what `authenticate` returned, and returns a JSON value."""
LoadPrincipal: TypeAlias = Callable[[JSONValue], Any]
"""Takes a value that `dump_principal` returned, in any worker, and returns the principal."""


class Principals:
    """Turns principals into JSON values and back.

    Args:
        dump: Turns a principal into a JSON value; None: principals are JSON values.
        load: Turns the value into the principal.
    """

    def __init__(self, dump: DumpPrincipal | None, load: LoadPrincipal | None) -> None:
        self._dump: Final = dump
        self._load: Final = load

    def dump(self, principal: Any) -> JSONValue:
        """Return a principal as a JSON value.

        Raises:
            TypeError: That is no JSON value.
            Exception: What the function of the application raises.
        """
        if principal is None:
            return None
        value = principal if self._dump is None else self._dump(principal)
        if not _is_json(value):
            raise TypeError(
                f"a principal of type {type(principal).__name__} cannot be carried to another"
                " worker: give Cluster(dump_principal=, load_principal=), which turn it into a JSON"
                " value and back"
            )
        return cast(JSONValue, value)

    def load(self, value: JSONValue) -> Any:
        """Return the principal of a JSON value."""
        return value if value is None or self._load is None else self._load(value)


def _is_json(value: object) -> bool:
    """Whether a value comes back from JSON as it was, down to the types of its members."""
    if type(value) is dict:
        members = cast(dict[object, object], value)
        return all(type(key) is str and _is_json(member) for key, member in members.items())
    if type(value) is list:
        return all(_is_json(member) for member in cast(list[object], value))
    return value is None or type(value) in (str, int, float, bool)
