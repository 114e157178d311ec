"""Payloads judged in full: the small call, and results of different sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sansmcp.check import check_params, check_result

from . import _traffic
from ._measure import Effort, Rounds, Row, clock, flatness, interleaved, median_and_spread

CALLS: Final = 500
BLOCKS: Final = (10, 100, 1_000)
BOUND_US: Final = 10.0
MAX_GROWTH: Final = 1.5
METHOD: Final = _traffic.METHOD
RESULT: Final[Any] = _traffic.RESULT
PAYLOADS: Final[dict[str, tuple[Any, Any]]] = {
    "2025-11-25": (_traffic.PARAMS, RESULT),
    "2026-07-28": (_traffic.MODERN_REQUEST["params"], _traffic.MODERN_ANSWER["result"]),
}


def small_call(revision: str) -> float:
    """Params and result of one call; microseconds."""
    params, result = PAYLOADS[revision]
    start = clock()
    for _ in range(CALLS):
        check_params(METHOD, params, revision)
        check_result(METHOD, result, revision)
    return (clock() - start) / CALLS / 1_000


def block(count: int) -> float:
    """One block of a result with many; microseconds."""
    result = {"content": RESULT["content"] * count}
    repeats = max(BLOCKS) // count
    start = clock()
    for _ in range(repeats):
        check_result(METHOD, result, "2025-11-25")
    return (clock() - start) / (repeats * count) / 1_000


def rows(effort: Effort, raw: Rounds) -> list[Row]:
    """The cost of the small call, and how the cost of a block grows with their number."""
    cases: dict[str, Callable[[], float]] = {
        f"check in full, {revision}": partial(small_call, revision) for revision in PAYLOADS
    }
    cases |= {f"check in full, {count} blocks": partial(block, count) for count in BLOCKS}
    found = interleaved(cases, effort.pick(60, 2))
    raw |= found
    table: list[Row] = []
    for revision in PAYLOADS:
        value, spread = median_and_spread(found[f"check in full, {revision}"])
        name = f"check in full, params and result of the small call, {revision}"
        table.append(
            Row(
                name=name,
                codec="-",
                direction="-",
                value=value,
                unit="us",
                bound=BOUND_US,
                spread=spread,
            )
        )
    costs = [found[f"check in full, {count} blocks"] for count in BLOCKS]
    table.append(
        Row(
            name="check in full, growth with the blocks of a result",
            codec="-",
            direction="-",
            value=flatness(costs),
            unit="x",
            bound=MAX_GROWTH,
            spread=f"{' to '.join(map(str, (BLOCKS[0], BLOCKS[-1])))} blocks, cost of one block",
        )
    )
    return table
