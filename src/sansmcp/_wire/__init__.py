"""Bytes to JSON values and back: framing, the JSON codec, and their limits.

Begin with `framing` (bytes to lines) and `codec` (lines to JSON values). This room knows nothing
of MCP but the few JSON types in `values`, and imports no other room.
"""
