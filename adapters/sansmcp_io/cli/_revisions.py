"""Which revisions have a method, from the table that comes with the library."""

from __future__ import annotations

import csv
from importlib.resources import files

from sansmcp import MODERN_REVISIONS

_OPENING = "initialize"
"""What the command sends by itself, where there is a handshake: nobody else can."""


def revisions_with(method: str) -> list[str]:
    """The revisions in which a client may send this request, oldest first."""
    if method == _OPENING:
        return []
    table = (files("sansmcp") / "data" / "methods.csv").read_text("utf-8").splitlines()
    return [
        row["revision"]
        for row in csv.DictReader(table)
        if (row["method"], row["kind"], row["direction"]) == (method, "request", "client->server")
    ]


def era_of(revision: str | None) -> str:
    """The name of the era of a revision that was agreed."""
    return "modern" if revision in MODERN_REVISIONS else "legacy"
