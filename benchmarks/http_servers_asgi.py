"""The ASGI application under uvicorn: processor time per request beside a bare application.

Both run in the same server with the same settings, so its own cost is in both.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ._measure import Effort, Rounds, Row, interleaved, median_and_spread, ratios
from .http_servers import CONNECTIONS, LEGACY, MODERN, cost

BOUND: Final = 2.0
_BARE: Final = "bare ASGI"
_SERVERS: Final = {
    _BARE: ("bare_asgi",),
    "plain handler": ("echo_asgi",),
    "async handler": ("echo_asgi", "--handler=async"),
}


def rows(effort: Effort, kept: Rounds) -> list[Row]:
    """Both kinds of handlers, in both eras."""
    found: list[Row] = []
    requests = effort.pick(5_000, 160)
    for revision in (MODERN, LEGACY):
        cases = {
            name: partial(cost, command, revision, requests) for name, command in _SERVERS.items()
        }
        rounds = interleaved(cases, effort.pick(5, 1))
        floors = rounds.pop(_BARE)
        kept[f"ASGI, {revision}, bare"] = floors
        for handler, costs in rounds.items():
            value, spread = median_and_spread(ratios(costs, floors))
            own, bare = (sorted(part)[len(part) // 2] * 1e6 for part in (costs, floors))
            found.append(
                Row(
                    name=f"ASGI under uvicorn, {handler}, {CONNECTIONS} connections, {revision}",
                    codec="json",
                    direction="to server",
                    value=value,
                    unit="x",
                    bound=BOUND if handler == "plain handler" else None,
                    spread=f"{spread}; {own:.3g} us, {_BARE} {bare:.3g} us",
                )
            )
            kept[f"ASGI, {revision}, {handler}"] = costs
    return found
