"""Tests of server processes that misbehave or end."""
