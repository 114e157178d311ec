"""Helpers for tests of adapters: event loops, connected pairs, and one handler for all of them."""
