"""The table of states of an attempt."""

from __future__ import annotations

import pytest

from sansmcp.auth import AuthorizationState
from sansmcp.auth._client.states import AUTHORIZATION, AuthorizationTrigger

SUCCESS = {AuthorizationState.AUTHORIZED, AuthorizationState.LOGGED_OUT}
FINAL = SUCCESS | {AuthorizationState.FAILED}


def test_final_states_are_never_left() -> None:
    """An attempt would have a second ending."""
    assert {source for source, _ in AUTHORIZATION}.isdisjoint(FINAL)


@pytest.mark.parametrize("state", [state for state in AuthorizationState if state not in FINAL])
def test_each_state_can_fail(state: AuthorizationState) -> None:
    """A server can stop answering at any step, and a user can give up."""
    assert AUTHORIZATION[state, AuthorizationTrigger.FAIL] is AuthorizationState.FAILED


def test_each_state_is_reached() -> None:
    """From the beginning, by the steps of the table."""
    reached = {AuthorizationState.STARTED}
    while (
        more := {target for (source, _), target in AUTHORIZATION.items() if source in reached}
        - reached
    ):
        reached |= more

    assert reached == set(AuthorizationState)


def test_success_is_reached_from_each_state() -> None:
    """A state from which there is only failure would be a dead end."""
    good = set(SUCCESS)
    while (
        more := {source for (source, _), target in AUTHORIZATION.items() if target in good} - good
    ):
        good |= more

    assert good == set(AuthorizationState) - {AuthorizationState.FAILED}
