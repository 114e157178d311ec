"""Two workers with a Redis in memory, which loses and doubles what the test says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from sansmcp import (
    LimitReached,
    ProtocolViolation,
    RequestReceived,
    ResourceUpdated,
    Task,
    ToolsListChanged,
)
from sansmcp.http import (
    EventToStore,
    RelayEnded,
    ReplayWanted,
    SendBody,
    SendEnd,
    SendHead,
    ServerEndpoint,
    ServerExchange,
    SessionEnded,
    SessionRequested,
    Sessions,
    SessionWanted,
)
from sansmcp_io.redis._commands import Command, Keys
from sansmcp_io.redis._entries import Kind
from sansmcp_io.redis._link import LINK_BYTES
from sansmcp_io.redis._member import Member
from sansmcp_io.redis._principals import Principals
from tests.cluster.by_hand import call

KEYS: Final = Keys("test")
LEASE: Final = 9.0
HEADERS: Final = {
    "host": "localhost",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


class Store:
    """What members have sent to Redis, and the answers."""

    def __init__(self) -> None:
        self.streams: dict[str, list[Any]] = {}
        self.leases: set[str] = set()
        self.members: dict[str, Host] = {}
        self.now = 100.0
        self.lost: Callable[[Any], bool] = lambda _: False
        self.doubled: Callable[[Any], bool] = lambda _: False
        self.is_away = False
        self.refuses = False
        self.waiting: list[Command] = []
        self.asked: Callable[[int], object] = lambda _: None

    def put(self, command: Command) -> None:
        """As the threads do it, but at once."""
        if self.is_away:
            if command.is_lasting:
                self.waiting.append(command)
            elif command.done is not None:
                command.done(OSError("away"))
            return
        command.tries += 1
        answer = OSError("full") if self.refuses else self._answer(command.words)
        is_nothing = answer is None or isinstance(answer, Exception)
        if command.done is not None and (is_nothing or not command.only_nothing):
            command.done(answer)

    def come_back(self) -> None:
        """Redis can be reached again, and is sent what has waited."""
        self.is_away = False
        waiting, self.waiting[:] = self.waiting[:], []
        for command in waiting:
            self.put(command)

    def withdraw(self, command: Command, words: Any) -> bool:
        """As the threads do it."""
        if not command.tries:
            command.words = words
        return not command.tries

    def drop_lease(self) -> None:
        """The member that leaves is the owner of sessions in all tests."""
        self.leases.discard(KEYS.lease("A" * 12))

    def _answer(self, words: Any) -> Any:
        match words[0]:
            case "XADD":
                key = words[1]
                if "NOMKSTREAM" in words and key not in self.streams:
                    return None
                at = next(
                    place for place, word in enumerate(words) if word in (b"h", b"m", "s", "c")
                )
                fields = [_bytes(word) for word in words[at:]]
                stream = self.streams.setdefault(key, [])
                if not self.lost(fields):
                    stream.append(fields)
                    if self.doubled(fields):
                        stream.append(fields)
                return b"1-1"
            case "EXISTS":
                return int(words[1] in self.leases)
            case "XRANGE":
                first = 0 if words[2] == "-" else int(words[2].strip("(").partition("-")[0])
                found = self.streams.get(words[1], [])[first : first + words[5]]
                self.asked(len(found))
                return [[b"%d-1" % place, one] for place, one in enumerate(found, first + 1)]
            case "UNLINK":
                return int(self.streams.pop(words[1], None) is not None)
            case _:
                return 1

    def deliver(self) -> None:
        """Give each member what was sent to it, until nothing is left."""
        moved = True
        while moved:
            moved = False
            for name, host in self.members.items():
                inbox = self.streams.get(KEYS.inbox(name))
                while inbox:
                    entries, inbox[:] = inbox[:], []
                    host.member.receive(entries)
                    moved = True

    def heads(self, name: str) -> list[Any]:
        """The heads of what was sent to a member and not delivered."""
        return [json.loads(fields[1]) for fields in self.streams[KEYS.inbox(name)]]


def _bytes(word: Any) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


class Host:
    """A worker: its endpoint, whose handler answers at once, or when the test says."""

    def __init__(
        self,
        store: Store,
        name: str,
        principals: Any = None,
        *,
        age: float = 1_000.0,
        max_events: int = 100,
        max_bytes: int = 10_000,
    ) -> None:
        self.store = store
        counter = itertools.count(1)
        self.endpoint = ServerEndpoint(
            info={"name": "worker", "version": "1"},
            capabilities={"tools": {}},
            sessions=Sessions(
                new_id=lambda: f"s{next(counter)}", opening="ask", unknown="ask", event_log="ask"
            ),
        )
        self.wires: dict[ServerExchange, Any] = {}
        self.requests: list[Any] = []
        self.reports: list[Any] = []
        self.waits = False  # handlers
        self.shares_tasks = False
        self.most_tasks = 0
        self.member = Member(
            self,
            store,
            KEYS,
            name,
            principals=principals or Principals(None, None),
            headers=frozenset({b"x-tenant"}),
            new_id=lambda: f"s{next(counter)}",
            lease=LEASE,
            max_events=max_events,
            max_bytes=max_bytes,
            seconds=60,
            max_tasks=10,
            max_task_bytes=10_000,
        )
        store.streams[KEYS.inbox(name)] = []
        store.leases.add(KEYS.lease(name))
        store.members[name] = self
        self.member.came_back(age)

    def now(self) -> float:
        """The time of the test."""
        return self.store.now

    def carried_context(self, method: str, target: str, headers: Any) -> Any:
        """All that is known of it."""
        return (method, target, dict(headers))

    def resume_task(self, task: Task) -> bool:
        """There are no tasks."""
        raise AssertionError(task)

    def turn(self) -> None:
        """Handle all events."""
        while (event := self.endpoint.next_event()) is not None:
            match event:
                case RequestReceived(request=request):
                    self.requests.append(request)
                    if not self.waits:
                        self.answer(request)
                case (
                    SessionRequested()
                    | SessionWanted()
                    | RelayEnded()
                    | EventToStore()
                    | ReplayWanted()
                    | SessionEnded()
                ):
                    self.member.handle(event)
                case LimitReached() | ProtocolViolation():
                    self.reports.append(event)
                case _:
                    pass
        for exchange in self.endpoint.ready():
            if exchange in self.wires:
                self.wires[exchange].flush()
        self.member.turned()

    def answer(self, request: Any, text: str = "done") -> None:
        """Answer a request."""
        self.endpoint.send_result(request, {"content": [{"type": "text", "text": text}]})
        if not self.endpoint.next_timeout() or self.waits:
            self.turn()

    def post(self, message: Any, session: str | None = None, who: Any = None, **more: str) -> Any:
        """Send a request to this worker. The principal is an account, perhaps with its rights."""
        headers = dict(HEADERS, **{name.replace("_", "-"): text for name, text in more.items()})
        if session is not None:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        exchange = self.endpoint.exchange(
            "POST",
            "/mcp",
            headers,
            principal=who,
            principal_key=None if who is None else str(who).partition(" ")[0],
            now=self.now(),
        )
        exchange.receive_data(json.dumps(message).encode())
        exchange.receive_end(now=self.now())
        self.turn()
        return exchange

    def get(self, session: str, **more: str) -> Any:
        """Open a stream at this worker."""
        headers = {**HEADERS, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        exchange = self.endpoint.exchange("GET", "/mcp", headers, now=self.now())
        exchange.receive_end(now=self.now())
        self.turn()
        return exchange

    def open(self, who: Any = None) -> str:
        """Open a session."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "client", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        _, headers, _ = self.post(message, who=who).response()
        session = dict(headers)[b"mcp-session-id"].decode()
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session, who)
        return str(session)


