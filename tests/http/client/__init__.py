"""Tests of the client of Streamable HTTP, without sockets."""
