"""Tests of the project itself: architecture, benchmarks, limits of tests."""
