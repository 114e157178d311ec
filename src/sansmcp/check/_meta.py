"""Rules on `_meta`: the grammar of its keys, reserved prefixes, and trace context.

Source: MCP 2026-07-28, basic/index, `_meta`; W3C Trace Context; W3C Baggage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from .._spec.modern_methods import META_PREFIX
from .._wire.values import JSONObject
from ._problems import Path, Report
from ._shapes import PartRule

_PREFIX: Final = re.compile(
    r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
_NAME: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?")
_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp"})
_PROTOCOL_KEYS: Final = (
    *("protocolVersion", "clientCapabilities", "clientInfo", "serverInfo", "logLevel"),
    *("subscriptionId", "related-task"),
)
_PLAIN: Final = frozenset({"progressToken", *(META_PREFIX + name for name in _PROTOCOL_KEYS)})
"""Keys that need no look: the specification defines them."""

_TRACE_PARENT: Final = re.compile(
    r"(?:00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    r"|(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)"
)
_STATE_MEMBER: Final = re.compile(
    r"(?:(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[ -+\--<>-~]{0,255}[!-+\--<>-~])?"
)
_MAX_STATE_MEMBERS: Final = 32
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BAGGAGE_VALUE: Final = r"[!#-+\--:<-\[\]-~]*"
_BAGGAGE_MEMBER: Final = re.compile(
    # Possessive quantifiers: the time to refuse a text is linear.
    rf"{_TOKEN}[ \t]*+=[ \t]*+{_BAGGAGE_VALUE}"
    rf"(?:[ \t]*+;[ \t]*+{_TOKEN}(?:[ \t]*+=[ \t]*+{_BAGGAGE_VALUE})?)*+"
)


def judge_meta_key(key: str, value: Any, at: Path, report: Report) -> None:
    """A key has an optional prefix of labels, and a name.

    Keeps META-001, META-002, META-003, META-007, META-008.
    """
    prefix, slash, name = key.rpartition("/")
    if slash and _PREFIX.fullmatch(prefix) is None:
        rule = "META-002" if "/" in prefix or not prefix else "META-003"
        report.add(rule, at, "has a prefix that is no series of labels joined by dots")
    if _NAME.fullmatch(name) is None:
        text = "has a name that is not of letters, digits and -_. between two of the former"
        report.add("META-007", at, text)


def judge_old_prefix(key: str, value: Any, at: Path, report: Report) -> None:
    """A key has no prefix that 2025-06-18 reserves. Keeps META-005."""
    labels = key.rpartition("/")[0].lower().split(".")
    if _RESERVED.intersection(labels[:-1]):
        report.add("META-005", at, "has a reserved prefix")


def judge_prefix(key: str, value: Any, at: Path, report: Report) -> None:
    """A key has no prefix that the specification reserves.

    Keys of the protocol and of its extensions have the prefix `io.modelcontextprotocol/`, so that
    this one is never a problem. Keeps META-006.
    """
    prefix, slash, _ = key.rpartition("/")
    labels = prefix.lower().split(".")
    if labels[1:2] and labels[1] in _RESERVED and prefix + slash != META_PREFIX:
        report.add("META-006", at, "has a reserved prefix")


def judge_trace_context(key: str, value: Any, at: Path, report: Report) -> None:
    """`traceparent`, `tracestate` and `baggage` have the formats of the W3C. Keeps META-017."""
    is_good = _TRACE_CONTEXT.get(key)
    if is_good is not None and not (isinstance(value, str) and is_good(value)):
        report.add("META-017", at, "does not have the format of W3C Trace Context and Baggage")


def _is_trace_parent(text: str) -> bool:
    return _TRACE_PARENT.fullmatch(text) is not None


def _is_trace_state(text: str) -> bool:
    members = [each.strip(" \t") for each in text.split(",")]
    return len([each for each in members if each]) <= _MAX_STATE_MEMBERS and all(
        map(_STATE_MEMBER.fullmatch, members)
    )


def _is_baggage(text: str) -> bool:
    return all(_BAGGAGE_MEMBER.fullmatch(each.strip(" \t")) for each in text.split(","))


_TRACE_CONTEXT: Final[Mapping[str, Callable[[str], bool]]] = {
    "traceparent": _is_trace_parent,
    "tracestate": _is_trace_state,
    "baggage": _is_baggage,
}

KeyRule: TypeAlias = Callable[[str, Any, Path, Report], None]


def each_key(*rules: KeyRule) -> PartRule:
    """A rule on `_meta` that judges each key which the specification does not define."""

    def judge_meta(meta: JSONObject, at: Path, report: Report) -> None:
        given: Any = meta  # of the application: a key may be no string, which the encoder refuses
        for key, value in given.items():
            if key not in _PLAIN and isinstance(key, str):
                for judge in rules:
                    judge(key, value, (at, key), report)

    return judge_meta
