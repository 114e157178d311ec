"""Tests of streams: which messages they carry, and how they are resumed."""
