"""The choice of a model for sampling, by the preferences of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from .._wire.setting_checks import is_number, names_in
from .._wire.values import Record, is_list, is_object


@attrs.frozen(kw_only=True)
class ModelScores(Record):
    """How good a model is in the caller's opinion, from 0 (worst) to 1 (best).

    Attributes:
        cost: 1 for the cheapest model.
        speed: 1 for the fastest model.
        intelligence: 1 for the most capable model.
    """

    cost: float = 0
    speed: float = 0
    intelligence: float = 0


_PRIORITIES: Final = (
    ("costPriority", "cost"),
    ("speedPriority", "speed"),
    ("intelligencePriority", "intelligence"),
)


def choose_model(
    preferences: Mapping[str, Any] | None,
    names: Sequence[str],
    scores: Mapping[str, ModelScores] | None = None,
) -> str | None:
    """The model that fits the preferences of a sampling request best.

    The hints are tried in their order: the first one that is part of a name decides. If it is part
    of several names, or no hint is part of any, the priorities decide between them. Keeps SAMP-016,
    SAMP-017. The server only wishes: the client may take another model.

    Args:
        preferences: The member `modelPreferences` of the request, as it was received; None: absent.
        names: The names of the models that the client has, the one that it prefers first.
        scores: The scores of models by their names; a model without scores has 0 in each.

    Returns:
        One of the names, the first of several equally good ones; None if there are no names.
    """
    names = names_in("names", names)
    wishes: Mapping[str, Any] = {} if preferences is None else preferences
    found = _hinted(wishes.get("hints"), names) or names
    if scores is None or not found:
        return next(iter(found), None)
    weights = [(_weight(wishes.get(priority)), name) for priority, name in _PRIORITIES]
    return max(found, key=lambda name: _score(scores.get(name), weights))


def _hinted(hints: object, names: Sequence[str]) -> list[str]:
    """The names that the first fitting hint is part of."""
    for hint in hints if is_list(hints) else ():
        wanted: object = hint.get("name") if is_object(hint) else None
        if isinstance(wanted, str) and wanted:
            found = [name for name in names if wanted in name]
            if found:
                return found
    return []


def _weight(priority: object) -> float:
    """A priority of the server; 0 if it is absent, or no number from 0 to 1."""
    return priority if is_number(priority) and 0 <= priority <= 1 else 0


def _score(scores: ModelScores | None, weights: Sequence[tuple[float, str]]) -> float:
    return sum(weight * float(getattr(scores, name, 0)) for weight, name in weights)
