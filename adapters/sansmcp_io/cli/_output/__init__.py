"""What a command shows: blocks, plain or with rich, on standard output and standard error.

Begin with `blocks` (what is shown) and `output` (where it goes).
"""
