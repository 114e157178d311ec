"""Checks of settings. Each error names the wrong setting and the values that are accepted.

`True` is not accepted as a number, although Python treats it as 1, and NaN is not accepted as a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, Final, TypeAlias, TypeGuard

import attrs

Validator: TypeAlias = Callable[[object, "attrs.Attribute[Any]", Any], None]

_OR_NONE: Final = ("", " or None")
"""The end of an error text, by whether None is accepted."""


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Raise `ValueError` unless a setting is an integer of at least `least`, which is 0 or 1."""
    if type(value) is not int or value < least:
        bound = "be greater than zero" if least else "not be negative"
        raise ValueError(f"{name} must {bound}, and an integer, not {value!r}")


def check_seconds(name: str, value: object, *, endless: bool = False) -> None:
    """Raise `ValueError` unless a setting is a number of seconds above zero.

    `endless` also accepts infinity.
    """
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
    """Raise `ValueError` unless a setting is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_wait(name: str, value: object) -> None:
    """Raise `ValueError` unless a setting is a number of seconds, zero and infinity included."""
    if not is_number(value) or not value >= 0:  # which also refuses NaN
        raise ValueError(f"{name} must not be negative, and a number of seconds, not {value!r}")


def check_clock(name: str, value: object) -> None:
    """Raise `ValueError` unless a time is a number; NaN passes, and callers ignore it."""
    if not is_number(value):
        raise ValueError(f"{name} must be a number of seconds, not {value!r}")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is an integer or a float, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_text(name: str, value: object, *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is a string, or None if `optional`."""
    if not (isinstance(value, str) or (optional and value is None)):
        raise ValueError(f"{name} must be a string{_OR_NONE[optional]}, not {value!r}")


def check_object(name: str, value: object, *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is a dict, or None if `optional`."""
    if not (isinstance(value, dict) or (optional and value is None)):
        raise ValueError(f"{name} must be a dict{_OR_NONE[optional]}, not {value!r:.80}")


def check_mapping(name: str, value: object) -> None:
    """Raise `ValueError` unless a setting is a mapping."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, not {value!r:.80}")


def check_function(name: str, value: object, *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is callable, or None if `optional`."""
    if not (callable(value) or (optional and value is None)):
        raise ValueError(f"{name} must be a callable{_OR_NONE[optional]}, not {value!r}")


def check_kind(name: str, value: object, kind: type[object], *, optional: bool = False) -> None:
    """Raise `ValueError` unless a setting is an instance of a class, or None if `optional`."""
    if not (isinstance(value, kind) or (optional and value is None)):
        raise ValueError(f"{name} must be a {kind.__name__}{_OR_NONE[optional]}, not {value!r:.80}")


def names_in(name: str, value: object) -> tuple[str, ...]:
    """The strings in a list or tuple of a setting; raise `ValueError` for anything else."""
    names: tuple[str, ...] = kinds_in(name, value, str, "strings")
    return names


def kinds_in(name: str, value: Any, kind: type[object], what: str) -> tuple[Any, ...]:
    """The instances of a class in a list or tuple of a setting.

    Args:
        name: The name of the setting, for the error.
        value: The value of the setting; any iterable but a string or a mapping.
        kind: The class of each item.
        what: The plural of the items, for the error.

    Raises:
        ValueError: The value is not such an iterable, or an item has another class.
    """
    is_several = _is_several(value)
    items: tuple[Any, ...] = tuple(value) if is_several else ()
    if not is_several or not all(isinstance(item, kind) for item in items):
        raise ValueError(f"{name} must be a list or a tuple of {what}, not {value!r:.80}")
    return items


def _is_several(value: object) -> bool:
    """Whether a value is an iterable, but no string and no mapping."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def whole(least: int = 1) -> Validator:
    """The validator of an integer of at least `least`."""
    return lambda _, attribute, value: check_whole(attribute.name, value, least)


def seconds(*, endless: bool = False) -> Validator:
    """The validator of a number of seconds."""
    return lambda _, attribute, value: check_seconds(attribute.name, value, endless=endless)


def not_negative(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """The validator of a finite number of seconds, zero included."""
    check_wait(attribute.name, value)
    if value == inf:
        raise ValueError(f"{attribute.name} must be a finite number of seconds, not {value!r}")


def choice(*choices: str) -> Validator:
    """The validator of a string that is one of `choices`."""
    return lambda _, attribute, value: check_choice(attribute.name, value, choices)


def flag(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """The validator of a boolean."""
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
