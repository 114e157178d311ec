"""What holds over HTTP whatever the network does: nothing promised is lost, nothing comes twice."""

import pytest

from sansmcp import MODERN_REVISIONS, Subscription
from tests.support.http.storm import Storm

SEEDS = 1_000
GROUPS = 20
USUAL_GROUPS = 4  # in `make test`; the others are for `make proof`
STEPS = 150


def weathered(seed: int) -> Storm:
    """A run that has come to its rest."""
    storm = Storm(seed)
    storm.open()
    for _ in range(STEPS):
        storm.step()
    storm.settle()
    return storm


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
        storm = weathered(seed)
        client, server = storm.client, storm.pair.server
        # A subscription lasts; everything else has ended by now.
        lasting = [one for one in storm.handles if isinstance(one, Subscription) and one.open]
        ended = [one for one in storm.handles if one not in lasting]
        assert {one: storm.endings[one] for one in ended} == dict.fromkeys(ended, 1), seed
        assert set(storm.server_calls.values()) <= {1}, seed
        assert storm.heard == sorted(set(storm.heard)), seed
        if not (storm.restarts or storm.unprimed or not storm.has_log):
            assert storm.heard == storm.told, seed
        client.close(now=storm.pair.now)
        storm.settle()
        assert all(storm.endings[one] == 1 for one in storm.handles), seed
        assert client.exchanges == (), seed
        assert client.next_timeout() is None, seed
        assert client.pending_requests == (), seed
        assert client.open_requests == (), seed
        assert client.unsent_bytes == 0, seed
        assert server.open_requests == (), seed
        assert server.listeners == (), seed
        assert len(server.sessions) <= storm.orphans, seed


def test_storms_do_what_they_are_meant_to() -> None:
    """A run in which nothing happens would prove nothing."""
    storms = [weathered(seed) for seed in range(60)]
    assert sum(len(storm.tokens) for storm in storms) > 60
    assert sum(len(storm.heard) for storm in storms) > 20
    assert sum(len(storm.server_calls) for storm in storms) > 20
    assert sum(storm.restarts for storm in storms) > 5
    assert {storm.client.revision in MODERN_REVISIONS for storm in storms} == {True, False}
    assert sum(bool(storm.primed) for storm in storms) > 10
