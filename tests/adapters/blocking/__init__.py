"""Tests of `sansmcp_io.blocking`."""
