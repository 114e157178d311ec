"""Properties: conditions that must hold for any input."""

from hypothesis import given, settings

from sansmcp import ServerConnection, Side
from sansmcp.testing import drain, plain, wire_bytes


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


# -- end
if __name__ == "__main__":
    test_the_size_of_chunks_makes_no_difference()
