"""Tests of the content of params and results: builders, older revisions, and other helpers."""