def taken(exchange: Any) -> tuple[int, bytes, bool]:
    """What has come of a response: its status, its body, and whether it is complete."""
    status, body, is_complete = 0, b"", False
    while (output := exchange.next_output()) is not None:
        match output:
            case SendHead():
                status = output.status
            case SendBody():
                body += output.data
            case _:
                is_complete = isinstance(output, SendEnd)
    return status, body, is_complete


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def pair(store: Store) -> tuple[Host, Host]:
    """The owner of sessions, and the worker that requests reach."""
    return Host(store, "A" * 12), Host(store, "B" * 12)


Pair = tuple[Host, Host]


def test_a_request_is_carried_and_its_response_back(store: Store, pair: Pair) -> None:
    """The smallest whole thing."""
    owner, asker = pair
    session = owner.open()
    assert session.startswith("A" * 12 + ".")
    exchange = asker.post(call(1, "x"), session)
    store.deliver()
    status, body, is_complete = taken(exchange)
    assert (status, is_complete) == (200, True)
    assert b"done" in body
    assert not asker.endpoint.carried
    assert not owner.wires


def test_an_entry_that_comes_twice_counts_once(store: Store, pair: Pair) -> None:
    """It was written again, since nobody knew whether it had been written."""
    owner, asker = pair
    session = owner.open()
    store.doubled = lambda fields: True
    exchanges = [asker.post(call(number, "x"), session) for number in range(3)]
    store.deliver()
    assert [taken(exchange)[0] for exchange in exchanges] == [200] * 3
    assert len(owner.requests) == 3


