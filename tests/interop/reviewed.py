"""What we report about peers of other people, each looked into and found to be right.

A report that is not in this list is either a breach that nobody has looked into yet or a false
accusation, so it fails the test in which it comes up. Each test names what it expects of the list,
so that an entry which is no longer reported fails too.
"""

from collections.abc import Collection

import attrs


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


def assert_reported(peer: str, rules: Collection[str], expected: Collection[str]) -> None:
    """Hold what was reported in a conversation against what it had to, all of it reviewed."""
    known = {reviewed.rule for reviewed in REVIEWED if reviewed.peer == peer}
    assert set(expected) <= known, "a test may expect only what was reviewed"
    assert set(rules) == set(expected), f"about {peer}"
