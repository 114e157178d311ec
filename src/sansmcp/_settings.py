"""Checks of settings. Each says which setting is wrong, and what is accepted.

`True` is no number here, although Python takes it for 1, and NaN is no time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, TypeAlias

import attrs

Validator: TypeAlias = Callable[[object, "attrs.Attribute[Any]", Any], None]


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Raise `ValueError` unless a setting is an integer of at least this value, 0 or 1."""
    if type(value) is not int or value < least:
        bound = "be greater than zero" if least else "not be negative"
        raise ValueError(f"{name} must {bound}, and an integer, not {value!r}")


def check_seconds(name: str, value: object, *, endless: bool = False) -> None:
    """Raise `ValueError` unless a setting is a time above zero; `endless`: infinity is one, too."""
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
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
