"""The methods of the revision without a handshake.

Any request may be the first one, and its `_meta` (the envelope, `_envelope`) is required always:
neither stands in these tables, nor does what the library puts into every result.
"""

from __future__ import annotations

from typing import Any, Final

from ._methods import (
    ANYTHING,
    ARRAY,
    ELICITATION_CONDITIONS,
    FORM,
    NUMBER,
    OBJECT,
    STRING,
    TOOLS_CONDITIONS,
    URI,
    C,
    Dialect,
    Members,
    Method,
    S,
    call,
    completion,
    elicitation,
    listing_of,
    notification,
    request,
    sampling,
)

MODERN_REVISION: Final = "2026-07-28"
META_PREFIX: Final = "io.modelcontextprotocol/"
"""How the names begin of what the protocol itself says in `_meta`."""

_URL: Final[Members] = (("message", STRING), ("url", STRING))


def _change(name: str, gate: str, **more: Any) -> Method:
    """A notification that belongs to a subscription."""
    return notification(S, name, gate, early=True, **more)


_REQUESTS: Final = (
    request(
        C,
        "server/discover",
        result=(("capabilities", OBJECT), ("supportedVersions", ARRAY)),
        early=True,
        cacheable=True,
        special=True,
    ),
    listing_of("tools/list", "tools", "tools", early=True, cacheable=True),
    call(early=True, asks=True),
    listing_of("resources/list", "resources", "resources", early=True, cacheable=True),
    listing_of(
        "resources/templates/list", "resources", "resourceTemplates", early=True, cacheable=True
    ),
    request(
        C,
        "resources/read",
        "resources",
        params=URI,
        result=(("contents", ARRAY),),
        early=True,
        asks=True,
        cacheable=True,
    ),
    listing_of("prompts/list", "prompts", "prompts", early=True, cacheable=True),
    request(
        C,
        "prompts/get",
        "prompts",
        params=(("name", STRING),),
        result=(("messages", ARRAY),),
        early=True,
        asks=True,
    ),
    completion("completions", early=True),
    request(
        C, "subscriptions/listen", params=(("notifications", OBJECT),), early=True, special=True
    ),
)

_NOTIFICATIONS: Final = (
    notification(
        C, "notifications/cancelled", params=(("requestId", (str, int, float)),), early=True
    ),
    notification(
        S, "notifications/cancelled", params=(("requestId", (str, int, float)),), early=True
    ),
    notification(
        S,
        "notifications/progress",
        params=(("progress", NUMBER), ("progressToken", (str, int, float))),
        early=True,
    ),
    notification(
        S,
        "notifications/message",
        "logging",
        params=(("data", ANYTHING), ("level", STRING)),
        early=True,
    ),
    _change("notifications/subscriptions/acknowledged", "", params=(("notifications", OBJECT),)),
    _change("notifications/tools/list_changed", "tools.listChanged"),
    _change("notifications/resources/list_changed", "resources.listChanged"),
    _change("notifications/resources/updated", "resources.subscribe", params=URI),
    _change("notifications/prompts/list_changed", "prompts.listChanged"),
)

_INPUTS: Final = (
    sampling(conditions=TOOLS_CONDITIONS),
    request(S, "roots/list", "roots", result=(("roots", ARRAY),)),
    elicitation(modes={"form": FORM, "url": _URL}, conditions=ELICITATION_CONDITIONS),
)


def _by_name(methods: tuple[Method, ...], sender: Any) -> dict[str, Method]:
    return {method.name: method for method in methods if method.sender is sender}


MODERN_DIALECT: Final = Dialect(
    revision=MODERN_REVISION,
    requests=(_by_name(_REQUESTS, C), {}),
    notifications=(_by_name(_NOTIFICATIONS, C), _by_name(_NOTIFICATIONS, S)),
    inputs=_by_name(_INPUTS, S),
    is_modern=True,
)
