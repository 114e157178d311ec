"""Tests of requests: sending, responses, cancellation, progress, ids and batches."""
