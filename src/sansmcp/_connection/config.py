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
    except ValueError:  # whose text has what was given, and that may be a secret
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
    """Immutable settings; one instance may serve any number of connections.

    Each limit says in its docstring what happens to what goes over it. Times are in seconds.
    """

    max_message_bytes: int = _limit(16 * MIB)
    """Bytes of one incoming message; a longer one is discarded and reported (OWN-001). The request
    that it answers, as far as that is known, ends at once as an invalid answer."""
    max_json_depth: int = _limit(200)
    """Levels of nesting in one incoming message; a deeper one is a parse error (OWN-002)."""
    max_integer_digits: int = _limit(4_300)
    """Digits of one incoming integer; a longer one is a parse error (OWN-003)."""
    max_requests: int = _limit(10_000)
    """Requests in flight each way: an incoming one over it gets -32603 with `data.reason`
    (OWN-004), an outgoing one raises (OWN-005)."""
    max_batch: int = _limit(1_000)
    """Messages in one batch of 2025-03-26; a longer one is an invalid request (OWN-006)."""
    max_used_ids: int = _limit(10_000)
    """Ranges of ids the peer has used; the oldest is forgotten and counted (OWN-007)."""
    max_late_answers: int = _limit(1_000)
    """Requests that ended without an answer, kept to recognise it when it comes; the oldest is
    forgotten and counted (OWN-008)."""
    max_subscriptions: int = _limit(1_000)
    """Resources the peer is subscribed to, and subscriptions of 2026-07-28, each with every
    resource in it; a subscription over it gets -32603 (OWN-009)."""
    max_held_changes: int = _limit(1_000)
    """Published changes held back while output is over the soft limit; one over it is refused by
    `publish` (OWN-010)."""
    max_tool_schemas: int = _limit(1_000)
    """Tools of a server on HTTP whose marked parameters are remembered; the oldest is forgotten
    and reported (OWN-043)."""
    max_reconnects: int = _limit(10)
    """Attempts in a row to take up a stream of HTTP in vain; then it, and what waits for its
    answer, is lost (OWN-041)."""
    max_pages: int = _limit(10_000)
    """Pages of one listing; the listing ends there (OWN-013)."""
    max_items: int = _limit(1_000_000)
    """Items of one listing; the listing ends with the page that reaches it (OWN-013)."""
    max_empty_pages: int = _limit(10)
    """Empty pages in a row of one listing; the listing ends there (OWN-013)."""
    max_events: int = _limit(10_000)
    """Events not yet taken; above it `paused` is true. Nothing is refused because of it."""
    max_event_bytes: int = _limit(64 * MIB)
    """Bytes of the messages received since all events were last taken; above it `paused` is true as
    long as events wait. Nothing is refused because of it."""
    soft_unsent_bytes: int = _limit(16 * MIB)
    """Output not yet taken; above it progress and logs are dropped and changes wait (OWN-011)."""
    max_unsent_bytes: int = _limit(64 * MIB)
    """Output not yet taken; a message that would go above it ends the connection (OWN-012), unless
    it has more bytes by itself: then it is refused, and an answer becomes an error (OWN-044)."""

    max_held_bytes: int = _limit(256 * MIB)
    """Memory, by estimate, that the requests of all clients of an HTTP endpoint hold: bodies that
    are not complete, and params of open requests. A request or a large notification over it gets
    503 with `Retry-After` (OWN-053); of bodies that are not complete, the longest give way. What
    sessions keep of their clients' `initialize` may hold a quarter of it besides."""

    codec: Codec = attrs.field(default=STANDARD_CODEC, validator=_codec)
    """Turns JSON text into values and back."""
    check: Literal["shape", "none"] = attrs.field(
        default="shape", validator=choice("shape", "none")
    )
    """Whether the required members of params and results, and the JSON types of all members that
    the revision defines, are checked, in both directions."""
    strict: bool = attrs.field(default=False, validator=flag)
    """Refuse an answer whose id matches only after changing its JSON type."""
    unknown_methods: Literal["refuse", "deliver"] = attrs.field(
        default="refuse", validator=choice("refuse", "deliver")
    )
    """Whether requests for unknown or undeclared methods get -32601, or become events."""
    manual: frozenset[str] = attrs.field(
        default=frozenset[str](), converter=_names, validator=_manual
    )
    """Methods handed to the application that the core would answer by itself: any of
    `initialize`, `ping`, `logging/setLevel`, `subscriptions/listen` (to answer that one,
    `acknowledge` it)."""

    extensions: tuple[Extension, ...] = attrs.field(default=(), converter=_tuple_of, eq=False)
    """Methods, notifications and kinds of results beside those of the specification."""
    registry: Registry = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(_registry_of, takes_self=True)
    )
    """What all of it comes to. It belongs to the machine."""

    send_info: bool = attrs.field(default=True, validator=flag)
    """Whether `info` goes into every message of the modern revision that may have it."""
    cache_ttl_ms: int = attrs.field(default=0, validator=whole(0))
    """Milliseconds for which results may be kept, where a result does not say so itself."""
    cache_scope: Literal["public", "private"] = attrs.field(
        default="private", validator=choice("public", "private")
    )
    """Who may keep them: anybody, or the client that asked."""
    state_keys: tuple[bytes, ...] = attrs.field(default=(), converter=_secrets, repr=False)
    """Secrets that seal what `require_input` gives the client to keep: the first one seals, each
    of them opens. A list or a tuple of `bytes`, each of 16 bytes or more. Without any, the state is
    not sealed. Whoever gives a principal with a request gives a `principal_key` with it: the seal
    is bound to that."""
    state_seconds: float = attrs.field(default=600.0, validator=seconds(endless=True))
    """How long a sealed state may be used."""
    max_input_rounds: int = _limit(10)
    """Rounds of questions to the client within one request; the request ends there (OWN-027)."""

    coalesce_progress: bool = attrs.field(default=False, validator=flag)
    """Drop sent progress that does not increase, instead of raising."""
    progress_interval: float | None = _seconds()
    """Least time between two progress notifications for one request; others are dropped. Needs a
    clock: where no time was ever told, nothing is dropped."""
    ping_interval: float | None = _seconds()
    """Silence of the peer after which it is pinged. None: never."""
    ping_timeout: float | None = _seconds()
    """How long such a ping may go unanswered. None: as long as `ping_interval`."""
    max_failed_pings: int = _limit(3)
    """Unanswered pings in a row that end the connection (OWN-016)."""

    def __deepcopy__(self, memo: object) -> Config:
        return self


def config_of(config: Config | None) -> Config:
    """What a connection or an endpoint was given, or the defaults."""
    check_kind("config", config, Config, optional=True)
    return config or Config()