def kind_is(letter: str) -> Callable[[Any], bool]:
    return lambda fields: fields[0] == b"h" and json.loads(fields[1])[5] == letter


@pytest.mark.parametrize("letter", ["Q", "R"])
def test_an_exchange_ends_whose_entries_were_lost(store: Store, pair: Pair, letter: str) -> None:
    """Requests and responses; it is noticed with the next entry, be it that of a tick."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    store.lost = kind_is(letter)
    exchange = asker.post(call(2, "x"), session)
    store.deliver()
    assert taken(exchange) == (0, b"", False)
    store.lost = lambda _: False
    asker.member.tick()
    owner.member.tick()
    store.deliver()
    owner.member.tick()
    store.deliver()
    status, body, is_complete = taken(exchange)
    assert (status, is_complete) == (503, True)
    assert b"is not known" in body
    # What comes later is not concerned, and a request that shows the loss is served itself.
    assert taken_after(store, asker.post(call(3, "x"), session))[0] == 200


def taken_after(store: Store, exchange: Any) -> tuple[int, bytes, bool]:
    store.deliver()
    return taken(exchange)


def test_a_request_that_shows_a_loss_is_served(store: Store, pair: Pair) -> None:
    """After Redis was restarted without its data, the first request must not fail."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    store.lost = lambda _: True
    lost = asker.post(call(2, "x"), session)
    owner.waits = True
    store.lost = lambda _: False
    shown = asker.post(call(3, "x"), session)
    store.deliver()
    assert taken(lost)[0] == 503
    owner.answer(owner.requests[-1])
    assert taken_after(store, shown)[0] == 200


def test_large_bodies_go_in_pieces_and_wait_for_room(store: Store, pair: Pair) -> None:
    """No more than the limit is under way; both ways, and all of it arrives."""
    owner, asker = pair
    session = owner.open()
    text = "y" * (2 * LINK_BYTES)
    exchange = asker.post(call(1, "x", text=text), session)
    sent = sum(len(fields[3]) for fields in store.streams[KEYS.inbox("A" * 12)][1:] if fields[3:])
    assert sent <= LINK_BYTES + 65_536
    owner.waits = True
    store.deliver()
    assert owner.requests[-1].params["arguments"]["text"] == text
    owner.answer(owner.requests[-1], text)
    status, body, is_complete = taken_after(store, exchange)
    assert (status, is_complete) == (200, True)
    assert text.encode() in body


def test_a_client_that_does_not_read_holds_up_its_own_exchange(store: Store, pair: Pair) -> None:
    """The rest waits at the owner, where the limits on unsent output are; then it goes on."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    slow = asker.post(call(1, "x"), session)
    store.deliver()
    request = owner.requests[-1]
    for step in range(100):
        owner.endpoint.send_progress(request, step + 1, message="z" * 10_000)
        owner.turn()
        store.deliver()
    assert slow.held_bytes < 400_000
    owner.waits = False
    assert taken_after(store, asker.post(call(2, "x"), session))[0] == 200
    owner.waits = True
    body = b""
    for _ in range(20):
        body += taken(slow)[1]
        asker.turn()
        store.deliver()
    assert body.count(b'"progress":') == 100
    owner.answer(request)
    assert taken_after(store, slow)[2]


def test_the_owner_learns_that_a_client_is_gone(store: Store, pair: Pair) -> None:
    """Its exchange there ends, as if the client had been its own."""
    owner, asker = pair
    session = owner.open()
    stream = asker.get(session)
    store.deliver()
    assert taken(stream)[0] == 200
    assert owner.wires
    stream.receive_disconnect(now=store.now)
    asker.turn()
    store.deliver()
    assert not owner.wires


def test_a_worker_without_a_lease_is_dead(store: Store, pair: Pair) -> None:
    """Both sides of its exchanges end; but not while leases cannot be there yet."""
    owner, asker = pair
    owner.waits = True
    session, other = owner.open(), asker.open()
    served = asker.post(call(1, "x"), session)
    stream = owner.get(other)
    store.deliver()
    assert taken(stream)[0] == 200
    store.leases.discard(KEYS.lease("A" * 12))
    asker.member.went_away()
    asker.member.came_back(0.0)
    asker.member.tick()
    assert taken(served)[0] == 0
    unsure = asker.post(call(2, "x"), session)
    assert taken(unsure)[0] == 503
    store.now += LEASE
    asker.member.tick()
    assert taken(served)[0] == 503
    assert not asker.wires
    assert taken(asker.post(call(3, "x"), session))[0] == 404


def test_a_worker_that_has_no_stream_is_dead(store: Store, pair: Pair) -> None:
    """What was not sent to anyone was not served: the client may open another session."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    del store.streams[KEYS.inbox("A" * 12)]
    assert taken(asker.post(call(2, "x"), session))[0] == 404


