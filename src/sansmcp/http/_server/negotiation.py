"""Which forms a client takes, and which form its body has.

Source: RFC 9110, sections 8.3 and 12.5.1.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..._wire.values import Record


@attrs.frozen
class Accepted(Record):
    """Which of the two forms of an answer a client takes."""

    json: bool
    stream: bool


EVERYTHING: Final = Accepted(json=True, stream=True)


def _parts(text: str) -> list[str]:
    return [part.strip(" \t") for part in text.split(";")]


def _quality(parameters: list[str]) -> bool:
    """Whether the weight of a range is above zero; one that cannot be read counts as 1."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip(" \t").lower() == "q":
            try:
                return float(value) > 0
            except ValueError:
                return True
    return True


def accepted(accept: str | None) -> Accepted:
    """What an `Accept` field takes; no field takes everything. The closest range decides.

    Keeps HTTP-018.
    """
    if not accept:
        return EVERYTHING
    ranges: dict[str, bool] = {}
    for part in accept.split(","):
        kind, *parameters = _parts(part)
        if kind:
            ranges[kind.lower()] = _quality(parameters)

    def takes(kind: str) -> bool:
        everything = ranges.get("*/*", False)
        return ranges.get(kind, ranges.get(kind.partition("/")[0] + "/*", everything))

    return Accepted(json=takes("application/json"), stream=takes("text/event-stream"))


def is_json(content_type: str) -> bool:
    """Whether a body of this type is JSON in UTF-8. Parameters may follow, in any case."""
    kind, *parameters = _parts(content_type)
    if kind.lower() != "application/json":
        return False
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip(" \t").lower() == "charset":
            return value.strip(' \t"').lower() in ("utf-8", "utf8", "us-ascii")
    return True
