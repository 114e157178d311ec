"""Tests of `sansmcp_io.h11`."""
