"""How scopes are written.

Source: RFC 6749, section 3.3; OpenID Connect Core 1.0, section 11.
"""

from __future__ import annotations

import re
from typing import Final

SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""One scope: visible ASCII without quotes and backslashes."""
OFFLINE_ACCESS: Final = "offline_access"
"""The scope that asks an authorization server for a refresh token; no resource needs it."""
