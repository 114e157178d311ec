"""The exception of a cluster."""

from __future__ import annotations


class ClusterError(ConnectionError):
    """A worker cannot join its cluster: the text says what to do."""
