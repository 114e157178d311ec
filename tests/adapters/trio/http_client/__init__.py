"""Tests of clients on trio over HTTP."""
