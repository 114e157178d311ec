"""Tests that run on each adapter, by the same code."""
