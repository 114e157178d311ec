"""Random faults: each call ends once, none is served twice, and nothing is left in Redis."""

import pytest

from tests.cluster.chaos import chat


def test_calls_in_turn_are_all_served() -> None:
    """Without faults, none may fail: sessions of both eras, and no stickiness."""
    report = chat(clients=8, workers=2, seconds=30, most=300, faults=None)
    assert report.wrong == []
    assert set(report.ended) <= {"result", "done", "sampled"}
    assert report.begun >= 300


@pytest.mark.proof
def test_calls_end_once_whatever_is_killed_and_paused() -> None:
    """Workers and Redis, at random; `python -m tests.cluster.chaos` does it for longer."""
    report = chat(clients=20, workers=4, seconds=20, most=1_000_000, faults=1.5)
    assert report.wrong == []
    assert report.faults.total() > 5
