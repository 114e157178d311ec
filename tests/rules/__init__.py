"""Tests of the registry, of states, and of what is judged without a connection."""