def test_what_has_failed_meanwhile_is_not_served(store: Store, pair: Pair) -> None:
    """A worker that was paused reads first all that was sent to it."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    first = asker.post(call(2, "x"), session)
    store.leases.discard(KEYS.lease("A" * 12))
    store.now += LEASE
    asker.member.tick()
    assert taken(first)[0] == 503
    inbox = store.streams[KEYS.inbox("A" * 12)]
    entries, inbox[:] = inbox[:], []
    owner.member.receive(entries[:1])  # the request, and not yet that it has ended
    inbox[:0] = entries[1:]
    store.deliver()
    assert len(owner.requests) == 1
    store.leases.add(KEYS.lease("A" * 12))
    assert taken_after(store, asker.post(call(3, "x"), session))[0] == 200


def test_a_worker_that_leaves_says_so(store: Store, pair: Pair) -> None:
    """Its peers need not wait until its lease has ended."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    exchange = asker.post(call(1, "x"), session)
    store.deliver()
    owner.member.leave()
    assert KEYS.lease("A" * 12) not in store.leases  # before it tells them
    store.deliver()
    assert taken(exchange)[0] == 503
    assert taken(asker.post(call(2, "x"), session))[0] == 404


def test_requests_fail_while_redis_is_away(store: Store, pair: Pair) -> None:
    """At once where they need it; those under way after the time of a lease."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    exchange = asker.post(call(1, "x"), session)
    store.deliver()
    asker.member.went_away()
    assert taken(asker.post(call(2, "x"), session))[0] == 503
    asker.member.tick()
    assert taken(exchange)[0] == 0
    store.now += LEASE
    asker.member.tick()
    assert taken(exchange)[0] == 503


def test_a_session_is_found_by_its_principal_only(store: Store, pair: Pair) -> None:
    """By its key: at its worker, and by way of another one."""
    owner, asker = pair
    session = owner.open("ann")
    for host in (owner, asker):
        for who, status in (("ann", 200), ("bob", 404), (None, 404)):
            assert taken_after(store, host.post(call(1, "x"), session, who))[0] == status


def test_a_handler_sees_the_principal_of_its_request(store: Store, pair: Pair) -> None:
    """Not the one that has opened the session, who may have had other rights."""
    owner, asker = pair
    session = owner.open("ann may-write")
    for host in (owner, asker):
        assert taken_after(store, host.post(call(1, "x"), session, "ann may-read"))[0] == 200
        assert owner.requests[-1].principal == "ann may-read"
        assert owner.requests[-1].principal_key == "ann"


class User:
    """A principal that is no JSON value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


def loaded(value: Any) -> User:
    """The user of a value, unless there is none any more."""
    if value == "gone":
        raise LookupError("there is no such user")
    return User(value)


