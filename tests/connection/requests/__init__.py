"""Tests of requests: sent, answered, cancelled, with progress, ids and batches."""
