"""Tests of Streamable HTTP without sockets, of the server above all."""
