"""Every order in which a call, its cancellation and its response can happen."""

from sansmcp.testing import Pair, Script, World, answer, cancel, explore, progress, request

# -- scripts
caller: Script = [request("call", "tools/call", {"name": "slow"}, progress=True)]
canceller: Script = [cancel("call")]
handler: Script = [progress(0, 1), answer(0, {"content": []})]


def check(world: World) -> None:
    """A condition that must hold in every state."""
    assert len(world.server.connection.open_requests) <= 1


seen = explore(Pair(), client=[caller, canceller], server=[handler], check=check)
print(*sorted({name for _, name in seen.events}), sep="\n")
