"""Signatures with joserfc. Only `sansmcp.auth.jose` imports it.

Begin with `signers` and `verifiers`.
"""
