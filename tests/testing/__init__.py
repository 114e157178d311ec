"""Tests of the tools for tests."""
