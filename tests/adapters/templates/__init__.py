"""Tests of `sansmcp_io.templates`."""
