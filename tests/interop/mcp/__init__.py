"""Tests with servers and clients on the `mcp` package of PyPI."""
