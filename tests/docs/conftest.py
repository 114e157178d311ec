"""Examples are not measured."""

from tests.support.processes import unmeasured_children

__all__ = ["unmeasured_children"]
