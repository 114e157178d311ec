"""The exception of a cluster, in a module that can be imported without redis-py."""

from __future__ import annotations


class ClusterError(ConnectionError):
    """A worker cannot join its cluster: the text says what to do."""
