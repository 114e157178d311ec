"""Programs that look at the project are not measured."""

from tests.support.processes import unmeasured_children

__all__ = ["unmeasured_children"]
