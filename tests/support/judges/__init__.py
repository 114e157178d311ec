"""Judges of what connections and endpoints give out: the official schemas, and an observer."""
