"""Checks of settings. Each says which setting is wrong, and what is accepted.

`True` is no number here, although Python takes it for 1, and NaN is no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, Final, TypeAlias, TypeGuard

import attrs

Validator: TypeAlias = Callable[[object, "attrs.Attribute[Any]", Any], None]

_OR_NONE: Final = ("", " or None")
"""By whether None is accepted."""


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Raise `ValueError` unless a setting is an integer of at least this value, 0 or 1."""
    if type(value) is not int or value < least:
        bound = "be greater than zero" if least else "not be negative"
        raise ValueError(f"{name} must {bound}, and an integer, not {value!r}")


def check_seconds(name: str, value: object, *, endless: bool = False) -> None:
    """Raise `ValueError` unless a setting is a time above zero; `endless`: infinity is one, too."""
    if (
        not is_number(value)
        or not value > 0  # which also refuses NaN
        or (value == inf and not endless)
    ):
        bound = "a number of seconds" if endless else "a finite number of seconds"
        raise ValueError(f"{name} must be greater than zero, and {bound}, not {value!r}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise `ValueError` unless a setting is one of these texts."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise `ValueError` unless a setting is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_wait(name: str, value: object) -> None:
    """Raise `ValueError` unless a setting is a time; zero is one, and infinity."""
    if not is_number(value) or not value >= 0:  # which also refuses NaN
        raise ValueError(f"{name} must not be negative, and a number of seconds, not {value!r}")


def check_clock(name: str, value: object) -> None:
    """Raise `ValueError` unless it is a number; NaN is taken, and ignored as a time."""
    if not is_number(value):
        raise ValueError(f"{name} must be a number of seconds, not {value!r}")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is an integer or a float, and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_text(name: str, value: object, *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is a string; `optional`: or None."""
    if not (isinstance(value, str) or (optional and value is None)):
        raise ValueError(f"{name} must be a string{_OR_NONE[optional]}, not {value!r}")


def check_object(name: str, value: object, *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is a dict; `optional`: or None."""
    if not (isinstance(value, dict) or (optional and value is None)):
        raise ValueError(f"{name} must be a dict{_OR_NONE[optional]}, not {value!r:.80}")


def check_mapping(name: str, value: object) -> None:
    """Raise `ValueError` unless a setting is a mapping, of any kind."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, not {value!r:.80}")


def check_function(name: str, value: object, *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting can be called; `optional`: or is None."""
    if not (callable(value) or (optional and value is None)):
        raise ValueError(f"{name} must be a callable{_OR_NONE[optional]}, not {value!r}")


def check_kind(name: str, value: object, kind: type[object], *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is an instance of a class; `optional`: or None."""
    if not (isinstance(value, kind) or (optional and value is None)):
        raise ValueError(f"{name} must be a {kind.__name__}{_OR_NONE[optional]}, not {value!r:.80}")


def names_in(name: str, value: object) -> tuple[str, ...]:
    """The strings of a setting that has several; raise `ValueError` for anything else."""
    names: tuple[str, ...] = kinds_in(name, value, str, "strings")
    return names


def kinds_in(name: str, value: Any, kind: type[object], what: str) -> tuple[Any, ...]:
    """The instances of a class in a setting that has several.

    Raises:
        ValueError: It is none that can be iterated over, a lone string, or something else is in it.
    """
    is_several = _is_several(value)
    items: tuple[Any, ...] = tuple(value) if is_several else ()
    if not is_several or not all(isinstance(item, kind) for item in items):
        raise ValueError(f"{name} must be several {what}, as a list or a tuple, not {value!r:.80}")
    return items


def _is_several(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def whole(least: int = 1) -> Validator:
    """The validator of an integer."""
    return lambda _, attribute, value: check_whole(attribute.name, value, least)


def seconds(*, endless: bool = False) -> Validator:
    """The validator of a time."""
    return lambda _, attribute, value: check_seconds(attribute.name, value, endless=endless)


def choice(*choices: str) -> Validator:
    """The validator of a text out of a few."""
    return lambda _, attribute, value: check_choice(attribute.name, value, choices)


def flag(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """The validator of a setting that is on or off."""
    check_flag(attribute.name, value)


def text(*, optional: bool = False) -> Validator:
    """The validator of a string."""
    return lambda _, attribute, value: check_text(attribute.name, value, optional=optional)


def instance(kind: type[object]) -> Validator:
    """The validator of an instance of a class."""
    return lambda _, attribute, value: check_kind(attribute.name, value, kind)


def function(*, optional: bool = False) -> Validator:
    """The validator of a callable."""
    return lambda _, attribute, value: check_function(attribute.name, value, optional=optional)
