"""Judgements that change nothing: is a message well formed, may this side send it now.

Begin with `messages` (a message by itself) and `sending` (a message in its conversation). The
tables of states are in `state_tables`. This room
knows `_wire` and `_spec`.
"""
