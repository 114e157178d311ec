"""Reports about peers of other projects that were reviewed and found to be right.

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


REVIEWED = (
    Reviewed(
        "mcp",
        "CANC-011",
        "in a session it answers a cancelled call with an error, on the stream of the call; that "
        "is ignored, as what a race has lost",
    ),
    Reviewed(
        "mcp",
        "MRTR-008",
        "the low-level server passes on what a tool wants to ask, whether or not the request "
        "declared that the client can be asked it; a tool has to look for itself, and "
        "tests/peers/mcp_server.py does not",
    ),
    Reviewed(
        "mcp 1",
        "OWN-019",
        "over HTTP it refuses what it cannot place, such as the probe of a newer client, with an "
        'error that has the id "server-error" instead of that of the request',
    ),
    Reviewed(
        "mcp 1",
        "CAP-002",
        "its FastMCP sends log messages and tells of changed resources on behalf of its tools, but "
        "declares neither",
    ),
    Reviewed(
        "mcp 1",
        "CANC-011",
        "it answers a cancelled call with an error; that is ignored, as what a race has lost",
    ),
    Reviewed(
        "server-everything",
        "PROG-006",
        "trigger-long-running-operation does not look at its abort signal, so it reports progress "
        "to its end for a call that was cancelled; it is ignored, as what a race has lost",
    ),
    Reviewed(
        "server-everything",
        "SESS-008",
        "it answers 400 for a session that it has forgotten; another session is opened",
    ),
)


_NO_RELATED_TASK = "its answers to questions of a task do not name the task in `_meta`"

ACCUSED = (
    Reviewed("mcp", "MRTR-008", "as above"),
    Reviewed("sdk_tasks_client", "TASK-026", _NO_RELATED_TASK),
    Reviewed("ext_tasks_client", "TASK-026", _NO_RELATED_TASK),
    Reviewed("ext_tasks_client", "TASK-016", "its receiver begins a task as `input_required`"),
    Reviewed(
        "ext_tasks_client", "TASK-025", "its `tasks/result` does not name the task in `_meta`"
    ),
)
"""What an observer sees a peer do wrong, whatever the order in which the two had read each other.

It accuses of less than a connection reports: nobody of progress that may have crossed a
cancellation.
"""


def accusations(reports: Path) -> list[tuple[Side, str]]:
    """The violations that the observer beside our hand-driven server has recorded."""
    lines = reports.with_name(f"{reports.name}.accused").read_text("utf-8").splitlines()
    return [(Side[side], rule) for side, rule in map(str.split, lines)]


def assert_reviewed(peer: str, rules: Collection[str], reviewed: Collection[Reviewed]) -> None:
    """Assert that all these reports were reviewed."""
    assert set(rules) <= {one.rule for one in reviewed if one.peer == peer}, f"about {peer}"


def assert_told(
    peer: str, reports: Path, expected: Collection[str] = (), accuses: Collection[str] = ()
) -> None:
    """Hold what our hand-driven server, and the observer beside it, wrote about a client.

    Args:
        peer: Who the client was.
        reports: The server's file.
        expected: The rules that it had to report, all of them reviewed.
        accuses: The rules that the observer had to see the client break, all of them reviewed.
    """
    assert_reviewed(peer, expected, REVIEWED)
    assert_reviewed(peer, accuses, ACCUSED)
    assert set(reports.read_text("utf-8").split()) == set(expected), f"about {peer}"
    accused = {(Side.CLIENT, rule) for rule in accuses}
    assert set(accusations(reports)) == accused, f"about {peer}"
