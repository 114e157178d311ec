"""Rules on content and resources: contents of resources, annotations, icons, roots.

Source: MCP 2026-07-28, server/resources, schema, basic/index.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .._wire.values import JSONObject
from ._formats import is_iso_8601
from ._problems import Path, Report

_ICON_SCHEMES: Final = ("https:", "data:")
_SIZE: Final = re.compile(r"[1-9][0-9]*x[1-9][0-9]*|any")


def judge_resource_contents(contents: JSONObject, at: Path, report: Report) -> None:
    """Contents of a resource are text or a blob, not both. Keeps RES-018."""
    if "text" in contents and "blob" in contents:
        report.add_malformed("RES-018", at, "has both text and blob")


def judge_annotations(annotations: JSONObject, at: Path, report: Report) -> None:
    """The time of the last change is a date of ISO 8601. Keeps RES-026."""
    changed: Any = annotations.get("lastModified")
    if changed is not None and not is_iso_8601(changed):
        report.add("RES-026", (at, "lastModified"), "is not a date of ISO 8601")


def judge_icon(icon: JSONObject, at: Path, report: Report) -> None:
    """An icon has a safe scheme, and sizes such as `48x48`.

    Keeps ICON-003, OWN-077.
    """
    if not icon["src"].lower().startswith(_ICON_SCHEMES):
        report.add("ICON-003", (at, "src"), "is no https: or data: URI")
    for index, size in enumerate(icon.get("sizes", ())):
        if _SIZE.fullmatch(size) is None:
            text = "is no size such as 48x48, and not any"
            report.add("OWN-077", ((at, "sizes"), index), text)


def judge_root(root: JSONObject, at: Path, report: Report) -> None:
    """A root is a `file://` URI. Keeps ROOT-004."""
    if not root["uri"].lower().startswith("file://"):
        report.add("ROOT-004", (at, "uri"), "is no file:// URI")
