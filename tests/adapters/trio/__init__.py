"""Tests of `sansmcp_io.trio`."""
