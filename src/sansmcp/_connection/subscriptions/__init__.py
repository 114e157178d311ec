"""Subscriptions: to resources in legacy revisions, by `subscriptions/listen` in 2026-07-28.

Begin with `client` and `server`, one for each side. `changes` has what a server can publish.
"""
