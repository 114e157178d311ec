"""Tests with servers and clients of npm, which use the TypeScript SDK."""
