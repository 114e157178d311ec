"""Servers that the benchmark of stdio starts as processes."""
