"""Tests of limits of `Config` and of messages over them."""
