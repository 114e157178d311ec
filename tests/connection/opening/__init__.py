"""Tests of how a connection opens: handshakes, the probe, and both eras."""
