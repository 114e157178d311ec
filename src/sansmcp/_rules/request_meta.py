"""The envelope of a modern request: revision, capabilities and info in its `_meta`.

Source: MCP 2026-07-28, basic/index, `_meta`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import attrs

from .._spec.errors import ErrorCode
from .._spec.methods import OBJECT, STRING, OptionalMembers
from .._spec.modern_methods import META_PREFIX
from .._spec.registry import LOG_LEVELS
from .._wire.values import MISSING, JSONObject, Missing, Record, is_list, is_object
from .conversation import Peer
from .sending import Breach

PROTOCOL_VERSION: Final = META_PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = META_PREFIX + "clientCapabilities"
CLIENT_INFO: Final = META_PREFIX + "clientInfo"
SERVER_INFO: Final = META_PREFIX + "serverInfo"
LOG_LEVEL: Final = META_PREFIX + "logLevel"
SUBSCRIPTION_ID: Final = META_PREFIX + "subscriptionId"

_NAMED: Final = ("name", "version")

LIBRARY_KEYS: Final = frozenset({PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO})
"""The keys that the library writes into each request of a client; the application may not."""


OPTIONAL: Final[OptionalMembers] = ((CLIENT_INFO, OBJECT), (LOG_LEVEL, STRING))
"""The optional keys of an envelope."""


@attrs.frozen
class Envelope(Record):
    """The envelope of a request: revision, capabilities, info and log level of its client.

    All requests with equal envelopes share `peer`, which must not be changed.
    """

    version: str
    capabilities: JSONObject
    info: JSONObject | None
    level: str | None
    peer: Peer
    meta: JSONObject | Missing
    """The whole `_meta` of the envelope, to recognise an equal one by one comparison.

    MISSING if it has a number or a boolean: for Python, `True`, `1` and `1.0` are equal.
    """

    def matches(self, meta: JSONObject) -> bool:
        """Whether the `_meta` of another request has an equal envelope."""
        return (
            meta.get(PROTOCOL_VERSION) == self.version
            and meta.get(CLIENT_CAPABILITIES) == self.capabilities
            and meta.get(CLIENT_INFO) == self.info
            and meta.get(LOG_LEVEL) == self.level
            and (
                self.meta is not MISSING
                or (
                    _has_same_types(meta[CLIENT_CAPABILITIES], self.capabilities)
                    and _has_same_types(meta.get(CLIENT_INFO), self.info)
                )
            )
        )


def read_envelope(meta: JSONObject, speaks: tuple[str, ...], shape: bool) -> Envelope | Breach:
    """Return the envelope of a request, or the breach if it is not valid.

    Args:
        meta: The request's `params._meta`.
        speaks: The modern revisions that the server speaks.
        shape: Whether the members of the client's info are checked.
    """
    version: Any = meta.get(PROTOCOL_VERSION)
    if not isinstance(version, str):
        return _lacks(PROTOCOL_VERSION, "a string")
    if version not in speaks:
        return Breach(
            "VER-008",
            f"revision {version[:80]} is not served",
            ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        )
    capabilities: Any = meta.get(CLIENT_CAPABILITIES)
    if not is_object(capabilities):
        return _lacks(CLIENT_CAPABILITIES, "an object")
    info: Any = meta.get(CLIENT_INFO)
    if info is not None and not is_object(info):
        return _lacks(CLIENT_INFO, "an object, where it is given")
    if shape and info is not None and not all(isinstance(info.get(m), str) for m in _NAMED):
        return _lacks(CLIENT_INFO, "with name and version, where it is given")
    level: Any = meta.get(LOG_LEVEL)
    if level is not None and (not isinstance(level, str) or level not in LOG_LEVELS):
        return Breach(
            "LOG-010",
            f"the log level is none of {', '.join(LOG_LEVELS)}",
            ErrorCode.INVALID_PARAMS,
        )
    # The params belong to the application, which may change them.
    capabilities, info = deepcopy(capabilities), deepcopy(info)
    peer = Peer()
    peer.revision, peer.info, peer.capabilities, peer.log_level = version, info, capabilities, level
    whole: JSONObject = {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: capabilities}
    whole |= {} if info is None else {CLIENT_INFO: info}
    whole |= {} if level is None else {LOG_LEVEL: level}
    return Envelope(
        version, capabilities, info, level, peer, whole if _has_text_only(whole) else MISSING
    )


def _has_text_only(value: object) -> bool:
    """Whether a JSON value has no numbers and no booleans."""
    if is_object(value):
        return all(map(_has_text_only, value.values()))
    if is_list(value):
        return all(map(_has_text_only, value))
    return value is None or isinstance(value, str)


def _has_same_types(value: object, equal: object) -> bool:
    """Whether two values that are equal for Python have the same JSON types."""
    if is_object(value):
        assert is_object(equal)
        return all(_has_same_types(member, equal[name]) for name, member in value.items())
    if is_list(value):
        assert is_list(equal)
        return all(map(_has_same_types, value, equal))
    return type(value) is type(equal)


def _lacks(key: str, kind: str) -> Breach:
    return Breach("META-010", f"_meta needs {key}, {kind}", ErrorCode.INVALID_PARAMS)
