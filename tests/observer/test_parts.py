"""Each part of an observer can be made without the others, and does its own work.

Each part is given what it needs: the core, and at most a few parts below it. Nothing here makes an
observer, except the tests of conversations over HTTP, each of which has one.
"""

from typing import Any

import pytest

from sansmcp import LEGACY_REVISIONS, Config, JSONObject, Side
from sansmcp._rules.sending import Breach
from sansmcp._rules.state_tables import Phase
from sansmcp.observer import (
    AnswerMatched,
    BlindCause,
    BlindSpot,
    CancellationMatched,
    DiscoverySeen,
    HandshakeSeen,
    MessageKind,
    MessageSeen,
    Observer,
    RequestUnanswered,
    ViolationSeen,
)
from sansmcp.observer import _http_heads as heads
from sansmcp.observer._cancellations import Cancellations
from sansmcp.observer._handshake import Handshake
from sansmcp.observer._history import ObserverCore, SeenRequest, SideHistory
from sansmcp.observer._http_conversations import HTTPConversation
from sansmcp.observer._input_required import InputRounds
from sansmcp.observer._log_levels import AgreedLogLevel, WantedLogLevels
from sansmcp.observer._modern_tasks import ModernTasks
from sansmcp.observer._notifications import SeenNotifications
from sansmcp.observer._observations import Observations
from sansmcp.observer._progress import SeenProgress
from sansmcp.observer._requests import SeenRequests
from sansmcp.observer._responses import SeenResponses
from sansmcp.observer._stateless import StatelessRequests
from sansmcp.observer._subscriptions import SeenSubscription, SubscribedResources, Subscriptions
from sansmcp.observer._tasks import SeenTasks
from tests.support.modern import envelope
from tests.support.tasks import RELATED

NEWEST = LEGACY_REVISIONS[-1]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ANSWER: JSONObject = {"action": "decline"}
FORM: JSONObject = {"mode": "form", "message": "Who?", "requestedSchema": {}}
QUESTION: JSONObject = {"method": "elicitation/create", "params": FORM}


def core_of(**settings: Any) -> ObserverCore:
    """The shared core, before the first message of a conversation."""
    return ObserverCore(Config(**settings), from_start=True)


def seen(core: ObserverCore) -> list[Any]:
    """Take the observations."""
    taken = list(core.queue)
    core.queue.clear()
    return taken


def broken(core: ObserverCore) -> list[tuple[Side, str]]:
    """Take the observations; return the broken rules, each with its side."""
    return [(event.side, event.rule) for event in seen(core) if isinstance(event, ViolationSeen)]


def next_message(core: ObserverCore) -> None:
    core.number += 1


def sent(sender: SideHistory, core: ObserverCore, method: str, id: int = 1) -> SeenRequest:
    """An open request of a side."""
    next_message(core)
    request = SeenRequest(id, id, method, core.number, core.now)
    sender.used_ids.add(id)
    sender.open[id] = request
    return request


def answered(sender: SideHistory, core: ObserverCore, request: SeenRequest) -> None:
    """Let the other side answer a request."""
    next_message(core)
    request.n_answered += 1
    request.response_place = core.number
    sender.finish(request)


def handshake_of(core: ObserverCore) -> Handshake:
    return Handshake(core, AgreedLogLevel(core), SubscribedResources(core), True)


def agreed(core: ObserverCore, **capabilities: JSONObject) -> Handshake:
    """A finished handshake; the server has these capabilities."""
    handshake = handshake_of(core)
    request = sent(core.client, core, "initialize", 0)
    params = {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "c"}}
    handshake.take_request(core.client, request, params)
    answered(core.client, core, request)
    result = {"protocolVersion": NEWEST, "capabilities": capabilities, "serverInfo": {}}
    handshake.take_result(request, result)
    next_message(core)
    handshake.take_initialized(core.client, None)
    return handshake


def subscriptions_of(core: ObserverCore) -> Subscriptions:
    return Subscriptions(core, ModernTasks(core))


def stateless_of(core: ObserverCore, handshake: Handshake) -> StatelessRequests:
    tasks = ModernTasks(core)
    return StatelessRequests(core, handshake, InputRounds(core), Subscriptions(core, tasks), tasks)


def modern(
    core: ObserverCore, stateless: StatelessRequests, method: str, id: int = 1, **params: Any
) -> SeenRequest:
    """An observed request of 2026-07-28."""
    request = sent(core.client, core, method, id)
    assert stateless.take_request(request, {**params, "_meta": envelope()}, None) is None
    return request


