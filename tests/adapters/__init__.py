"""Tests of the adapters: a folder for each adapter, and tests that several adapters share."""
