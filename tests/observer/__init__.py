"""Tests of the observer."""
