"""The demo of `sansmcp demo`: a client and a server in two processes, shown line by line.

Begin with `demo` (stdio) and `http_demo`.
"""
