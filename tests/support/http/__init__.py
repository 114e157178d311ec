"""HTTP for tests: requests by hand, endpoints in memory, servers and clients on sockets."""
