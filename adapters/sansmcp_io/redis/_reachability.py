"""Whether Redis can be reached, and whether what it says of other workers can be relied on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final


class Reachability:
    """Whether Redis can be reached: at first it cannot.

    Args:
        now: Returns the time, in seconds.
        lease: Seconds after which a worker that is silent counts as dead.

    Attributes:
        was_reached: Whether Redis could be reached at any time so far.
    """

    def __init__(self, now: Callable[[], float], lease: float) -> None:
        self.was_reached = False
        self._now: Final = now
        self._lease: Final = lease
        self._away_at: float | None = now()  # since when Redis cannot be reached
        # Since when the living workers have been able to renew their leases.
        self._back_at = -math.inf

    @property
    def is_away(self) -> bool:
        """Whether Redis cannot be reached."""
        return self._away_at is not None

    @property
    def is_long_away(self) -> bool:
        """Whether Redis cannot be reached for so long that each lease has ended."""
        return self._away_at is not None and self._now() - self._away_at >= self._lease

    @property
    def is_reliable(self) -> bool:
        """Whether a worker without a lease is dead.

        Where Redis has been away or is new, living workers first have to renew their leases.
        """
        return self._away_at is None and self._now() - self._back_at >= self._lease

    def went_away(self) -> None:
        """Redis cannot be reached."""
        if self._away_at is None:
            self._away_at = self._now()

    def came_back(self, age: float) -> None:
        """Redis can be reached: again, or for the first time.

        Args:
            age: The seconds since its start, of which only those before the first time count.
        """
        self._away_at = None
        # A worker that is as new as Redis must not take living workers for dead.
        self._back_at = self._now() - (0 if self.was_reached else age)
        self.was_reached = True
