"""What both sides of one conversation have agreed on. It does not know which side we are."""

from __future__ import annotations

import attrs

from ._lifecycle import PHASES, Phase, PhaseTrigger
from ._methods import Dialect
from ._registry import OPEN_GATES


@attrs.define(eq=False)
class Conversation:
    """Phase of the handshake, the revision, and the gates that each side has opened.

    `gates` is indexed by side. Before a revision is agreed, `dialect` is the newest that our side
    supports.
    """

    dialect: Dialect
    phase: Phase = Phase.NEW
    gates: list[frozenset[str]] = attrs.field(factory=lambda: [OPEN_GATES, OPEN_GATES])

    @property
    def agreed(self) -> bool:
        """Whether a revision is agreed."""
        return self.phase >= Phase.AGREED

    def move(self, trigger: PhaseTrigger) -> None:
        """Take one step of the handshake; `judge_*` has been asked whether it is legal."""
        self.phase = PHASES[self.phase, trigger]
