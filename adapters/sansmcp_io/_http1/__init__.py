"""HTTP/1.1 without sockets, for servers and clients; h11 reads and writes it.

`sansmcp_io.h11` exports what is public. Begin with `server`. This room knows `_common`.
"""
