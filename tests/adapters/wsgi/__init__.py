"""Tests of `sansmcp_io.wsgi`."""
