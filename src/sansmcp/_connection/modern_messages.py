"""The members that the library adds to modern messages (revision 2026-07-28).

Requests of a client get an envelope in `_meta`: revision, capabilities and info. Results of a
server get `resultType`, the info of the server and caching hints. Members that never change are
encoded once and added as bytes.

Source: MCP 2026-07-28, basic/index, `_meta` and Responses; server/utilities/caching.
"""

from __future__ import annotations

from typing import Any

from .._rules.messages import judge_caching_hints, judge_reserved_code
from .._rules.request_meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LIBRARY_KEYS,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
)
from .._spec.errors import ErrorCode, LocalProtocolError
from .._spec.methods import Method
from .._spec.modern_methods import MODERN_REVISION
from .._spec.registry import LOG_LEVELS
from .._spec.tasks import with_extension
from .._wire.values import JSONObject, ProgressToken, Side, is_object
from .core import Core

_WRITTEN = frozenset({"_meta", "cacheScope", "resultType", "ttlMs"})
"""The members that the library adds to a result that may be cached."""
_RESOURCE_NOT_FOUND = -32002  # in the legacy revisions


class ModernMessages:
    """Encodes params and results of modern messages with the members that each must have."""

    __slots__ = ("_core", "_envelope", "_plain_tail", "_tasks_envelope")

    def __init__(self, core: Core, *, tasks: bool = False) -> None:
        self._core = core
        self._plain_tail = self._envelope = self._tasks_envelope = b""
        if not self._core.modern_revisions:
            return
        if self._core.side is Side.SERVER:
            meta = self.server_meta()
            self._plain_tail = b'"resultType":"complete"}'
            if meta:
                self._plain_tail = b'"_meta":%b,%b' % (self._core.encode(meta), self._plain_tail)
            return
        said: JSONObject = {
            PROTOCOL_VERSION: MODERN_REVISION,
            CLIENT_CAPABILITIES: self._core.codec.decode(
                self._core.capabilities_in(MODERN_REVISION)
            ),
        }
        if self._core.config.send_info:
            said[CLIENT_INFO] = self._core.codec.decode(self._core.info)
        self._envelope = self._tasks_envelope = self._core.encode(said)[1:-1]
        if tasks:
            said[CLIENT_CAPABILITIES] = with_extension(said[CLIENT_CAPABILITIES])
            self._tasks_envelope = self._core.encode(said)[1:-1]

    # ------------------------------------------------------------------------------------ requests

    def with_envelope(
        self, params: JSONObject, meta: JSONObject | None, *, tasks: bool = False
    ) -> bytes:
        """The encoded params of a request with its envelope, which is their last member.

        A `progressToken` in `params` or `meta` is left out; `with_token` adds it. `tasks` declares
        the extension for tasks with this request.

        Keeps META-009, META-012, XTASK-002.
        """
        said = self._tasks_envelope if tasks else self._envelope
        if not meta and "_meta" not in params:
            body = self._core.encode_object(params, None)
            separator = b"," if params else b""
        else:
            merged = self._merged(params.get("_meta"), meta)
            rest = {name: value for name, value in params.items() if name != "_meta"}
            body = self._core.encode_object(rest, None)
            separator = b"," if rest else b""
            if merged:
                said = b"%b,%b" % (said, self._core.encode(merged)[1:-1])
        return b'%b%b"_meta":{%b}}' % (body[:-1], separator, said)

    def with_token(self, body: bytes, token: ProgressToken) -> bytes:
        """The result of `with_envelope` with a progress token."""
        return b'%b,"progressToken":%b}}' % (body[:-2], self._core.encode_id(token))

    @staticmethod
    def with_level(meta: JSONObject | None, level: str) -> JSONObject:
        """The application's `_meta` with the least severe level that it wants logged."""
        if meta is not None and not is_object(meta):
            raise LocalProtocolError("OWN-014", "_meta must be an object")
        return {**(meta or {}), LOG_LEVEL: level}

    def _merged(self, own: object, meta: object) -> JSONObject:
        """The `_meta` of the application from two sources, without progress token."""
        merged: JSONObject = {}
        for part in (own, meta):
            if part is None:
                continue
            if not is_object(part):
                raise LocalProtocolError("OWN-014", "_meta must be an object")
            merged.update(part)
        merged.pop("progressToken", None)  # `with_token` adds it
        if taken := LIBRARY_KEYS & merged.keys():
            raise LocalProtocolError("OWN-025", f"{min(taken)} is written by the library")
        level: Any = merged.get(LOG_LEVEL)
        if level is not None and (not isinstance(level, str) or level not in LOG_LEVELS):
            raise LocalProtocolError(
                "LOG-010", f"a log level is one of {', '.join(LOG_LEVELS)}, not {level!r}"
            )
        return merged

    # -------------------------------------------------------------------------- results and errors

    def complete(self, spec: Method | None, result: JSONObject, meta: JSONObject | None) -> bytes:
        """The encoded result with the members that each modern result has.

        Keeps JSON-020.

        Raises:
            LocalProtocolError: The `resultType`, the `_meta` or a caching hint is not valid.
        """
        cacheable = spec is not None and spec.cacheable
        if not meta and (
            result.keys().isdisjoint(_WRITTEN)
            if cacheable
            else "resultType" not in result and "_meta" not in result
        ):
            body = self._core.encode_object(result, None)
            hints = b""
            if cacheable:
                config = self._core.config
                hints = b'"ttlMs":%d,"cacheScope":"%b",' % (
                    config.cache_ttl_ms,
                    config.cache_scope.encode(),
                )
            return b"%b%b%b%b" % (body[:-1], b"," if result else b"", hints, self._plain_tail)
        whole: JSONObject = {
            name: value
            for name, value in result.items()
            if value is not None or name not in _WRITTEN
        }
        kind = whole.setdefault("resultType", "complete")
        if kind == "input_required":
            raise LocalProtocolError("OWN-025", "questions are sent by require_input()")
        if kind != "complete" and not self.is_extension_result(whole):
            raise LocalProtocolError("JSON-023", f"resultType {kind!r} is not known")
        if cacheable:
            self._add_caching_hints(whole)
        merged = self.result_meta(whole.pop("_meta", None), meta)
        if merged:
            whole["_meta"] = merged
        return self._core.encode_object(whole, None)

    def completed(self, members: bytes) -> bytes:
        """The encoded result with these members, which are encoded without braces."""
        return b"{%b%b%b" % (members, b"," if members else b"", self._plain_tail)

    def result_meta(self, *parts: object) -> JSONObject:
        """The `_meta` of a result: the members of `parts` over those that each result has."""
        merged = self.server_meta()
        for part in parts:
            if part is not None:
                if not is_object(part):
                    raise LocalProtocolError("OWN-014", "_meta must be an object")
                merged.update(part)
        return merged

    def server_meta(self) -> JSONObject:
        """The members that each result has in `_meta`.

        Keeps META-014.
        """
        return (
            {SERVER_INFO: self._core.codec.decode(self._core.info)}
            if self._core.config.send_info
            else {}
        )

    def is_extension_result(self, result: JSONObject) -> bool:
        """Whether an extension has added the `resultType` of a result."""
        types = self._core.registry.result_types
        kind: Any = result.get("resultType") if types else None
        return isinstance(kind, str) and kind in types

    def modern_code(self, code: int, data: object) -> int:
        """The modern code for an error code of the application.

        Keeps ERR-008, RES-012.

        Raises:
            LocalProtocolError: The specification reserves the code, or `data` does not fit it.
        """
        if code == _RESOURCE_NOT_FOUND:
            return ErrorCode.INVALID_PARAMS
        if (breach := judge_reserved_code(code, data)) is not None:
            raise breach.error()
        return code

    def _add_caching_hints(self, result: JSONObject) -> None:
        # Keeps CACHE-001.
        result.setdefault("ttlMs", self._core.config.cache_ttl_ms)
        result.setdefault("cacheScope", self._core.config.cache_scope)
        if (breach := judge_caching_hints(result)) is not None:
            raise breach.error()