def test_principals_are_carried_by_functions_of_the_application(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Where one of them fails, that request alone fails."""
    principals = Principals(str, loaded)
    owner, asker = Host(store, "A" * 12, principals), Host(store, "B" * 12, principals)
    session = owner.open(User("ann may-write"))
    exchange = asker.post(call(1, "x"), session, User("ann may-read"))
    assert taken_after(store, exchange)[0] == 200
    assert owner.requests[-1].principal.name == "ann may-read"
    exchange = asker.post(call(2, "x"), session, User("gone"))
    assert taken_after(store, exchange)[0] == 503
    assert "there is no such user" in caplog.text
    assert taken_after(store, asker.post(call(3, "x"), session, User("ann")))[0] == 200


@pytest.mark.parametrize("who", [User("ann"), ("a", "tuple"), {1: "key"}, {"deep": [b"bytes"]}])
def test_a_principal_that_cannot_be_carried_is_refused_at_once(
    store: Store, pair: Pair, who: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """When it opens a session, and not when a request of it reaches another worker by chance."""
    owner, asker = pair
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "client", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    assert owner.post(message, who=who).response()[0] == 500
    assert "give Cluster(dump_principal=, load_principal=)" in caplog.text
    session = owner.open({"name": "ann", "scopes": ["read"], "n": 1.5, "more": [True, None]})
    assert taken_after(store, asker.post(call(1, "x"), session, who))[0] == 500


def test_only_headers_that_are_needed_are_carried(store: Store, pair: Pair) -> None:
    """No credentials, in whichever header a proxy has put them."""
    owner, asker = pair
    session = owner.open()
    more = {
        **{"authorization": "secret", "cookie": "secret", "x_api_key": "secret"},
        **{"x_tenant": "one", "mcp_param_a": "two", "traceparent": "three"},
    }
    exchange = asker.post(call(1, "x"), session, **more)
    assert b"secret" not in b"".join(store.streams[KEYS.inbox("A" * 12)][-1])
    assert taken_after(store, exchange)[0] == 200
    headers = owner.requests[-1].context[2]
    assert (headers[b"x-tenant"], headers[b"mcp-param-a"]) == (b"one", b"two")
    assert headers[b"traceparent"] == b"three"


BASE: Final = '"BBBBBBBBBBBB",1,1,0,0'
FOREIGN: Final = [
    *("5", "[1]", "{}", "[" * 100_000, f"[{BASE}]", f'[{BASE},"?"]', f"[{BASE},[]]"),
    *('["A",1,1,0,0,"Z"]', '[null,1,1,0,0,"Z"]', '["AAAAAAAAAAAA",1,1,0,0,"Z"]'),
    *('["BBBBBBBBBBBB",1,-1,0,0,"Z"]', '["BBBBBBBBBBBB",1,true,0,0,"Z"]'),
    *(f'[{BASE},"Z",1]', f'[{BASE},"G"]', f'[{BASE},"G","1"]', f'[{BASE},"F",1,2,0]'),
    *(f'[{BASE},"R",1,0,99,[]]', f'[{BASE},"R",1,0,200,{{}}]', f'[{BASE},"R",1,0,200,[1]]'),
    *(f'[{BASE},"R",1,0,200,[["a"]]]', f'[{BASE},"R",1,0,200,[["a","\u0100"]]]'),
    f'[{BASE},"Q",1,0,"s","POST","/",[["a",1]],null,null]',
    f'[{BASE},"Q",1,0,"s","POST","/",[],1,null]',
]


def test_entries_that_are_not_understood_are_skipped(
    store: Store, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a later version, or of somebody else: each is reported, and the others are served."""
    owner, asker = pair
    session = owner.open()
    inbox = store.streams[KEYS.inbox("A" * 12)]
    inbox += [[b"x", b"y"], *([b"h", head.encode()] for head in FOREIGN)]
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    assert caplog.text.count("not one of this version") == len(FOREIGN) + 1
    changes = [b"nonsense", b"5", b"[" * 100_000, b'["A",["x"],null,null,null]']
    changes.append(b'["A","Nothing",null,null,null]')
    owner.member.changes.receive([[b"c", change] for change in changes])
    assert caplog.text.count("cannot be published") == len(changes)


def test_an_entry_that_cannot_be_handled_ends_its_exchange_alone(
    store: Store, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """A response that is longer than it says, in the middle of others."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    exchanges = [asker.post(call(number, "x"), session) for number in range(2)]
    store.deliver()
    [link] = owner.member.links
    owner.member.send(link, Kind.RESPONSE, (1, 0, 200, [["content-length", "1"]]), b"long")
    owner.answer(owner.requests[-1])
    store.deliver()
    assert [taken(exchange)[0] for exchange in exchanges] == [503, 200]
    assert "cannot be handled" in caplog.text
    assert not asker.endpoint.carried


def test_workers_that_were_not_needed_for_long_are_forgotten(store: Store, pair: Pair) -> None:
    """And may be met again: what each has counted before does not matter."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    for host in pair:
        for _ in range(102):
            host.member.tick()
        assert not tuple(host.member.links)
    assert taken_after(store, asker.post(call(2, "x"), session))[0] == 200
    for _ in range(102):
        asker.member.tick()
    assert taken_after(store, asker.post(call(3, "x"), session))[0] == 200
    assert len(owner.requests) == 3


# ---------------------------------------------------------------------------- Redis away, ends


def test_a_request_that_was_not_sent_is_not_served_after_it_has_failed(
    store: Store, pair: Pair
) -> None:
    """Its client was told to try again: it would be served twice."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    store.is_away = True
    unsent = [asker.post(call(2, "x"), session), asker.post(call(3, "x"), session)]
    unsent[1].receive_disconnect(now=store.now)
    asker.turn()
    asker.member.went_away()
    asker.member.tick()
    assert taken(unsent[0])[0] == 0  # a short pause is a delay
    store.now += LEASE
    asker.member.tick()
    status, headers, _ = unsent[0].response()
    assert (status, dict(headers)[b"retry-after"]) == (503, b"5")
    store.come_back()
    asker.member.came_back(0.0)
    store.deliver()
    assert len(owner.requests) == 1
    [link] = owner.member.links
    assert not link.carried_in
    assert taken_after(store, asker.post(call(4, "x"), session))[0] == 200


def test_a_request_that_was_sent_is_not_to_be_sent_again(store: Store, pair: Pair) -> None:
    """It may have been served, so there is no Retry-After."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    exchange = asker.post(call(1, "x"), session)
    store.deliver()
    asker.member.went_away()
    store.now += LEASE
    asker.member.tick()
    status, headers, body = exchange.response()
    assert (status, b"is not known" in body) == (503, True)
    assert b"retry-after" not in dict(headers)


def test_entries_are_held_after_redis_was_away(store: Store, pair: Pair) -> None:
    """A request that waited in Redis may have been ended by its worker since."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    owner.member.went_away()
    exchange = asker.post(call(2, "x"), session)
    exchange.receive_disconnect(now=store.now)
    asker.turn()
    inbox = store.streams[KEYS.inbox("A" * 12)]
    entries, inbox[:] = inbox[:], []
    owner.member.came_back(0.0)
    owner.member.receive(entries[:1])  # the request, and not yet that its client is gone
    inbox[:0] = entries[1:]
    store.deliver()
    assert len(owner.requests) == 1


def test_a_lookup_fails_while_redis_is_away(store: Store, pair: Pair) -> None:
    """At once, and not when Redis is back: its client waits."""
    owner, asker = pair
    session = owner.open()
    store.is_away = True
    exchange = asker.post(call(1, "x"), session)
    status, headers, _ = exchange.response()
    assert (status, dict(headers)[b"retry-after"]) == (503, b"5")


def test_a_worker_that_ends_takes_no_new_requests(store: Store, pair: Pair) -> None:
    """From the beginning of its end; what belongs to calls under way is let in."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    running = asker.post(call(1, "x"), session)
    store.deliver()
    owner.member.drain()
    for message in (call(2, "x"), [call(3, "x")]):
        exchange = asker.post(message, session)
        store.deliver()
        status, headers, body = exchange.response()
        assert (status, dict(headers)[b"retry-after"]) == (503, b"5")
        assert b"is being stopped" in body
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    others: list[tuple[Any, int]] = [(cancel, 202), ([], 400)]
    for other, status in others:
        assert taken_after(store, asker.post(other, session))[0] == status
    owner.answer(owner.requests[0])
    assert taken_after(store, running)[0] == 200
    assert len(owner.requests) == 1


def test_requests_that_a_worker_has_not_read_at_its_end_were_not_served(
    store: Store, pair: Pair
) -> None:
    """Their clients may open another session at once: 404, and not an unknown fate."""
    owner, asker = pair
    owner.waits = True
    session = owner.open()
    read = asker.post(call(1, "x"), session)
    store.deliver()
    unread = asker.post(call(2, "x"), session)
    owner.member.leave()
    store.deliver()
    assert taken(read)[0] == 503
    assert taken(unread)[0] == 404
    assert len(owner.requests) == 1
    assert taken(asker.post(call(3, "x"), session))[0] == 404


def test_a_worker_without_a_stream_is_not_trusted_after_a_failure(store: Store, pair: Pair) -> None:
    """The request may have been written before Redis was restarted: nobody knows."""
    owner, asker = pair
    session = owner.open()
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    store.is_away = True
    exchange = asker.post(call(2, "x"), session)
    store.waiting[0].tries = 1  # written, perhaps
    del store.streams[KEYS.inbox("A" * 12)]
    store.come_back()
    status, headers, body = exchange.response()
    assert (status, b"is not known" in body) == (503, True)
    assert b"retry-after" not in dict(headers)


def test_a_worker_as_new_as_redis_takes_no_worker_for_dead(store: Store) -> None:
    """Living ones have had no time to come back: 503, and 404 after a lease."""
    asker = Host(store, "B" * 12, age=1.0)
    session = f"{'A' * 12}.x"
    exchange = asker.post(call(1, "x"), session)
    status, headers, _ = exchange.response()
    assert (status, dict(headers)[b"retry-after"]) == (503, b"5")
    store.now += LEASE - 1.0
    assert taken(asker.post(call(2, "x"), session))[0] == 404


# ---------------------------------------------------------------------------- stored events


def begun(store: Store, pair: Pair, number: int = 3) -> tuple[str, Any, list[str]]:
    """A call at the owner with so many messages, whose stream has broken: the session, the
    request, and the ids of the events."""
    owner, _ = pair
    owner.waits = True
    session = owner.open()
    exchange = owner.post(call(1, "x"), session)
    request = owner.requests[-1]
    for step in range(number):
        owner.endpoint.send_progress(request, step + 1)
    owner.turn()
    text = taken(exchange)[1].decode()
    ids = [line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: ")]
    exchange.receive_disconnect(now=store.now)
    owner.turn()
    return session, request, ids


def progress_in(body: bytes) -> list[int]:
    """The numbers of the progress in a stream."""
    data = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]
    messages = [json.loads(line) for line in data]
    return [one["params"]["progress"] for one in messages if "params" in one]


def test_a_stream_is_resumed_from_redis(store: Store, pair: Pair) -> None:
    """At the owner, and by way of another worker; what follows comes behind."""
    owner, asker = pair
    session, request, ids = begun(store, pair)
    resumed: Any = None
    for host in (owner, asker):
        resumed = host.get(session, last_event_id=ids[-3])
        store.deliver()
        status, body, _ = taken(resumed)
        assert (status, progress_in(body)) == (200, [2, 3])
    owner.answer(request)
    assert taken_after(store, resumed)[2]


def test_events_are_bounded(store: Store, pair: Pair) -> None:
    """The oldest are dropped, which is told to the endpoint."""
    owner, _ = pair
    session, _, ids = begun(store, pair, 150)
    [stream] = [stream for key, stream in store.streams.items() if ":events:" in key]
    assert len(stream) == 151  # what is dropped, Redis drops
    resumed = owner.get(session, last_event_id=ids[-2])
    assert progress_in(taken(resumed)[1]) == [150]


@pytest.mark.parametrize("who", [None, "bob"])
def test_what_was_stored_is_read_after_the_death_of_its_worker(
    store: Store, pair: Pair, who: str | None
) -> None:
    """By its principal, to the end, and once; then the session is gone."""
    _, asker = pair
    session, _, ids = begun(store, pair)
    store.leases.discard(KEYS.lease("A" * 12))
    exchange = asker.endpoint.exchange(
        "GET",
        "/mcp",
        {**HEADERS, "mcp-session-id": session, "last-event-id": ids[-3]},
        principal=who,
        principal_key=who,
        now=store.now,
    )
    exchange.receive_end(now=store.now)
    asker.turn()
    status, body, is_complete = taken(exchange)
    if who is not None:
        assert status == 404
        return
    assert (status, is_complete, progress_in(body)) == (200, True, [2, 3])
    assert taken(asker.get(session, last_event_id=ids[-1]))[0] == 404
    assert taken(asker.get(session))[0] == 404


@pytest.mark.parametrize("how", ["DELETE", "end_session", "close"])
def test_events_end_with_their_session(store: Store, pair: Pair, how: str) -> None:
    """Unless the worker ends: then their client may still come for them."""
    owner, _ = pair
    begun(store, pair)
    session = owner.endpoint.sessions[0]
    if how == "DELETE":
        headers = {**HEADERS, "mcp-session-id": session.id}
        exchange = owner.endpoint.exchange("DELETE", "/mcp", headers, now=store.now)
        exchange.receive_end(now=store.now)
    elif how == "end_session":
        owner.endpoint.end_session(session, now=store.now)
    else:
        owner.member.drain()
        owner.endpoint.close(now=store.now)
    owner.turn()
    left = [key for key in store.streams if ":events:" in key]
    assert len(left) == (1 if how == "close" else 0)


def test_events_are_read_page_by_page(store: Store) -> None:
    """The thread that renews the lease reads them: it must not wait for all of a session."""
    owner = Host(store, "A" * 12, max_events=1_000, max_bytes=1_000_000)
    asker = Host(store, "B" * 12, max_bytes=1_000_000)
    session, _, ids = begun(store, (owner, asker), 100)
    begun_again = owner.post(call(2, "y"), session)
    request = owner.requests[-1]
    for step in range(200):
        owner.endpoint.send_progress(request, step + 1)
    owner.turn()
    text = taken(begun_again)[1].decode()
    begun_again.receive_disconnect(now=store.now)
    owner.turn()
    first = next(line for line in text.splitlines() if line.startswith("id: "))[4:]
    asked: list[int] = []
    store.asked = asked.append
    for last, steps in ((first, 200), (ids[0], 100)):
        resumed = owner.get(session, last_event_id=last)
        body = b""
        while piece := taken(resumed)[1]:
            body += piece
            owner.turn()
        assert progress_in(body) == list(range(1, steps + 1))
        resumed.receive_disconnect(now=store.now)
        owner.turn()
    assert max(asked) <= 64
    assert len(asked) <= 10  # in pages that follow each other, and not from the beginning for each
    owner.member.drain()
    owner.endpoint.close(now=store.now)
    owner.turn()
    store.leases.discard(KEYS.lease("A" * 12))
    status, body, is_complete = taken(asker.get(session, last_event_id=first))
    assert (status, is_complete) == (200, True)
    assert progress_in(body) == list(range(1, 201))
    small = Host(store, "C" * 12, max_bytes=2_000)  # the client comes again for the rest
    found = progress_in(taken(small.get(session, last_event_id=first))[1])
    assert found == list(range(1, len(found) + 1))
    assert 5 < len(found) < 50


def test_what_is_no_event_is_skipped(
    store: Store, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody has written to Redis: the client gets the others."""
    owner, _ = pair
    session, _, ids = begun(store, pair)
    [stream] = [stream for key, stream in store.streams.items() if ":events:" in key]
    stream[1:1] = [[b"x", b"y"], [b"s", b"one", b"e", b"2", b"m", b"{}"]]
    resumed = owner.get(session, last_event_id=ids[-3])
    assert progress_in(taken(resumed)[1]) == [2, 3]
    assert "no event of this version" in caplog.text


def test_events_that_cannot_be_stored_are_reported(store: Store, pair: Pair) -> None:
    """Redis is full, or has been away for long: the session goes on."""
    owner, _ = pair
    session, request, ids = begun(store, pair)
    store.refuses = True
    owner.endpoint.send_progress(request, 4)
    owner.turn()
    assert [event.rule for event in owner.reports] == ["OWN-033"]
    resumed = owner.get(session, last_event_id=ids[-1])
    assert taken(resumed)[0] == 503
    store.refuses = False
    store.is_away = True
    owner.endpoint.send_progress(request, 5, message="x" * 10_000_000)
    owner.endpoint.send_progress(request, 6, message="x" * 10_000_000)
    owner.turn()
    owner.member.went_away()
    assert taken(owner.get(session, last_event_id=ids[-1]))[0] == 503


# ---------------------------------------------------------------------------- what else fails


def test_a_lookup_that_fails_is_answered(store: Store, pair: Pair) -> None:
    """Redis went away while it was asked: the client may try again."""
    owner, asker = pair
    session = owner.open()
    store.refuses = True
    assert taken(asker.post(call(1, "x"), session))[0] == 503
    store.refuses = False
    assert taken_after(store, asker.post(call(1, "x"), session))[0] == 200
    store.refuses = True  # entries, too: Redis is full
    exchange = asker.post(call(2, "x"), session)
    asker.member.tick()
    assert taken(exchange)[0] == 503


def test_changes_go_to_all_workers(store: Store, pair: Pair) -> None:
    """But not back to the one that has published them."""
    owner, asker = pair
    for change in (ToolsListChanged(), ResourceUpdated("file:///a")):
        owner.member.changes.publish(change, {"why": "test"})
    entries = store.streams[KEYS.changes]
    assert len(entries) == 2
    for host in pair:
        host.member.changes.receive(entries)
    assert owner.reports == asker.reports == []


def test_changes_that_wait_for_redis_are_bounded(
    store: Store, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """A program may publish for as long as Redis is away."""
    owner, _ = pair
    store.is_away = True
    for _number in range(1_010):
        owner.member.changes.publish(ToolsListChanged(), None)
    assert sum(command.words[0] == "XADD" for command in store.waiting) == 1_000
    assert len(caplog.records) == 1
    store.come_back()
    owner.member.changes.publish(ToolsListChanged(), None)
    assert len(store.streams[KEYS.changes]) == 1_001


def test_no_more_bodies_wait_than_there_is_room_for(store: Store, pair: Pair) -> None:
    """A worker that does not read has the others refuse what is large, and not hold all of it."""
    owner, asker = pair
    session = owner.open()
    text = "y" * 15_000_000
    exchanges = [asker.post(call(number, "x", text=text), session) for number in range(6)]
    statuses = [taken(exchange)[0] for exchange in exchanges]
    assert statuses == [0, 0, 0, 0, 503, 503]
    store.deliver()
    assert len(owner.requests) == 4


def test_a_client_that_leaves_before_its_request_is_sent_costs_nothing(
    store: Store, pair: Pair
) -> None:
    """Parts of the request may be at the owner already."""
    owner, asker = pair
    session = owner.open()
    exchange = asker.post(call(1, "x", text="y" * 3 * LINK_BYTES), session)
    inbox = store.streams[KEYS.inbox("A" * 12)]
    first, inbox[:] = inbox[:2], inbox[2:]
    owner.member.receive(first)
    exchange.receive_disconnect(now=store.now)
    asker.turn()
    store.deliver()
    assert owner.requests == []
    [link] = owner.member.links
    assert not link.carried_in
