"""Tests of what holds for every conversation."""
