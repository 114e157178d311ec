"""Tests of 2026-07-28, the revision without a handshake."""
