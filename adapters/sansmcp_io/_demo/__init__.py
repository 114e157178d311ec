"""What `sansmcp demo` shows: a client and a server in two processes, line by line.

Begin with `demo` (stdio) and `http_demo`.
"""
