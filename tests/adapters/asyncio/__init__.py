"""Tests of `sansmcp_io.asyncio`."""
