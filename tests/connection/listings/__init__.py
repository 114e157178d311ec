"""Tests of listings and cursors."""
