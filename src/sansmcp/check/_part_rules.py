"""The rules that a schema cannot say, by the definition or member that they are about."""

from __future__ import annotations

from typing import Final

import attrs

from . import _content, _elicitation, _meta, _sampling, _tools
from ._shapes import PartRule

_V2: Final = "2025-06-18"
_V3: Final = "2025-11-25"
_V4: Final = "2026-07-28"


@attrs.frozen
class _Entry:
    place: str
    rule: PartRule
    since: str = ""
    until: str = "9"


_META_DEFINITIONS: Final = (
    *("MetaObject", "NotificationMetaObject", "RequestMetaObject", "ResultMetaObject"),
    *("SubscriptionsListenResultMetaObject", "._meta"),
)

_META_OF_V2: Final = _meta.each_key(_meta.judge_meta_key, _meta.judge_old_prefix)
_META_OF_V3: Final = _meta.each_key(_meta.judge_meta_key, _meta.judge_prefix)
_META_OF_V4: Final = _meta.each_key(
    _meta.judge_meta_key, _meta.judge_prefix, _meta.judge_trace_context
)

_ENTRIES: Final = (
    _Entry("Annotations", _content.judge_annotations, _V2),
    _Entry("TextResourceContents", _content.judge_resource_contents),
    _Entry("BlobResourceContents", _content.judge_resource_contents),
    _Entry("Icon", _content.judge_icon),
    _Entry("Root", _content.judge_root),
    _Entry("Tool", _tools.judge_tool_name, _V3),
    _Entry("Tool", _tools.judge_header_marks, _V4),
    _Entry("ListToolsResult", _tools.judge_tool_names, _V3),
    _Entry("CallToolResult", _tools.judge_structured_content, _V2),
    _Entry("CreateMessageRequestParams", _sampling.judge_tool_results, _V3),
    _Entry("ElicitRequestParams", _elicitation.judge_form, _V2, _V2),
    _Entry("ElicitRequestFormParams", _elicitation.judge_form),
    _Entry("ElicitResult", _elicitation.judge_action),
    *(_Entry(name, _META_OF_V2, _V2, _V2) for name in _META_DEFINITIONS),
    *(_Entry(name, _META_OF_V3, _V3, _V3) for name in _META_DEFINITIONS),
    *(_Entry(name, _META_OF_V4, _V4) for name in _META_DEFINITIONS),
)


def rules_of(place: str, revision: str) -> tuple[PartRule, ...]:
    """The rules on a place in a revision, as `_citations` names places."""
    owner, _, member = place.rpartition(".")
    places = (place, f".{member}") if owner else (place,)
    return tuple(
        entry.rule
        for entry in _ENTRIES
        if entry.place in places and entry.since <= revision <= entry.until
    )
