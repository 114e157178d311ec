"""Hypothesis strategies for what only the revision without a handshake has."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from sansmcp import LOG_LEVELS, MODERN_REVISIONS, JSONObject
from sansmcp._rules.request_meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from sansmcp._rules.subscription_filters import FILTERS

from ._examples import QUESTIONS, RESULTS

_ANYTHING: Final[JSONObject] = {
    "elicitation": {"form": {}, "url": {}},
    "roots": {},
    "sampling": {"context": {}, "tools": {}},
}
_INFO: Final[JSONObject] = {"name": "client", "version": "1"}

ENVELOPES: Final[st.SearchStrategy[JSONObject]] = st.fixed_dictionaries(
    {
        PROTOCOL_VERSION: st.sampled_from(MODERN_REVISIONS),
        CLIENT_CAPABILITIES: st.sampled_from((_ANYTHING, _ANYTHING, {}, {"elicitation": {}})),
    },
    optional={
        CLIENT_INFO: st.just(_INFO),
        LOG_LEVEL: st.sampled_from(sorted(LOG_LEVELS)),
        "example.com/any": st.sampled_from(("", 0, None)),
    },
)


def envelopes() -> st.SearchStrategy[JSONObject]:
    """What each request of 2026-07-28 says of its sender: the whole of its `params._meta`."""
    return ENVELOPES


ENVELOPE_MEMBERS: Final = (
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    "progressToken",
)

_KEYS: Final = sorted(QUESTIONS)
_STATES: Final = st.text(max_size=4)

INPUTS: Final[st.SearchStrategy[JSONObject]] = st.fixed_dictionaries(
    {},
    optional={
        "inputResponses": st.lists(st.sampled_from(_KEYS), max_size=3).map(
            lambda keys: {key: RESULTS[QUESTIONS[key]["method"]] for key in keys}
        ),
        "requestState": _STATES,
    },
)
"""What a request says when it comes again with answers: both members, one, or neither."""

_MORE: Final[st.SearchStrategy[JSONObject]] = st.fixed_dictionaries(
    {"resultType": st.just("complete")},
    optional={
        "ttlMs": st.integers(0, 9),
        "cacheScope": st.sampled_from(("public", "private")),
        "_meta": st.just({SERVER_INFO: {"name": "server", "version": "1"}}),
    },
)


def _asking(keys: list[str], state: str | None) -> JSONObject:
    """A result that asks; one of both members must be there."""
    result: JSONObject = {"resultType": "input_required"}
    if keys:
        result["inputRequests"] = {key: QUESTIONS[key] for key in keys}
    if state is not None or not keys:
        result["requestState"] = state or ""
    return result


_ASKING: Final = st.builds(
    _asking, st.lists(st.sampled_from(_KEYS), max_size=3), st.none() | _STATES
)


def merged(one: JSONObject, other: JSONObject) -> JSONObject:
    """One object with the members of both."""
    return {**one, **other}


def results(legacy: st.SearchStrategy[JSONObject]) -> st.SearchStrategy[JSONObject]:
    """Results of 2026-07-28 out of those of older revisions, and questions."""
    return st.builds(merged, legacy, _MORE) | _ASKING


TAGGED: Final = frozenset({*FILTERS, "notifications/subscriptions/acknowledged"})
"""The notifications that belong to a subscription."""


def tagged(params: JSONObject, id: Any) -> JSONObject:
    """The params of a notification for the subscription with this id."""
    return {**params, "_meta": {SUBSCRIPTION_ID: id}}
