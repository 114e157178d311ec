"""Event stores such as applications have: synchronous, async, and with failures, all on a dict."""

from collections.abc import Awaitable, Callable, Sequence

from tests.support.adapters import loops


class DictStore:
    """A synchronous store, which gives the events of a stream in portions."""

    def __init__(self, *, portion: int = 2, limit: int = 1_000) -> None:
        self.events: dict[str, dict[tuple[int, int], bytes]] = {}
        self.forgotten: list[str] = []
        self.portion = portion
        self.limit = limit
        self.failure: Exception | None = None

    def append(self, session: str, stream: int, event: int, message: bytes) -> int | None:
        if self.failure is not None:
            raise self.failure
        kept = self.events.setdefault(session, {})
        kept[stream, event] = message
        if len(kept) <= self.limit:
            return None
        del kept[next(iter(kept))]
        return 1

    def replay(self, session: str, stream: int, after: int) -> Sequence[tuple[int, bytes]] | None:
        if self.failure is not None:
            raise self.failure
        kept = self.events.get(session, {})
        known = [(event, text) for (name, event), text in kept.items() if name == stream]
        if not known:
            return None
        return [(event, text) for event, text in known if event > after][: self.portion]

    def forget(self, session: str) -> None:
        self.events.pop(session, None)
        self.forgotten.append(session)


class AsyncStore:
    """The same store with async methods."""

    def __init__(self, **settings: int) -> None:
        self.kept = DictStore(**settings)
        self.wait: Callable[[], Awaitable[object]] | None = None  # each call awaits it

    async def append(self, session: str, stream: int, event: int, message: bytes) -> int | None:
        await self._pause()
        return self.kept.append(session, stream, event, message)

    async def replay(
        self, session: str, stream: int, after: int
    ) -> Sequence[tuple[int, bytes]] | None:
        await self._pause()
        return self.kept.replay(session, stream, after)

    async def forget(self, session: str) -> None:
        await self._pause()
        self.kept.forget(session)

    async def _pause(self) -> None:
        if self.wait is not None:
            await self.wait()
        await loops.checkpoint()
