"""Helpers for tests of HTTP: requests by hand, endpoints in memory, and programs on sockets."""
