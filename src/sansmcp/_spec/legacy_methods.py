"""The methods of the legacy revisions: for each revision, those that are new or have changed."""

from __future__ import annotations

from typing import Final

from .._wire.values import Side
from .methods import (
    ANYTHING,
    ARRAY,
    CONTEXT,
    CURSOR,
    CURSOR_RULES,
    ELICITATION_CONDITIONS,
    FORM,
    META,
    NEXT_CURSOR,
    NUMBER,
    OBJECT,
    STRING,
    TASK_PARAM,
    TOOLS,
    TOOLS_CONDITIONS,
    URI,
    C,
    Members,
    Method,
    OptionalMembers,
    S,
    both,
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

_TASK_ID: Final[Members] = (("taskId", STRING),)
TASK: Final[Members] = (
    ("createdAt", STRING),
    ("lastUpdatedAt", STRING),
    ("status", STRING),
    ("taskId", STRING),
    ("ttl", ANYTHING),
)
TASK_OPTIONAL: Final[OptionalMembers] = (("statusMessage", STRING), ("pollInterval", NUMBER), *META)
_ARGUMENTS_RULE: Final = {"arguments": "TOOL-026"}
_STRUCTURED: Final[OptionalMembers] = (("structuredContent", OBJECT),)
_MODE: Final[OptionalMembers] = (("mode", STRING),)
_URL: Final[Members] = (("elicitationId", STRING), ("message", STRING), ("url", STRING))


_SINCE_2024_11_05: Final[tuple[Method, ...]] = (
    request(
        C,
        "initialize",
        params=(("capabilities", OBJECT), ("clientInfo", OBJECT), ("protocolVersion", STRING)),
        result=(("capabilities", OBJECT), ("protocolVersion", STRING), ("serverInfo", OBJECT)),
        result_optional=(("instructions", STRING), *META),
        params_rule="LIFE-002",
        result_rule="LIFE-003",
        cancellable=False,
        early=True,
        has_part=True,
    ),
    notification(C, "notifications/initialized", early=True),
    *both(request, "ping", early=True, has_part=True),
    listing_of("tools/list", "tools", "tools"),
    call(member_rules=_ARGUMENTS_RULE),
    listing_of("resources/list", "resources", "resources"),
    listing_of("resources/templates/list", "resources", "resourceTemplates"),
    request(C, "resources/read", "resources", params=URI, result=(("contents", ARRAY),)),
    request(C, "resources/subscribe", "resources.subscribe", params=URI, has_part=True),
    request(C, "resources/unsubscribe", "resources.subscribe", params=URI, has_part=True),
    listing_of("prompts/list", "prompts", "prompts"),
    prompt(),
    completion(gate=""),  # this revision has no capability for it
    request(C, "logging/setLevel", "logging", params=(("level", STRING),), has_part=True),
    sampling(),
    request(S, "roots/list", "roots", result=(("roots", ARRAY),)),
    notification(S, "notifications/tools/list_changed", "tools.listChanged"),
    notification(S, "notifications/resources/list_changed", "resources.listChanged"),
    notification(S, "notifications/resources/updated", "resources.subscribe", params=URI),
    notification(S, "notifications/prompts/list_changed", "prompts.listChanged"),
    notification(C, "notifications/roots/list_changed", "roots.listChanged"),
    log_message(),
    *both(progress, "notifications/progress"),
    *both(cancelled, "notifications/cancelled"),
)

_SINCE_2025_03_26: Final[tuple[Method, ...]] = (
    completion(gate="completions"),
    *both(progress, "notifications/progress", params_also=(("message", STRING),)),
)

# Clients of this revision treat every mode as a form (ELIC-007).
_SINCE_2025_06_18: Final[tuple[Method, ...]] = (
    call(result_also=_STRUCTURED, member_rules=_ARGUMENTS_RULE),
    completion(gate="completions", params_optional=CONTEXT),
    elicitation(modes={"form": FORM}),
)


def _task_methods(sender: Side) -> tuple[Method, ...]:
    return (
        request(
            sender,
            "tasks/get",
            "tasks",
            params=_TASK_ID,
            result=TASK,
            result_optional=TASK_OPTIONAL,
            has_part=True,
        ),
        request(sender, "tasks/result", "tasks", params=_TASK_ID, has_part=True),
        request(
            sender,
            "tasks/list",
            "tasks.list",
            paginated="tasks",
            params_optional=CURSOR,
            member_rules=CURSOR_RULES,
            result=(("tasks", ARRAY),),
            result_optional=NEXT_CURSOR,
            has_part=True,
        ),
        request(
            sender,
            "tasks/cancel",
            "tasks.cancel",
            params=_TASK_ID,
            result=TASK,
            result_optional=TASK_OPTIONAL,
            has_part=True,
        ),
        notification(
            sender,
            "notifications/tasks/status",
            "tasks",
            params=TASK,
            params_optional=TASK_OPTIONAL,
        ),
    )


_SINCE_2025_11_25: Final[tuple[Method, ...]] = (
    call(params_also=TASK_PARAM, result_also=_STRUCTURED, task_gate="tasks.requests.tools.call"),
    sampling(
        params_also=(*TOOLS, *TASK_PARAM),
        conditions=TOOLS_CONDITIONS,
        task_gate="tasks.requests.sampling.createMessage",
    ),
    elicitation(
        params_also=(*_MODE, *TASK_PARAM),
        modes={"form": FORM, "url": _URL},
        conditions=ELICITATION_CONDITIONS,
        task_gate="tasks.requests.elicitation.create",
    ),
    Method(
        name="notifications/elicitation/complete",
        kind="notification",
        sender=S,
        gate="elicitation.url",
        params=(("elicitationId", STRING),),
        cancellable=False,
    ),
    *_task_methods(C),
    *_task_methods(S),
)

LEGACY_STEPS: Final = {
    "2024-11-05": _SINCE_2024_11_05,
    "2025-03-26": _SINCE_2025_03_26,
    "2025-06-18": _SINCE_2025_06_18,
    "2025-11-25": _SINCE_2025_11_25,
}
"""By revision: the methods that are new or have changed."""
