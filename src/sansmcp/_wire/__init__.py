"""Bytes to JSON values and back: framing, the JSON codec, and their limits.

Begin with `framing` (bytes to lines) and `codec` (lines to JSON values). Of MCP this room has only
the few types in `values`. It imports no other room.
"""
