"""The memory of an idle task is within the bound that the benchmark of tasks claims."""

import gc
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pytest

from benchmarks.tasks import FORMS, FollowedPolls, Form, ServedPolls

MANY = 200
"""So many that what a table grows ahead does not count much."""
BOUND = 2048
SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def size_of(root: object) -> int:
    """Bytes of all objects that an object holds, without code and the tables of the revisions."""
    seen: set[int] = set()
    left: list[Any] = [root]
    total = 0
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, SHARED):
            continue
        if value.__class__.__module__.startswith("sansmcp._spec"):
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        left += gc.get_referents(value)
    return total


def served(form: Form, count: int) -> object:
    """A server with so many tasks, each of which was polled twice."""
    polls = ServedPolls(form, count)
    if count:
        polls.run(2 * count)
    return polls.server


def followed(form: Form, count: int) -> object:
    """A client of so many tasks, each of which it has polled twice or so."""
    polls = FollowedPolls(form, count)
    if count:
        polls.run(2 * count)
    return polls.client


@pytest.mark.parametrize("make", [served, followed])
@pytest.mark.parametrize("form", FORMS, ids=[form.revision for form in FORMS])
def test_an_idle_task_keeps_two_kibibytes_at_most(
    make: Callable[[Form, int], object], form: Form
) -> None:
    """10,000 tasks of an hour each must not cost more than their data and some 20 MB."""
    fewer, more = (size_of(make(form, count)) for count in (MANY, 2 * MANY))
    assert (more - fewer) / MANY <= BOUND
