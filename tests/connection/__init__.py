"""Tests of connections: one end of a conversation, both roles and all revisions."""
