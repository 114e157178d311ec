"""Tests of adapters: a folder for each, and tests that several of them pass side by side."""
