"""Anomalies go to the logger `sansmcp`, at a limited rate and without the peer's data."""

from __future__ import annotations

import logging
from typing import Final, TypeAlias, assert_never

from sansmcp import ErrorWithoutIdReceived, LimitReached, MessageIgnored, ProtocolViolation

LOGGER: Final = logging.getLogger("sansmcp")

RECORDS_PER_WINDOW: Final = 10
WINDOW_SECONDS: Final = 60.0
_LONGEST: Final = 200

Anomaly: TypeAlias = ProtocolViolation | MessageIgnored | LimitReached | ErrorWithoutIdReceived


def printable(text: str) -> str:
    """Cut and escape a text that may quote the peer, so that the text stays within one log line."""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return cut if cut.isprintable() else ascii(cut)[1:-1]


class RecordLimit:
    """Admits `RECORDS_PER_WINDOW` records to the log per window, and counts the others.

    Args:
        subjects: The plural noun for what the records tell of.
    """

    def __init__(self, subjects: str) -> None:
        self._subjects: Final = subjects
        self._since = 0.0
        self._written = 0
        self._withheld = 0

    def admits(self, now: float) -> bool:
        """Whether one more record may be written. `now` is in seconds and never decreases."""
        if self._written == 0 or now >= self._since + WINDOW_SECONDS:
            if self._withheld:
                LOGGER.warning("%d more %s were not logged", self._withheld, self._subjects)
            self._since, self._written, self._withheld = now, 0, 0
        if self._written >= RECORDS_PER_WINDOW:
            self._withheld += 1
            return False
        self._written += 1
        return True


class AnomalyLog:
    """Logs `RECORDS_PER_WINDOW` anomalies of a connection per window, and counts the others."""

    def __init__(self) -> None:
        self._limit: Final = RecordLimit("anomalies")

    def note(self, anomaly: Anomaly, now: float) -> None:
        """Log one anomaly, or only count it after many. `now` is in seconds and never decreases."""
        level, rule, text = self._describe(anomaly)
        if LOGGER.isEnabledFor(level) and self._limit.admits(now):
            LOGGER.log(level, "%s [%s]", printable(text), rule)

    @staticmethod
    def _describe(anomaly: Anomaly) -> tuple[int, str, str]:
        match anomaly:
            case ProtocolViolation(fatal=True):
                return logging.ERROR, anomaly.rule, anomaly.text
            case ProtocolViolation(tolerated=True):
                return logging.INFO, anomaly.rule, anomaly.text
            case ProtocolViolation() | LimitReached():
                return logging.WARNING, anomaly.rule, anomaly.text
            case MessageIgnored():  # a lost race is no mistake
                return logging.DEBUG, anomaly.rule, anomaly.text
            case ErrorWithoutIdReceived():
                text = f"the peer could not read a message of this side (code {anomaly.code})"
                return logging.WARNING, "ERR-001", text
            case _:
                assert_never(anomaly)
