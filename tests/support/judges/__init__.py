"""Judges all that connections and endpoints send, by the official schemas and by an observer."""
