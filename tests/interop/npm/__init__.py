"""Tests with the servers and clients of npm, which are on the TypeScript SDK."""
