"""Limits and policies of a connection, with the defaults that the documentation lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from .._spec.registry import Registry, extended
from .._wire.codec import STANDARD_CODEC, Codec
from .._wire.setting_checks import check_kind, choice, flag, kinds_in, names_in, seconds, whole
from .._wire.values import Record

if TYPE_CHECKING:
    from .._spec.extensions import Extension

MIB = 1024 * 1024
_KEY_BYTES: Final = 16
_MANUAL: Final = frozenset({"initialize", "ping", "logging/setLevel", "subscriptions/listen"})


def _secrets(keys: Iterable[bytes]) -> tuple[bytes, ...]:
    try:
        given: tuple[bytes, ...] = kinds_in("state_keys", keys, bytes, "keys")
    except ValueError:  # its text quotes the value, which may hold a secret
        raise ValueError(
            "state_keys must be a list or a tuple of bytes, as in state_keys=[key]"
        ) from None
    if any(len(key) < _KEY_BYTES for key in given):
        raise ValueError(f"each of state_keys must have {_KEY_BYTES} bytes or more")
    return given


def _manual(_instance: object, _attribute: attrs.Attribute[Any], value: frozenset[str]) -> None:
    if unknown := value - _MANUAL:
        raise ValueError(
            f"manual may name {', '.join(sorted(_MANUAL))}, not {', '.join(sorted(unknown))}"
        )


def _codec(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not all(callable(getattr(value, method, None)) for method in ("encode", "decode")):
        raise ValueError(f"{attribute.name} must have the methods encode and decode, not {value!r}")


def _limit(default: int) -> int:
    limit: int = attrs.field(default=default, validator=whole())
    return limit


def _seconds() -> float | None:
    time: float | None = attrs.field(default=None, validator=attrs.validators.optional(seconds()))
    return time


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names_in("manual", names))


def _tuple_of(extensions: Iterable[Extension]) -> tuple[Extension, ...]:
    if extensions == ():
        return ()
    from .._spec.extensions import Extension  # not before there are any: most programs have none

    given: tuple[Extension, ...] = kinds_in(
        "extensions", extensions, Extension, "Extension objects"
    )
    return given


def _registry_of(config: Config) -> Registry:
    return extended(config.extensions)


@attrs.frozen(kw_only=True)
class Config(Record):
    """Immutable limits and policies; one instance may serve any number of connections.

    The docstring of each limit says what happens above the limit. Times are in seconds.
    """

    max_message_bytes: int = _limit(16 * MIB)
    """Bytes of one incoming message; a longer message is discarded and reported (OWN-001). If the
    message is the response to a known request, that request ends with `INVALID_ANSWER`."""
    max_json_depth: int = _limit(200)
    """Levels of nesting in one incoming message; a deeper one is a parse error (OWN-002)."""
    max_integer_digits: int = _limit(4_300)
    """Digits of one incoming integer; a longer one is a parse error (OWN-003)."""
    max_requests: int = _limit(10_000)
    """Open requests in each direction. An incoming request above the limit gets the error -32603
    with `data.reason` (OWN-004); sending one raises `LocalProtocolError` (OWN-005). An HTTP server
    refuses a request with 503 while as many wait for a decision of the application (OWN-061)."""
    max_batch: int = _limit(1_000)
    """Messages in one batch of 2025-03-26; a longer batch is an invalid request (OWN-006)."""
    max_used_ids: int = _limit(10_000)
    """Ranges of request ids that the peer has used; the oldest range is forgotten and counted
    (OWN-007)."""
    max_late_answers: int = _limit(1_000)
    """Requests that ended without a response and are kept to recognise a late one; the oldest is
    forgotten and counted (OWN-008)."""
    max_subscriptions: int = _limit(1_000)
    """Subscriptions of the peer: each subscribed resource counts, and so does each subscription of
    2026-07-28. A request to subscribe above the limit gets the error -32603 (OWN-009)."""
    max_held_changes: int = _limit(1_000)
    """Published changes that are held back while output is above the soft limit; above this number
    `publish` drops the change and returns False (OWN-010)."""
    max_tool_schemas: int = _limit(1_000)
    """On HTTP, tools of a server whose parameters for headers are remembered; the oldest is
    forgotten and reported (OWN-043)."""
    max_reconnects: int = _limit(10)
    """Attempts in a row to open or resume a stream of HTTP that may be in vain; with the last of
    them the stream, and each request that waits for a response on it, is lost (OWN-041)."""
    max_pages: int = _limit(10_000)
    """Pages of one listing; the listing ends there (OWN-013)."""
    max_items: int = _limit(1_000_000)
    """Items of one listing; the listing ends with the page that reaches the limit (OWN-013)."""
    max_empty_pages: int = _limit(10)
    """Empty pages in a row of one listing; the listing ends there (OWN-013)."""
    max_events: int = _limit(10_000)
    """Events not yet taken; above the limit `paused` is true. No message is refused."""
    max_event_bytes: int = _limit(64 * MIB)
    """Bytes of the messages received since all events were last taken; above the limit `paused` is
    true as long as events wait. No message is refused."""
    soft_unsent_bytes: int = _limit(16 * MIB)
    """Bytes of output not yet taken; above the limit progress and logs are dropped, and published
    changes are held back (OWN-011)."""
    max_unsent_bytes: int = _limit(64 * MIB)
    """Bytes of output not yet taken; a message that would exceed the limit ends the connection
    (OWN-012). A message that is larger than the limit by itself is refused instead, and a response
    becomes an error (OWN-044)."""

    max_held_bytes: int = _limit(256 * MIB)
    """Estimated memory, in bytes, for the requests of all clients of an HTTP endpoint: incomplete
    bodies, params of open requests, and output that comes from other processes. A request or a
    large notification above the limit gets the status 503 with `Retry-After` (OWN-053); of the
    incomplete bodies, the longest are refused first. The `initialize` requests that sessions keep
    may take a quarter of the limit besides."""

    codec: Codec = attrs.field(default=STANDARD_CODEC, validator=_codec)
    """The codec that turns JSON text into values and back."""
    check: Literal["shape", "full", "none"] = attrs.field(
        default="shape", validator=choice("shape", "full", "none")
    )
    """`"shape"` checks, in both directions, that params and results have their required members and
    that all members of the revision have the right JSON type; `"none"` does not. `"full"` also
    looks into the members, with `sansmcp.check`: it refuses what breaks a rule that has to be kept
    (no SHOULD)."""
    strict: bool = attrs.field(default=False, validator=flag)
    """Whether to refuse a response whose id has the wrong JSON type (`"7"` for 7)."""
    unknown_methods: Literal["refuse", "deliver"] = attrs.field(
        default="refuse", validator=choice("refuse", "deliver")
    )
    """`"refuse"` answers requests for unknown or undeclared methods with the error -32601;
    `"deliver"` reports them as `RequestReceived`."""
    manual: frozenset[str] = attrs.field(
        default=frozenset[str](), converter=_names, validator=_manual
    )
    """Methods that the application answers instead of the library: any of `initialize`, `ping`,
    `logging/setLevel` and `subscriptions/listen` (which is answered by `acknowledge`)."""

    extensions: tuple[Extension, ...] = attrs.field(default=(), converter=_tuple_of, eq=False)
    """Methods, notifications and result types that the specification does not have."""
    registry: Registry = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(_registry_of, takes_self=True)
    )
    """The methods of the specification and of `extensions` together; for the library only."""

    send_info: bool = attrs.field(default=True, validator=flag)
    """Whether `info` is sent in each message of revision 2026-07-28 that may carry it."""
    cache_ttl_ms: int = attrs.field(default=0, validator=whole(0))
    """The `ttlMs` of results that have none: milliseconds for which a client may cache them."""
    cache_scope: Literal["public", "private"] = attrs.field(
        default="private", validator=choice("public", "private")
    )
    """The `cacheScope` of results that have none: `"private"` lets only the client that asked
    cache them, `"public"` lets shared caches do so."""
    state_keys: tuple[bytes, ...] = attrs.field(default=(), converter=_secrets, repr=False)
    """Secrets that seal the `state` of `require_input`: a list or a tuple of `bytes`, each of 16
    bytes or more. The first key seals; any of the keys opens. Without keys the state is not sealed.
    With keys, a `principal` must come with a `principal_key`, and the seal is bound to that."""
    state_seconds: float = attrs.field(default=600.0, validator=seconds(endless=True))
    """Seconds for which a sealed state may be used."""
    max_input_rounds: int = _limit(10)
    """Rounds of questions to the client about one request; the request ends there (OWN-027)."""

    coalesce_progress: bool = attrs.field(default=False, validator=flag)
    """Whether `send_progress` drops progress that does not increase, instead of raising."""
    progress_interval: float | None = _seconds()
    """Least seconds between two progress notifications for one request; those that come earlier are
    dropped. Without a clock (`now`) none is dropped."""
    ping_interval: float | None = _seconds()
    """Seconds of silence of the peer after which a ping is sent. None: no pings."""
    ping_timeout: float | None = _seconds()
    """Seconds to wait for the response to such a ping. None: as many as `ping_interval`."""
    max_failed_pings: int = _limit(3)
    """Unanswered pings in a row that end the connection (OWN-016)."""

    def __deepcopy__(self, memo: object) -> Config:
        return self


def config_of(config: Config | None) -> Config:
    """The given settings, or the defaults for None; raises `ValueError` for anything else."""
    check_kind("config", config, Config, optional=True)
    return config or Config()
