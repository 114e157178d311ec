"""What holds over HTTP whatever the network does: nothing promised is lost, nothing comes twice."""

import pytest

from sansmcp import MODERN_REVISIONS, Subscription
from tests.support.http.random_run import RandomRun

SEEDS = 1_000
GROUPS = 20
USUAL_GROUPS = 4  # in `make test`; the others are for `make proof`
STEPS = 150


def finished(seed: int) -> RandomRun:
    """A run that has come to its rest."""
    run = RandomRun(seed)
    run.open()
    for _ in range(STEPS):
        run.step()
    run.settle()
    return run


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=() if group < USUAL_GROUPS else pytest.mark.proof)
        for group in range(GROUPS)
    ],
)
def test_every_call_ends_once_and_nothing_is_lost_or_doubled(group: int) -> None:
    """Requests, listings, subscriptions, pings, and what the server asks; and at the end
    nothing is left on either side."""
    for seed in range(group, SEEDS, GROUPS):
        run = finished(seed)
        client, server = run.client, run.pair.server
        # A subscription lasts; everything else has ended by now.
        lasting = [one for one in run.handles if isinstance(one, Subscription) and one.open]
        ended = [one for one in run.handles if one not in lasting]
        assert {one: run.endings[one] for one in ended} == dict.fromkeys(ended, 1), seed
        assert set(run.server_calls.values()) <= {1}, seed
        assert run.heard == sorted(set(run.heard)), seed
        if not (run.restarts or run.unprimed or not run.has_log):
            assert run.heard == run.told, seed
        client.close(now=run.pair.now)
        run.settle()
        assert all(run.endings[one] == 1 for one in run.handles), seed
        assert client.exchanges == (), seed
        assert client.next_timeout() is None, seed
        assert client.pending_requests == (), seed
        assert client.open_requests == (), seed
        assert client.unsent_bytes == 0, seed
        assert server.open_requests == (), seed
        assert server.listeners == (), seed
        assert len(server.sessions) <= run.orphans, seed


def test_runs_do_what_they_are_meant_to() -> None:
    """A run in which nothing happens would prove nothing."""
    runs = [finished(seed) for seed in range(60)]
    assert sum(len(run.tokens) for run in runs) > 60
    assert sum(len(run.heard) for run in runs) > 20
    assert sum(len(run.server_calls) for run in runs) > 20
    assert sum(run.restarts for run in runs) > 5
    assert {run.client.revision in MODERN_REVISIONS for run in runs} == {True, False}
    assert sum(bool(run.primed) for run in runs) > 10
