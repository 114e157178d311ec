"""The field MCP-Protocol-Version in the legacy revisions.

Source: MCP 2025-11-25, basic/transports, Protocol Version Header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..._rules.sending import Breach
from ..._spec.errors import ErrorCode

if TYPE_CHECKING:
    from .endpoint import ServerEndpoint
    from .exchange import ServerExchange

VERSION_FIELD: Final = b"mcp-protocol-version"
ASSUMED: Final = b"2025-03-26"
"""The revision of a request that does not say it: the last one that had no field for it."""


def unsupported(endpoint: ServerEndpoint, revision: str) -> Breach:
    """The error for a revision that is not served.

    A server of legacy revisions only has no code for it: with that of a modern server it would
    make clients of both eras believe that it is one.

    Keeps HTTP-024.
    """
    text = f"revision {revision[:80]!r} is not served"
    if endpoint._modern_connection is None:
        return Breach("HDR-004", f"{text}; this server speaks {', '.join(endpoint._revisions)}")
    return Breach(
        "VER-008",
        text,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        data={"supported": list(reversed(endpoint._revisions)), "requested": revision[:80]},
    )


def judge_version(exchange: ServerExchange, id: Any) -> bool:
    """Whether a request of a legacy client names a revision that is served, or none.

    Keeps COMPAT-014.
    """
    endpoint = exchange._endpoint
    revision = exchange._fields.get(VERSION_FIELD)
    if VERSION_FIELD in exchange._fields.repeated:
        exchange._refuse(400, Breach("HDR-004", "MCP-Protocol-Version came more than once"), id)
    elif revision is None:
        if endpoint._table is not None or ASSUMED.decode() in endpoint._legacy_revisions:
            return True
        assumed = ASSUMED.decode()
        text = f"MCP-Protocol-Version is missing, and {assumed}, which that means, is not served"
        exchange._refuse(400, Breach("HDR-003", text), id)
    elif revision in endpoint._legacy_revisions:
        return True
    elif revision in endpoint._modern_revisions:
        if exchange._method == "POST":
            # A batch, or an initialize that is no request.
            text = f"there are neither batches nor handshakes in revision {revision}"
            breach = Breach("BATCH-008", text)
            exchange._refuse(400, breach)
        else:
            breach = Breach("COMPAT-011", f"there is no {exchange._method} in revision {revision}")
            exchange._refuse(405, breach, more=((b"allow", b"POST, OPTIONS"),))
    else:
        exchange._refuse(400, unsupported(endpoint, revision), id)
    return False
