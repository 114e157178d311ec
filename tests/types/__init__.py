"""Tests of types and of public names."""
