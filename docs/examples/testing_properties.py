"""Properties: what must hold whatever comes over the wire."""

from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test

from sansmcp import ALL_REVISIONS, LEGACY_REVISIONS, ServerConnection, Side
from sansmcp.testing import ConnectionMachine, drain, plain, wire_bytes


# -- bytes
@settings(max_examples=50, derandomize=True, deadline=None)
@given(wire=wire_bytes(sender=Side.CLIENT))
def test_the_size_of_chunks_makes_no_difference(wire: bytes) -> None:
    whole, parts = (ServerConnection(info={"name": "s", "version": "1"}) for _ in range(2))
    whole.receive_data(wire)
    for index in range(len(wire)):
        parts.receive_data(wire[index : index + 1])

    assert plain(drain(whole)) == plain(drain(parts))
    assert whole.data_to_send() == parts.data_to_send()


# -- machine
class OlderRevision(ConnectionMachine):
    revision = "2025-03-26"  # the one with batches


class BothEras(ConnectionMachine):
    speaks = ((ALL_REVISIONS, ALL_REVISIONS), (ALL_REVISIONS, LEGACY_REVISIONS))


def test_nothing_that_happens_breaks_a_promise() -> None:
    for machine in (OlderRevision, BothEras):
        run_state_machine_as_test(
            machine,
            settings=settings(max_examples=10, stateful_step_count=20, derandomize=True),
        )


# -- end
if __name__ == "__main__":
    test_the_size_of_chunks_makes_no_difference()
    test_nothing_that_happens_breaks_a_promise()
