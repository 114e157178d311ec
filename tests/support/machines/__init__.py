"""State machines, explorations and orders of messages, for tests that try many cases."""
