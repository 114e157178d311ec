"""Tests of `sansmcp_io.asgi`."""