# -------------------------------------------------------------------------- what all parts share


def test_observations_have_number_index_and_time_of_the_message() -> None:
    observations = Observations()
    observations.number, observations.index, observations.now = 3, 1, 2.5

    observations.add_message(Side.CLIENT, MessageKind.REQUEST, "ping", 7, {})
    observations.add_violation(Side.CLIENT, Breach("ID-001", "again"), "ping", 7)

    for event in observations.queue:
        assert isinstance(event, MessageSeen | ViolationSeen)
        assert (event.number, event.index, event.time) == (3, 1, 2.5)


def test_blind_spots_are_told_once_for_each_side() -> None:
    observations = Observations()

    for side in (Side.CLIENT, Side.CLIENT, Side.SERVER):
        observations.add_blind_spot(BlindCause.FORGOTTEN, side, "an id was forgotten")

    spots = [event.side for event in observations.queue if isinstance(event, BlindSpot)]
    assert spots == [Side.CLIENT, Side.SERVER]


def test_a_revision_that_is_not_known_is_judged_by_the_rules_of_all_revisions() -> None:
    observations = Observations()
    observations.unknown_revision = True

    observations.add_violation(Side.CLIENT, Breach("LOG-004", "too detailed"))
    observations.add_violation(Side.CLIENT, Breach("JSON-001", "no version"))

    rules = [event.rule for event in observations.queue if isinstance(event, ViolationSeen)]
    assert rules == ["JSON-001"]


def test_the_history_of_a_side_forgets_its_oldest_requests() -> None:
    core = core_of(max_late_answers=1)
    first, second = (sent(core.client, core, "ping", id) for id in (1, 2))

    answered(core.client, core, first)
    assert core.client.find(1) is first
    answered(core.client, core, second)

    assert core.client.find(1) is None
    assert core.client.find(2) is second
    assert core.client.has_sent(1)
    assert core.client.has_sent(9) is False
    assert [type(event) for event in seen(core)] == [BlindSpot]


# ---------------------------------------------------------------------------- agreements of old


def test_the_handshake_knows_when_each_side_knows_the_agreement() -> None:
    """What each side may send, and what is judged, depends on it."""
    core = core_of()
    handshake = handshake_of(core)
    assert handshake.has_not_begun
    request = sent(core.client, core, "initialize")
    handshake.take_request(core.client, request, {"capabilities": {}})
    answered(core.client, core, request)
    handshake.take_result(request, {"protocolVersion": NEWEST, "capabilities": {"tools": {}}})

    assert handshake.is_agreed
    assert handshake.is_known_to(core.server)
    assert not handshake.is_known_to(core.client)
    handshake.take_initialized(core.client, None)
    assert handshake.is_known_to(core.client)
    assert handshake.conversation.phase is Phase.OPERATING
    [event] = seen(core)
    assert isinstance(event, HandshakeSeen)
    assert event.revision == NEWEST


def test_a_handshake_without_an_understood_result_makes_everything_uncertain() -> None:
    core = core_of()
    level, resources = AgreedLogLevel(core), SubscribedResources(core)
    handshake = Handshake(core, level, resources, True)
    request = sent(core.client, core, "initialize")
    handshake.take_request(core.client, request, {"capabilities": {}})

    handshake.take_result(request, {"protocolVersion": 1})

    assert not handshake.is_certain
    assert not resources.is_certainly_empty


def test_the_agreed_log_level_counts_once_all_requests_are_answered() -> None:
    """The server may serve requests that are open together in any order."""
    core = core_of()
    level = AgreedLogLevel(core)
    first, second = (sent(core.client, core, "logging/setLevel", id) for id in (1, 2))
    level.take_request(core.client, first, {"level": "error"})
    level.take_request(core.client, second, {"level": "warning"})

    level.take_result(first, {})
    assert not level.forbids("debug")
    level.take_result(second, {})

    assert level.forbids("info")
    assert not level.forbids("warning")
    level.take_request(core.client, sent(core.client, core, "logging/setLevel", 3), {"level": 1})
    assert broken(core) == [(Side.CLIENT, "LOG-002")]


def test_a_level_is_permitted_while_a_request_wants_it() -> None:
    levels = WantedLogLevels()
    levels.add(3)

    assert not levels.permit("debug")
    assert levels.permit("critical")
    levels.remove(3)
    assert not levels.permit("critical")


