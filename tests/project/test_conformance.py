"""The verdict of `make conformance` on what the suite has written."""

import json
from pathlib import Path

import attrs
import pytest

from tests.conformance.__main__ import (
    NOT_ATTEMPTED,
    SCORED,
    UNSCORED,
    Row,
    missing,
    report,
    row_of,
    status,
)

LEG, REVISION = KEY = "server", "2026-07-28"
EXPECTED: dict[tuple[str, str], int] = {KEY: SCORED[KEY]}


def all_pass() -> list[Row]:
    """The rows of a run in which everything passes."""
    scored = [Row(*KEY, f"scored-{number}", 1, 0, True, ()) for number in range(SCORED[KEY])]
    unscored = [
        Row(*KEY, name, 0 if name in NOT_ATTEMPTED else 1, 0, False, ()) for name in UNSCORED[KEY]
    ]
    return [*scored, *unscored]


def test_a_run_in_which_all_passes_succeeds() -> None:
    """All 13 unscored scenarios of 2026-07-28 are known, and only the skipped one may be empty."""
    assert len(UNSCORED[KEY]) == 13
    rows = all_pass()
    assert status(rows, EXPECTED) == 0
    assert missing(rows, *KEY, set()) == []
    assert [row.scenario for row in rows if not row.attempted] == ["tasks-status-notifications"]


@pytest.mark.parametrize("name", sorted(set(UNSCORED[KEY]) - set(NOT_ATTEMPTED)))
def test_an_unscored_scenario_that_fails_or_is_not_run_fails_the_run(name: str) -> None:
    """No revision requires them, so the suite itself would not complain."""
    rows = all_pass()
    (at,) = (number for number, row in enumerate(rows) if row.scenario == name)
    for passed, failed in ((1, 1), (0, 0)):
        rows[at] = attrs.evolve(rows[at], passed=passed, failed=failed)
        assert status(rows, EXPECTED) == 1
    del rows[at]
    (lost,) = missing(rows, *KEY, set())
    assert (lost.scenario, lost.scored, lost.verdict) == (name, False, "FAILED")
    assert status([*rows, lost], EXPECTED) == 1


def test_a_scored_scenario_that_is_lost_fails_the_run() -> None:
    """A suite that runs nothing must not look like one that finds nothing."""
    assert status(all_pass()[1:], EXPECTED) == 1


def test_findings_are_read_from_the_files_of_the_suite(tmp_path: Path) -> None:
    """The suite's own exit status counts scored scenarios only."""
    folder = tmp_path / "server-tasks-lifecycle-2026-11-30T10-00-00-000Z"
    folder.mkdir()
    checks = [
        {"id": "one", "status": "SUCCESS"},
        {"id": "two", "status": "FAILURE", "errorMessage": "no task"},
    ]
    (folder / "checks.json").write_text(json.dumps(checks))
    row = row_of(LEG, REVISION, folder, tmp_path, set())
    assert (row.scenario, row.passed, row.failed, row.is_bad) == ("tasks-lifecycle", 1, 1, True)
    lines = list(report([row]))
    assert lines[1].split() == [*KEY, "tasks-lifecycle", "1", "1", "no", "FAILED"]
    assert lines[2].endswith("two: FAILURE: no task")
