"""The specification as data: revisions, methods, capabilities, error codes, levels of rules.

Begin with `registry` (what each revision defines) and `methods` (the definition of a method). This
room has no decisions, and imports only `_wire`.
"""