def test_a_resource_is_subscribed_to_until_no_order_of_serving_leaves_it_so() -> None:
    core = core_of()
    resources = SubscribedResources(core)
    uri: JSONObject = {"uri": "file:///a"}
    first = sent(core.client, core, "resources/subscribe", 1)
    resources.take_subscribe(core.client, first, uri)
    crossing = sent(core.client, core, "resources/unsubscribe", 2)
    resources.take_unsubscribe(core.client, crossing, uri)
    resources.take_subscribe_result(first, {})
    resources.take_unsubscribe_result(crossing, {})
    assert not resources.is_certainly_empty

    last = sent(core.client, core, "resources/unsubscribe", 3)
    resources.take_unsubscribe(core.client, last, uri)
    resources.take_unsubscribe_result(last, {})

    assert resources.is_certainly_empty


# --------------------------------------------------------------------------------- 2026-07-28


def test_a_modern_request_declares_what_binds_the_server() -> None:
    core = core_of()
    stateless = stateless_of(core, handshake_of(core))

    request = modern(core, stateless, "server/discover")
    result: JSONObject = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {},
        "ttlMs": 0,
        "cacheScope": "private",
    }
    assert stateless.take_result(request, result) is None

    assert request.terms is not None
    assert core.modern.is_served
    [event] = seen(core)
    assert isinstance(event, DiscoverySeen)


def test_a_bare_request_after_modern_ones_lacks_its_declaration() -> None:
    core = core_of()
    stateless = stateless_of(core, handshake_of(core))
    modern(core, stateless, "server/discover")

    breach = stateless.judge_bare(core.client, sent(core.client, core, "tools/list", 2))

    assert breach is not None
    assert breach.rule == "META-009"


@pytest.mark.parametrize(
    ("retry", "id", "rule"),
    [
        ({"requestState": "s", "inputResponses": {"who": ANSWER}}, 2, None),
        ({"requestState": "s", "inputResponses": {"who": ANSWER}}, 1, "MRTR-025"),
        ({"requestState": "s", "inputResponses": {}}, 2, "MRTR-019"),
        ({"requestState": "s", "inputResponses": {"who": {"action": 1}}}, 2, "MRTR-020"),
        ({"requestState": "other", "inputResponses": {"who": ANSWER}}, 2, None),
    ],
)
def test_a_retry_brings_the_answers_to_a_round(
    retry: JSONObject, id: int, rule: str | None
) -> None:
    """The call and its state alone tell which round a retry belongs to."""
    core = core_of()
    rounds = InputRounds(core)
    tasks = ModernTasks(core)
    stateless = StatelessRequests(
        core, handshake_of(core), rounds, Subscriptions(core, tasks), tasks
    )
    first = sent(core.client, core, "tools/call")
    assert stateless.take_request(first, {"name": "t", "_meta": envelope()}, None) is None
    assert first.terms is not None
    questions = {"inputRequests": {"who": QUESTION}, "requestState": "s"}
    assert rounds.take_result(first, first.terms, questions) is None

    again = SeenRequest(id, id, "tools/call", 9, None)
    breach = rounds.take_request(again, {"name": "t", **retry})

    assert (None if breach is None else breach.rule) == rule


def listening(core: ObserverCore) -> tuple[Subscriptions, SeenRequest]:
    """An open subscription to the list of tools."""
    subscriptions = subscriptions_of(core)
    request = sent(core.client, core, "subscriptions/listen", 4)
    filter: JSONObject = {"toolsListChanged": True}
    assert subscriptions.take_request(request, {"notifications": filter}) is None
    next_message(core)
    return subscriptions, request


def tagged(**params: Any) -> JSONObject:
    return {"_meta": {SUBSCRIPTION: 4}, **params}


def test_a_subscription_is_acknowledged_before_its_changes() -> None:
    core = core_of()
    subscriptions, _ = listening(core)
    changed = "notifications/tools/list_changed"

    assert subscriptions.take_notification(changed, tagged())
    assert broken(core) == [(Side.SERVER, "SUBS-005")]
    acknowledged = "notifications/subscriptions/acknowledged"
    filter: JSONObject = {"toolsListChanged": True}
    assert subscriptions.take_notification(acknowledged, tagged(notifications=filter))
    assert subscriptions.take_notification(changed, tagged())
    assert broken(core) == []
    assert subscriptions.take_notification("notifications/prompts/list_changed", tagged())
    assert broken(core) == [(Side.SERVER, "SUBS-002")]


