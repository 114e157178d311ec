"""JSON values, and the short names that the schema has for strings and numbers."""

from typing import Annotated, Any, Literal, TypeAlias

from ._marks import Since

JSONObject: TypeAlias = dict[str, Any]
"""An object with any members."""

JSONArray: TypeAlias = list[Any]
"""A list of anything."""

JSONValue: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Anything that JSON can say."""

MetaObject: TypeAlias = JSONObject
"""What stands in `_meta`: any members, if their names keep to the grammar of such keys."""

RequestId: TypeAlias = str | int
"""What ties an answer to its request."""

ProgressToken: TypeAlias = str | int
"""What ties progress to a request."""

Cursor: TypeAlias = str
"""Where the next page of a listing begins; only the server that made it can read it."""

ResultType: TypeAlias = Annotated[str, Since("2026-07-28")]
"""Which kind of result this is: `complete`, `input_required`, or what an extension adds."""

Role: TypeAlias = Literal["assistant", "user"]
"""Who speaks."""

LoggingLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""How severe a log message is, rising (the levels of syslog)."""

CacheScope: TypeAlias = Literal["private", "public"]
"""Whether a result may be kept for everyone or only for the one who asked."""

JSONRPCVersion: TypeAlias = Literal["2.0"]
"""The version of JSON-RPC."""
