"""The rule that a part of a payload breaks, by the place of the part in its definition.

A place is a definition of the official schema with a path (`Tool.inputSchema`), or a member of any
definition (`.annotations`). With `VALUE` behind it, the rule is that on values of the right JSON
type only. A place without an entry has the rule of the place around it, and a definition without an
entry those of `MISSHAPEN` and `MISVALUED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

MISSHAPEN: Final = "OWN-014"
"""The rule on absent members, and on members of the wrong JSON type."""
MISVALUED: Final = "OWN-076"
"""The rule on values of the right JSON type that the schema does not allow."""

VALUE: Final = " value"

Cited: TypeAlias = str | Mapping[str, str | None]
"""A rule of all revisions; or by revision from which on it holds, with None for no rule."""

_V2: Final = "2025-06-18"
_V3: Final = "2025-11-25"
_V4: Final = "2026-07-28"
_FLAT: Final = "ELIC-013"

# Keeps TOOL-009, CAP-005, ELIC-009.
CITATIONS: Final[Mapping[str, Cited]] = {
    # any definition
    "._meta": "META-018",
    ".annotations": "RES-026",
    "ProgressToken": "PROG-001",
    # tools
    "Tool.inputSchema": "TOOL-008",
    "Tool.outputSchema": {_V2: "TOOL-011", _V4: None},
    "CallToolResult.content": "TOOL-019",
    "CallToolResult.content[]": {"": None},
    "CallToolResult.structuredContent": {_V2: "TOOL-013", _V4: None},
    "ToolResultContent.structuredContent": {_V3: "TOOL-013", _V4: None},
    # content and resources
    "Annotations": "RES-026",
    "ImageContent.data": "PROMPT-008",
    "ImageContent.mimeType": "PROMPT-008",
    "AudioContent.data": "PROMPT-009",
    "AudioContent.mimeType": "PROMPT-009",
    "TextResourceContents": "RES-018",
    "TextResourceContents.mimeType": {"": None},
    "BlobResourceContents": "RES-018",
    "BlobResourceContents.mimeType": {"": None},
    "BlobResourceContents.blob": "RES-019",
    # prompts and completion
    "GetPromptRequestParams.arguments": "PROMPT-007",
    "CompleteResult.completion.values": "COMP-002",
    # logs and roots
    "LoggingLevel": "LOG-002",
    "Root.uri": "ROOT-004",
    # sampling
    "CreateMessageRequestParams.messages": "SAMP-008",
    "CreateMessageRequestParams.maxTokens": "SAMP-008",
    "SamplingMessage": {_V4: "SAMP-009"},
    "SamplingMessage.content": {"": "SAMP-010", _V3: None, _V4: "SAMP-009"},
    "CreateMessageResult.content": {"": "SAMP-010", _V3: None},
    # elicitation
    "ElicitRequestParams": {_V2: "ELIC-007", _V3: None},
    "ElicitRequestParams.message": {_V2: "ELIC-006"},
    "ElicitRequestParams.requestedSchema.properties": _FLAT,
    "ElicitRequestFormParams": "ELIC-008",
    "ElicitRequestFormParams.message": "ELIC-006",
    "ElicitRequestFormParams.requestedSchema.properties": _FLAT,
    "ElicitRequestURLParams": {_V3: "ELIC-010", _V4: "ELIC-011"},
    "ElicitRequestURLParams.message": "ELIC-006",
    "ElicitRequestURLParams.url value": "ELIC-012",
    "PrimitiveSchemaDefinition": _FLAT,
    "StringSchema": _FLAT,
    "StringSchema.format": "ELIC-014",
    "NumberSchema": _FLAT,
    "BooleanSchema": _FLAT,
    "EnumSchema": _FLAT,
    "UntitledSingleSelectEnumSchema": _FLAT,
    "TitledSingleSelectEnumSchema": _FLAT,
    "UntitledMultiSelectEnumSchema": _FLAT,
    "TitledMultiSelectEnumSchema": _FLAT,
    "LegacyTitledEnumSchema": _FLAT,
    "ElicitResult.action": "ELIC-017",
    "ElicitResult.content": "ELIC-017",
    # `_meta` of the last revision, which has definitions of its own for it
    "MetaObject": "META-018",
    "NotificationMetaObject": "META-018",
    "RequestMetaObject": "META-018",
    "ResultMetaObject": "META-018",
    "SubscriptionsListenResultMetaObject": "META-018",
}


def cited(place: str, revision: str) -> str | None:
    """The rule of a place in a revision; None if the place has no rule of its own.

    An entry for the revision without a rule is `""`: the place has the general rules.
    """
    rule = CITATIONS.get(place)
    if rule is None or isinstance(rule, str):
        return rule
    found = [named for since, named in rule.items() if since <= revision]
    return None if not found else found[-1] or ""
