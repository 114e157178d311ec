"""Tests of 2026-07-28 on a server endpoint."""
