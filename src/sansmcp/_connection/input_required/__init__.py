"""Input required (2026-07-28): results that ask for input, and the requests that bring it.

Begin with `server`, which asks, then `client`, which provides. `request_state` seals what a server
gives to the client and gets back.
"""
