"""Tests of streams: what goes on them, and how they are resumed."""
