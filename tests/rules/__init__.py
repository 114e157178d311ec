"""Tests of the registry, of states, and of judgements that need no connection."""
