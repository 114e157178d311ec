"""The client's half of Streamable HTTP. `sansmcp.http` has what of it is public."""
