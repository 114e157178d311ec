"""Checks of payloads: the params and results of each method and revision.

A check returns the problems of a payload, each with the id of a rule and a JSON path. It changes
nothing, and nothing of this room is loaded before it is asked for. Begin with `_check` (the public
functions), then `_shapes` (how a payload is judged) and `_linking` (how shapes are made from the
tables, which `tools/payloads.py` writes from the official schemas). `_part_rules` lists the rules
that a schema cannot say. `_rules` judges whole messages; this room knows it, `_spec` and `_wire`.
"""

from ._check import check_params, check_part, check_result
from ._problems import MAX_PROBLEMS, Problem

__all__ = ["MAX_PROBLEMS", "Problem", "check_params", "check_part", "check_result"]