def test_nothing_comes_for_a_subscription_after_its_end() -> None:
    core = core_of()
    subscriptions, request = listening(core)
    assert isinstance(request.subject, SeenSubscription)

    subscriptions.end(request.subject)
    subscriptions.take_notification("notifications/tools/list_changed", tagged())

    assert broken(core) == [(Side.SERVER, "SUBS-009")]


# ------------------------------------------------------------------------------- one request


@pytest.mark.parametrize(
    ("values", "rules"),
    [([1, 2], []), ([2, 2], ["PROG-003"]), ([3, 1], ["PROG-003"])],
)
def test_progress_of_a_token_increases(values: list[float], rules: list[str]) -> None:
    core = core_of()
    progress = SeenProgress(core, agreed(core))
    progress.take_request(core.client, sent(core.client, core, "ping"), {"progressToken": "t"})
    seen(core)

    for value in values:
        progress.take_notification(core.server, {"progressToken": "t", "progress": value})

    assert broken(core) == [(Side.SERVER, rule) for rule in rules]


def test_progress_needs_a_token_of_the_other_side() -> None:
    core = core_of()
    progress = SeenProgress(core, agreed(core))
    progress.take_request(core.server, sent(core.server, core, "ping"), {"progressToken": "t"})
    seen(core)

    progress.take_notification(core.server, {"progressToken": "t", "progress": 1})

    assert broken(core) == [(Side.SERVER, "PROG-006")]


def test_a_task_keeps_its_token_in_use() -> None:
    core = core_of()
    progress = SeenProgress(core, agreed(core))
    request = sent(core.client, core, "tools/call")
    progress.take_request(core.client, request, {"progressToken": "t"})
    progress.take_task(core.client, request, {"task": {"taskId": "1", "status": "working"}})
    answered(core.client, core, request)
    seen(core)

    related: JSONObject = {"_meta": {RELATED: {"taskId": "1"}}}
    progress.take_notification(core.server, {"progressToken": "t", "progress": 1, **related})
    assert broken(core) == []
    progress.end_tasks(Side.CLIENT, "tasks/get", {"taskId": "1", "status": "completed"})
    progress.take_notification(core.server, {"progressToken": "t", "progress": 2, **related})
    assert broken(core) == [(Side.SERVER, "PROG-012")]


def test_a_cancellation_finds_the_request_of_its_sender() -> None:
    core = core_of()
    cancellations = Cancellations(core, agreed(core), subscriptions_of(core))
    request = sent(core.client, core, "tools/call", 5)
    seen(core)

    cancellations.take_notification(core.client, {"requestId": 5, "reason": "enough"})

    [event] = seen(core)
    assert isinstance(event, CancellationMatched)
    assert (event.request_number, event.reason) == (request.number, "enough")
    assert request.is_cancelled
    cancellations.take_notification(core.server, {"requestId": 5})
    assert broken(core) == [(Side.SERVER, "CANC-001")]


def test_initialize_is_not_cancelled() -> None:
    core = core_of()
    handshake = handshake_of(core)
    request = sent(core.client, core, "initialize")
    handshake.take_request(core.client, request, {"capabilities": {}})

    Cancellations(core, handshake, subscriptions_of(core)).take_notification(
        core.client, {"requestId": 1}
    )

    assert broken(core) == [(Side.CLIENT, "CANC-004")]


# ----------------------------------------------------------------------- the three dispatchers


def requests_of(core: ObserverCore, handshake: Handshake) -> SeenRequests:
    return SeenRequests(
        core,
        handshake,
        SeenProgress(core, handshake),
        stateless_of(core, handshake),
        AgreedLogLevel(core),
        SubscribedResources(core),
        SeenTasks(core),
    )


def responses_of(core: ObserverCore, handshake: Handshake) -> SeenResponses:
    return SeenResponses(
        core,
        handshake,
        SeenProgress(core, handshake),
        stateless_of(core, handshake),
        AgreedLogLevel(core),
        SubscribedResources(core),
        SeenTasks(core),
    )


def notifications_of(core: ObserverCore, handshake: Handshake) -> SeenNotifications:
    subscriptions = subscriptions_of(core)
    return SeenNotifications(
        core,
        handshake,
        SeenProgress(core, handshake),
        Cancellations(core, handshake, subscriptions),
        subscriptions,
        StatelessRequests(core, handshake, InputRounds(core), subscriptions, ModernTasks(core)),
        AgreedLogLevel(core),
        SubscribedResources(core),
        SeenTasks(core),
    )


