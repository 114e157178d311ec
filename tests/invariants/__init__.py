"""Tests of the invariants that hold for every conversation."""
