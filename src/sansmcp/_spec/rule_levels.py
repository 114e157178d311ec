"""The level (MUST, SHOULD, ...) of each rule that an observer checks.

A test compares it with the table of rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "OWN"]
"""The level of a rule in the words of its page; `OWN`: a decision of this library."""

_MUST: Final = (
    "BATCH-004 BATCH-005 CACHE-001 CACHE-002 CACHE-003 CANC-001 CANC-002 CANC-003 CANC-005 "
    "CANC-006 CANC-007 CAP-002 CAP-004 CAP-007 ERR-001 EXT-001 HDR-001 HDR-005 HDR-006 HDR-008 "
    "HDR-009 HSSE-003 HSSE-004 HTTP-009 HTTP-011 HTTP-014 HTTP-015 HTTP-018 HTTP-021 HTTP-022 "
    "HTTP-023 HTTP-024 JSON-001 JSON-002 JSON-004 JSON-005 JSON-007 JSON-008 JSON-010 JSON-017 "
    "JSON-020 JSON-022 LIFE-001 LIFE-002 LIFE-003 LIFE-004 LOG-002 META-009 META-010 MRTR-004 "
    "MRTR-006 MRTR-007 MRTR-019 MRTR-020 MRTR-025 PROG-001 PROG-002 PROG-003 PROG-006 PROG-010 "
    "PROG-012 SESS-003 SUBS-004 SUBS-007 SUBS-009 SUBS-012 SUBS-014 VER-008"
)
_MUST_NOT: Final = (
    "BATCH-003 BATCH-008 CACHE-004 CANC-004 CANC-019 ELIC-005 ERR-006 ERR-008 ID-001 ID-002 "
    "JSON-003 JSON-006 LOG-007 MRTR-003 MRTR-008 MRTR-026 PROG-014 SAMP-004 SSE-024 STATE-006 "
    "STATE-007 STDIO-002 STDIO-003 SUBS-002 SUBS-003 SUBS-005 SUBS-017"
)
_SHOULD: Final = "CAP-001 HDR-002 LOG-004 LOG-010 MRTR-027 RES-008 TASK-002"
_SHOULD_NOT: Final = "LIFE-005 LIFE-006"
_OWN: Final = "OWN-014 OWN-015 OWN-017 OWN-018 OWN-020 OWN-047"


def _levels() -> dict[str, Level]:
    groups: tuple[tuple[Level, str], ...] = (
        ("MUST", _MUST),
        ("MUST NOT", _MUST_NOT),
        ("SHOULD", _SHOULD),
        ("SHOULD NOT", _SHOULD_NOT),
        ("OWN", _OWN),
    )
    return {rule: level for level, rules in groups for rule in rules.split()}


LEVELS: Final[Mapping[str, Level]] = _levels()
"""The level of each rule, by its id."""
