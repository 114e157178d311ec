"""How a conversation opens: `handshake` in legacy revisions, `discovery` in 2026-07-28."""
