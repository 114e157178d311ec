"""Tests of Streamable HTTP without sockets: the format of events, the client and the server."""
