"""What speed is claimed, and how it was measured: `python -m benchmarks` (or `make bench`)."""
