"""The output of commands: blocks, plain or with rich, on standard output and standard error.

Begin with `printing` (the blocks that are shown) and `output` (where it goes).
"""
