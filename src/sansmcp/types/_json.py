"""JSON values, and aliases of the schema for strings and numbers."""

from typing import Annotated, Any, Literal, TypeAlias

from ._marks import Since

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object with any members."""

JSONArray: TypeAlias = list[Any]
"""A JSON list with any items."""

JSONValue: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Any JSON value."""

MetaObject: TypeAlias = JSONObject
"""The object in `_meta`: any members whose names follow the grammar of such keys."""

RequestId: TypeAlias = str | int
"""The id of a request, which its response repeats."""

ProgressToken: TypeAlias = str | int
"""The token of a request, which its progress notifications repeat."""

Cursor: TypeAlias = str
"""The position of the next page of a listing, which only the server can read."""

ResultType: TypeAlias = Annotated[str, Since("2026-07-28")]
"""The kind of a result: `complete`, `input_required`, or the name of a kind of an extension."""

Role: TypeAlias = Literal["assistant", "user"]
"""The role of the sender of a message to or from a model."""

LoggingLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""The level of a log message, in rising severity (the levels of syslog)."""

CacheScope: TypeAlias = Literal["private", "public"]
"""`public` lets shared caches keep a result; `private` only the client that asked."""

JSONRPCVersion: TypeAlias = Literal["2.0"]
"""The version of JSON-RPC."""
