"""Tests of `sansmcp.testing` and of the machines in `tests/support`."""
