"""File descriptors: each connection takes one, and most shells give a process 1,024."""

from __future__ import annotations

import resource


def raise_limit(needed: int) -> None:
    """Raise the limit to this number, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
