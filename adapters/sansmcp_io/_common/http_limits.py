"""What an HTTP server puts up with from a connection, and from all of them."""

from __future__ import annotations

from typing import final

import attrs

from .defaults import check_limit


@final
@attrs.frozen(kw_only=True)
class HTTPLimits:
    """Limits on connections; times are in seconds, and `math.inf` is no limit, for any of them.

    How large a body may be, and how much of the output may wait, is for `sansmcp.Config` to say.
    """

    connections: int = attrs.field(default=1000, validator=check_limit)
    """Connections at a time; one over it gets 503."""
    head_bytes: int = attrs.field(default=16_384, validator=check_limit)
    """Of a request line with its fields, and of the line before a chunk; over it: 431."""
    head: float = attrs.field(default=10.0, validator=check_limit)
    """For a head, from its first byte on, and for the first byte on a new connection: 408."""
    body: float = attrs.field(default=60.0, validator=check_limit)
    """For a body, from the end of the head on: 408."""
    idle: float = attrs.field(default=75.0, validator=check_limit)
    """Between a response and the next request; then the connection is closed."""
    stall: float = attrs.field(default=30.0, validator=check_limit)
    """In which a client must have read something of what waits to be sent, or it is given up."""
    linger: float = attrs.field(default=2.0, validator=check_limit)
    """In which a client whose request was cut short can read why, while it still sends."""
    held_bytes: int = attrs.field(default=256 * 1024 * 1024, validator=check_limit)
    """Of bodies that are not complete and of output that is not read, on all connections together.
    Over it, the connection that holds the most is given up, with 503 where that is possible."""
    drained_bytes: int = attrs.field(default=65_536, validator=check_limit)
    """A body of no use is read if it has no more than this; of a longer one, the connection is
    closed."""
