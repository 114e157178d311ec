"""The server's half of Streamable HTTP; `sansmcp.http` exports what is public of it.

Begin with `endpoint`, then `exchange`: one HTTP request and its response.
"""
