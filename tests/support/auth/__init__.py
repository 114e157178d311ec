"""Helpers for tests of authorization: servers as data, and functions that run a client on them."""
