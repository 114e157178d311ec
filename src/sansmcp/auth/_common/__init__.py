"""What both sides share: requests, rules for URLs and addresses, well-known paths, scopes.

It knows `_wire` and `_spec`. Begin with `requests`.
"""
