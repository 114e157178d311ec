"""Tests of authorization, through the public objects and with servers that are data."""
