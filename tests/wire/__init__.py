"""Tests of framing and the JSON codec."""
