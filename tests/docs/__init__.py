"""Tests of the documentation and its examples."""
