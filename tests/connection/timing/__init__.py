"""Tests of deadlines, pings and wake-ups."""
