"""Several workers with one Redis: real processes, real sockets."""
