"""Tests of `sansmcp tap`."""
