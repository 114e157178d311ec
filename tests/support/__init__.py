"""Helpers that several test modules need, and that users of the library do not need."""
