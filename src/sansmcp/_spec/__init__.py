"""The specification as data: revisions, methods, capabilities, error codes, levels of rules.

Begin with `registry` (what each revision defines) and `methods` (what is known of a method). This
room decides nothing, and knows only `_wire`.
"""
