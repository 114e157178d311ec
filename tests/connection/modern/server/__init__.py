"""Tests of servers of 2026-07-28."""
