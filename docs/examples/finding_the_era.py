"""A client of both eras meets servers of one era, of the other, and of both."""

import json

from sansmcp import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    ClientConnection,
    ConnectionFailed,
    Ready,
    ServerConnection,
)

INFO = {"name": "demo", "version": "1.0"}


# -- open
def meet(client: ClientConnection, server: ServerConnection, hint: str | None = None) -> str | None:
    """Open a conversation, print the client's messages, and return the agreed revision."""
    client.start(hint=hint)
    while data := client.data_to_send():
        print("  ", *(json.loads(line)["method"] for line in data.splitlines()))
        server.receive_data(data)
        client.receive_data(server.data_to_send())
    for event in iter(client.next_event, None):
        match event:
            case Ready(revision=revision):
                print("   ready at", revision)
                return revision
            case ConnectionFailed(text=text):
                print("   failed:", text)
            case _:
                pass
    return None


# -- servers
print("a server of both eras")
meet(ClientConnection(info=INFO), ServerConnection(info=INFO))

print("a server of 2026-07-28 alone")
modern = ServerConnection(info=INFO, revisions=MODERN_REVISIONS)
meet(ClientConnection(info=INFO), modern)

print("a server of the older era")
legacy = ServerConnection(info=INFO, revisions=LEGACY_REVISIONS)
found = meet(ClientConnection(info=INFO), legacy)

print("the same server, started once more")
legacy = ServerConnection(info=INFO, revisions=LEGACY_REVISIONS)
meet(ClientConnection(info=INFO), legacy, hint=found)

print("two that have no revision in common")
legacy = ServerConnection(info=INFO, revisions=LEGACY_REVISIONS)
meet(ClientConnection(info=INFO, revisions=MODERN_REVISIONS), legacy)
