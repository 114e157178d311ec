"""The options of clients and servers: each stands once, with its type, default and description.

`connect_stdio`, `serve_http` and the like take them as arguments, one by one: see `arguments`.
"""
