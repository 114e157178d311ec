"""The claims of speed, and how they are measured: `python -m benchmarks` (or `make bench`)."""
