"""Tests of sessions of the legacy revisions, and of servers without them."""
