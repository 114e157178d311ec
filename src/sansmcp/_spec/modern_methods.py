"""The methods of the modern revision, which has no handshake.

The tables leave out what all messages share: the envelope in `_meta` of requests
(`_rules.request_meta`), and the members that the library adds to results
(`_connection.modern_messages`). Any request may be the first one.
"""

from __future__ import annotations

from typing import Any, Final

from .methods import (
    ARRAY,
    CONTEXT,
    ELICITATION_CONDITIONS,
    FORM,
    INPUT_RULES,
    INPUTS,
    META,
    OBJECT,
    STRING,
    TOOLS,
    TOOLS_CONDITIONS,
    URI,
    C,
    Dialect,
    Members,
    Method,
    S,
    call,
    cancelled,
    completion,
    elicitation,
    listing_of,
    log_message,
    notification,
    progress,
    prompt,
    request,
    sampling,
)

MODERN_REVISION: Final = "2026-07-28"
META_PREFIX: Final = "io.modelcontextprotocol/"
"""The prefix of the keys in `_meta` that the protocol defines."""
MIRRORED_NAMES: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    # Of the extension for tasks; keeps XTASK-134, XTASK-137, XTASK-139.
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of params that the header field `Mcp-Name` repeats, by method."""

_URL: Final[Members] = (("message", STRING), ("url", STRING))


def _change(name: str, gate: str, **more: Any) -> Method:
    """The definition of a notification that belongs to a subscription."""
    return notification(S, name, gate, early=True, **more)


# Keeps SUBS-001.
_REQUESTS: Final = (
    request(
        C,
        "server/discover",
        result=(("capabilities", OBJECT), ("supportedVersions", ARRAY)),
        result_optional=(("instructions", STRING), *META),
        early=True,
        cacheable=True,
        has_part=True,
    ),
    listing_of("tools/list", "tools", "tools", early=True, cacheable=True),
    call(params_also=INPUTS, member_rules=INPUT_RULES, early=True, allows_questions=True),
    listing_of("resources/list", "resources", "resources", early=True, cacheable=True),
    listing_of(
        "resources/templates/list", "resources", "resourceTemplates", early=True, cacheable=True
    ),
    request(
        C,
        "resources/read",
        "resources",
        params=URI,
        params_optional=(*INPUTS, *META),
        member_rules=INPUT_RULES,
        result=(("contents", ARRAY),),
        early=True,
        allows_questions=True,
        cacheable=True,
    ),
    listing_of("prompts/list", "prompts", "prompts", early=True, cacheable=True),
    prompt(params_also=INPUTS, member_rules=INPUT_RULES, early=True, allows_questions=True),
    completion("completions", params_optional=CONTEXT, early=True),
    request(
        C, "subscriptions/listen", params=(("notifications", OBJECT),), early=True, has_part=True
    ),
)

_NOTIFICATIONS: Final = (
    cancelled(C, "notifications/cancelled"),
    cancelled(S, "notifications/cancelled"),
    progress(S, "notifications/progress", params_also=(("message", STRING),), early=True),
    log_message(),
    _change("notifications/subscriptions/acknowledged", "", params=(("notifications", OBJECT),)),
    _change("notifications/tools/list_changed", "tools.listChanged"),
    _change("notifications/resources/list_changed", "resources.listChanged"),
    _change("notifications/resources/updated", "resources.subscribe", params=URI),
    _change("notifications/prompts/list_changed", "prompts.listChanged"),
)

_INPUTS: Final = (
    sampling(params_also=TOOLS, conditions=TOOLS_CONDITIONS),
    request(S, "roots/list", "roots", result=(("roots", ARRAY),)),
    elicitation(
        params_also=(("mode", STRING),),
        modes={"form": FORM, "url": _URL},
        conditions=ELICITATION_CONDITIONS,
    ),
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
