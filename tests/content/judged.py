"""JSON values that the validator of the official schema reads."""

import json
from typing import Any, Final

from hypothesis import strategies as st

from sansmcp.testing import json_values


def _is_utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate, which has no form for the validator
        return False
    return True


JUDGED: Final[st.SearchStrategy[Any]] = json_values().filter(_is_utf8)
