"""Tests of clients of 2026-07-28."""
