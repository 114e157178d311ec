"""The rules of the protocol as functions without side effects, and the tables of states.

Begin with `messages` (is a message well formed?) and `sending` (may this side send the message
now?). The tables of states are in `state_tables`. This room imports `_wire` and `_spec`.
"""
