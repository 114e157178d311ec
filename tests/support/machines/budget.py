"""The number of examples of a property: small in `make test`, large in `make proof`."""

from hypothesis import settings


def examples(few: int, many: int) -> settings:
    """The number of examples for a property: `few` in `make test`, `many` in `make proof`."""
    is_short = settings.get_current_profile_name() == "tests"
    return settings(max_examples=few if is_short else many)
