"""The resource updates that a subscription may bring, for a client and for an observer.

Only the server knows the parts of a resource, so any URI that begins with a granted one is allowed.
Rules: SUBS-003.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import Config, JSONValue, Observer, StandardCodec
from tests.support.modern import SUBSCRIPTION, acknowledged, changed, listen, modern_client
from tests.support.watching import C, S, accused, taken
from tests.support.wire import broken, note, receive, wire

UPDATED: Final = "resources/updated"


class Counted(str):
    """A string that counts its comparisons with others."""

    __slots__ = ()
    n_compared = 0

    def __lt__(self, other: str, /) -> bool:
        Counted.n_compared += 1
        return str(self) < str(other)

    def __eq__(self, other: object, /) -> bool:
        Counted.n_compared += 1
        return str.__eq__(self, other)

    def startswith(self, prefix: str | tuple[str, ...], /, *between: Any) -> bool:
        Counted.n_compared += 1 if isinstance(prefix, str) else len(prefix)
        return super().startswith(prefix, *between)

    __hash__ = str.__hash__


class CountedCodec(StandardCodec):
    """The standard codec, which counts comparisons of the URIs of these tests."""

    def decode(self, data: bytes | bytearray | memoryview) -> JSONValue:
        def counted(value: JSONValue) -> JSONValue:
            if isinstance(value, dict):
                return {name: counted(one) for name, one in value.items()}
            if isinstance(value, list):
                return [counted(one) for one in value]
            is_uri = isinstance(value, str) and value.startswith("file:///")
            return Counted(value) if is_uri else value

        return counted(super().decode(data))


def told_by_client(
    uris: Sequence[str], updates: Sequence[str], config: Config | None = None
) -> tuple[Callable[[], object], list[str]]:
    """The updates of a client with these resources, and the broken rules."""
    client = modern_client(config=config)
    call = client.listen({"resourceSubscriptions": list(uris)})
    assert call.open
    assert broken(receive(client, acknowledged(2, {"resourceSubscriptions": list(uris)}))) == []
    rules: list[str] = []

    def work() -> None:
        for uri in updates:
            rules.extend(broken(receive(client, changed(2, UPDATED, uri=uri))))

    return work, rules


def told_by_observer(
    uris: Sequence[str], updates: Sequence[str], config: Config | None = None
) -> tuple[Callable[[], object], list[str]]:
    """The updates that an observer sees for these resources, and the broken rules."""
    observer = Observer(config=config)
    filter: dict[str, Any] = {"resourceSubscriptions": list(uris)}
    observer.receive_data(C, wire(listen(2, filter)))
    observer.receive_data(S, wire(acknowledged(2, filter)))
    assert accused(taken(observer)) == []
    rules: list[str] = []

    def work() -> None:
        for uri in updates:
            observer.receive_data(S, wire(changed(2, UPDATED, uri=uri)))
            rules.extend(rule for _, rule in accused(taken(observer)))

    return work, rules


JUDGES: Final = [told_by_client, told_by_observer]


@pytest.mark.parametrize("told", JUDGES)
@pytest.mark.parametrize("text", [st.text("ab", max_size=5), st.text(max_size=3)])
def test_a_uri_is_granted_with_all_that_continues_it(
    told: Callable[..., Any], text: st.SearchStrategy[str]
) -> None:
    """One granted URI may be the start of another; the empty one grants all."""

    @given(uris=st.lists(text, min_size=1, max_size=6), uri=text)
    def judged(uris: list[str], uri: str) -> None:
        work, rules = told(uris, [uri])
        work()
        assert rules == ([] if uri.startswith(tuple(uris)) else ["SUBS-003"])

    judged()


@pytest.mark.parametrize("told", JUDGES)
def test_the_cost_of_an_update_does_not_grow_with_what_was_granted(
    told: Callable[..., Any],
) -> None:
    """A client may watch thousands of resources, and an update must not search all of them."""
    config = Config(codec=CountedCodec(), max_subscriptions=10**6)
    counts: list[int] = []
    for n in (16, 4096):
        uris = [f"file:///{k:05}/x" for k in range(n)]
        updates = [*(f"{uri}/part" for uri in uris[:8]), *(f"{uri[:-1]}y" for uri in uris[:8])]
        work, rules = told(uris, updates, config)
        Counted.n_compared = 0
        work()
        assert rules == ["SUBS-003"] * 8
        counts.append(Counted.n_compared)
    few, many = counts
    assert 0 < few <= many <= few + 8 * 16 * 2  # one for each doubling, and the codec's own


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_a_uri_in_a_change_of_a_list_is_no_resource(kind: str) -> None:
    """A `uri` in a notification that has no such member must be ignored."""
    client = modern_client()
    filter: dict[str, Any] = {f"{kind}ListChanged": True, "resourceSubscriptions": ["file:///a"]}
    client.listen(filter)
    receive(client, acknowledged(2, filter))
    assert broken(receive(client, changed(2, f"{kind}/list_changed", uri="file:///b"))) == []
    observer = Observer()
    observer.receive_data(C, wire(listen(2, filter)))
    observer.receive_data(S, wire(acknowledged(2, filter)))
    params = {"uri": "file:///b", "_meta": {SUBSCRIPTION: 2}}
    observer.receive_data(S, wire(note(f"notifications/{kind}/list_changed", params)))
    assert accused(taken(observer)) == []