def test_requests_are_remembered_and_their_ids_too() -> None:
    core = core_of()
    requests = requests_of(core, agreed(core, tools={}))
    seen(core)
    message: JSONObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    requests.take(core.client, {**message, "params": {}}, "tools/list")
    assert core.client.open[1].method == "tools/list"
    assert broken(core) == []
    answered(core.client, core, core.client.open[1])
    requests.take(core.client, {**message, "params": {}}, "tools/list")

    assert broken(core) == [(Side.CLIENT, "ID-001")]


def test_requests_need_the_capability_of_the_other_side() -> None:
    core = core_of()
    requests = requests_of(core, agreed(core))
    seen(core)

    requests.take(
        core.client,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
        "tools/list",
    )

    assert broken(core) == [(Side.CLIENT, "CAP-002")]


def test_responses_find_their_request() -> None:
    core = core_of()
    responses = responses_of(core, agreed(core))
    request = sent(core.client, core, "ping")
    seen(core)

    responses.take(core.server, {"jsonrpc": "2.0", "id": 1, "result": {}}, 1)
    responses.take(core.server, {"jsonrpc": "2.0", "id": 8, "result": {}}, 8)

    assert not request.is_open
    [message, matched, other, fault] = seen(core)
    assert (message.method, other.method) == ("ping", None)
    assert isinstance(matched, AnswerMatched)
    assert isinstance(fault, ViolationSeen)
    assert fault.rule == "JSON-004"


def test_a_response_with_an_id_of_another_type_is_told_from_one_without_a_request() -> None:
    core = core_of()
    responses = responses_of(core, agreed(core))
    sent(core.client, core, "ping")
    seen(core)

    responses.take(core.server, {"jsonrpc": "2.0", "id": "1", "result": {}}, "1")

    [fault] = [event for event in seen(core) if isinstance(event, ViolationSeen)]
    assert "the id '1' instead of 1" in fault.text


def test_notifications_go_to_the_part_that_takes_them() -> None:
    core = core_of()
    notifications = notifications_of(core, agreed(core))
    request = sent(core.client, core, "ping", 5)
    seen(core)

    cancelled = "notifications/cancelled"
    message: JSONObject = {"jsonrpc": "2.0", "method": cancelled, "params": {"requestId": 5}}
    notifications.take(core.client, message, cancelled)

    assert request.is_cancelled
    assert [type(event) for event in seen(core)] == [MessageSeen, CancellationMatched]


def test_updates_need_a_subscription() -> None:
    core = core_of()
    notifications = notifications_of(core, agreed(core, resources={"subscribe": True}))
    seen(core)
    updated = "notifications/resources/updated"
    params: JSONObject = {"uri": "file:///a"}

    notifications.take(
        core.server, {"jsonrpc": "2.0", "method": updated, "params": params}, updated
    )

    assert broken(core) == [(Side.SERVER, "RES-008")]


# ---------------------------------------------------------------------------------------- HTTP


def test_a_conversation_over_http_counts_messages_among_all_that_pass() -> None:
    conversation = HTTPConversation(Observer())
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    [message] = conversation.take(Side.CLIENT, ping, 41, None, status=0)
    [ended] = conversation.close(None, is_cancelled=True)

    assert isinstance(message, MessageSeen)
    assert message.number == 41
    assert isinstance(ended, RequestUnanswered)
    assert (ended.request_number, ended.cancelled) == (41, True)


@pytest.mark.parametrize(("is_old", "rule"), [(False, "HTTP-018"), (True, "HSSE-004")])
def test_a_conversation_names_the_rule_of_its_transport(is_old: bool, rule: str) -> None:
    conversation = HTTPConversation(Observer(), is_old=is_old)

    events = list(conversation.take(Side.SERVER, b"Internal error\r\n", 3, None, status=200))

    assert [event.rule for event in events if isinstance(event, ViolationSeen)] == [rule]


def test_heads_are_judged_without_a_conversation() -> None:
    fields = heads.fields_of([(b"Accept", b"application/json"), (b"X", b"1"), (b"x", b"2")])

    assert fields["x"] == "1, 2"
    assert [rule for rule, _ in heads.judge_post(fields)] == ["HTTP-009"]
    assert [rule for rule, _ in heads.judge_get(fields)] == ["HTTP-021"]
