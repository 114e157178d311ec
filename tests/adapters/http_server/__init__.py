"""Tests of servers over HTTP on real sockets."""
