"""What we report about peers of other people, each looked into and found to be right.

A report that is not in this list is either a breach that nobody has looked into yet or a false
accusation, so it fails the test in which it comes up. Each test names what it expects of the list,
so that an entry which is no longer reported fails too.
"""

from collections.abc import Collection
from pathlib import Path

import attrs

from sansmcp import Side


@attrs.frozen
class Reviewed:
    """`rule` is reported about `peer`, and `why` says what the peer does."""

    peer: str
    rule: str
    why: str


_PROBE = (
    "asks for server/discover before initialize to find out whether the server speaks 2026-07-28; "
    "one that speaks older revisions only has to take it for a request that came too early"
)

REVIEWED = (
    Reviewed("inspector", "LIFE-005", f"with --protocol-era auto it {_PROBE}"),
    Reviewed("mcp", "LIFE-005", f"the client {_PROBE}"),
    Reviewed(
        "server-everything",
        "PROG-006",
        "trigger-long-running-operation does not look at its abort signal, so it reports progress "
        "to its end for a call that was cancelled; it is ignored, as what a race has lost",
    ),
)


ACCUSED: tuple[Reviewed, ...] = ()
"""What an observer sees a peer do wrong, whatever the order in which the two had read each other.

It accuses of less than a connection reports: nobody of a probe for the newest era, or of progress
that may have crossed a cancellation.
"""


def accusations(reports: Path) -> list[tuple[Side, str]]:
    """What the observer beside our hand-driven server has written down."""
    lines = reports.with_name(f"{reports.name}.accused").read_text("utf-8").splitlines()
    return [(Side[side], rule) for side, rule in map(str.split, lines)]


def assert_reported(peer: str, rules: Collection[str], expected: Collection[str]) -> None:
    """Hold what was reported in a conversation against what it had to, all of it reviewed."""
    known = {reviewed.rule for reviewed in REVIEWED if reviewed.peer == peer}
    assert set(expected) <= known, "a test may expect only what was reviewed"
    assert set(rules) == set(expected), f"about {peer}"


def assert_accused(
    peer: str, side: Side, accused: Collection[tuple[Side, str]], expected: Collection[str] = ()
) -> None:
    """Hold what an observer saw broken against what was reviewed; of our side that is nothing.

    Args:
        peer: Who talked with us.
        side: Which side it was.
        accused: Who broke what.
        expected: What the peer had to break.
    """
    known = {reviewed.rule for reviewed in ACCUSED if reviewed.peer == peer}
    assert set(expected) <= known, "a test may expect only what was reviewed"
    assert set(accused) == {(side, rule) for rule in expected}, f"about {peer}"
