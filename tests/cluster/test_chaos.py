"""Random faults: each call and each task ends once, and nothing that is done is lost."""

from typing import Final

import pytest

from tests.cluster.chaos import chat
from tests.cluster.task_chaos import soak

RESULTS: Final = {"result", "done", "sampled"}
CAUSES: Final = (
    *("has ended before it answered", "cannot be reached", "has been away for long"),
    *("has lost messages", "there is no session", "no such session"),
    "the connection has failed",  # a worker that goes on closes what was idle for long
    "sample: RequestTimeout",  # the answer of the client has got 503
)


def test_calls_in_turn_are_all_served() -> None:
    """Without faults, none may fail: sessions of both eras, and no stickiness."""
    report = chat(clients=5, workers=2, seconds=60, most=150)
    assert report.wrong == []
    assert set(report.ended) <= RESULTS
    assert report.begun >= 150


@pytest.mark.proof
def test_ten_thousand_calls_are_all_served_once() -> None:
    """By four workers and without stickiness: none is lost, and none is doubled."""
    report = chat(clients=32, workers=4, seconds=1200, most=10_000)
    assert report.wrong == []
    assert set(report.ended) <= RESULTS
    assert report.begun >= 10_000


@pytest.mark.proof
def test_calls_end_once_while_a_worker_and_redis_are_paused() -> None:
    """For ten seconds each, which is many leases: each call ends once, with the cause."""
    pauses = [("pause worker", 10.0), ("pause redis", 10.0)]
    report = chat(clients=20, workers=4, seconds=35, plan=pauses)
    assert report.wrong == []
    assert report.faults.total() == 2
    causes = [how for how in report.ended if how not in RESULTS]
    assert causes
    for how in causes:
        assert any(text in how for text in CAUSES), how


@pytest.mark.proof
def test_calls_end_once_whatever_is_killed_and_paused() -> None:
    """Workers and Redis, at random; `python -m tests.cluster.chaos` does it for longer."""
    report = chat(clients=20, workers=4, seconds=20, faults=1.5)
    assert report.wrong == []
    assert report.faults.total() > 5


def test_no_finished_result_of_a_task_is_lost_while_workers_are_killed() -> None:
    """`python -m tests.cluster.task_chaos` does it for longer."""
    report = soak(clients=6, workers=3, seconds=6, faults=1.0)
    assert report.wrong == []
    assert report.faults.total() >= 1
    assert report.results
