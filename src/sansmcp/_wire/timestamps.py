"""Times as texts in ISO 8601, computed without the modules that could read a clock."""

from __future__ import annotations

from typing import Final

_DAY: Final = 86_400_000
"""Milliseconds of a day."""
LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, in Unix seconds: later ones have no such text."""


def timestamp(seconds: float) -> str:
    """The ISO 8601 text of a time in Unix seconds, in UTC and with milliseconds."""
    days, rest = divmod(int(seconds * 1000), _DAY)
    year, month, day = _date(days)
    minutes, milliseconds = divmod(rest, 60_000)
    hour, minute = divmod(minutes, 60)
    second, milliseconds = divmod(milliseconds, 1000)
    return (
        f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{milliseconds:03d}Z"
    )


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01.

    A year that begins in March has its leap day at the end, which makes all months but the last
    regular: five of them have 153 days.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)  # eras of 400 years, since 0000-03-01
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    since_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * since_march + 2) // 5 + 1
    month = since_march + 3 if since_march < 10 else since_march - 9
    return year_of_era + era * 400 + (month <= 2), month, day
