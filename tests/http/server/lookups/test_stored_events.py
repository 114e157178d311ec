"""Streams whose events the application stores, and gives back to a client that resumes."""

from typing import Any

import pytest

from sansmcp import Config, FailureReason, LimitReached, LocalProtocolError, RequestFailed
from sansmcp.http import (
    EventToStore,
    LookupEnd,
    LookupEnded,
    ReplayWanted,
    ServerExchange,
    SessionEnded,
)
from tests.support.http.lookups import Store, ends, one
from tests.support.http.server_endpoint import (
    Client,
    Response,
    answer,
    client,
    drain,
    more,
    of,
    open_stream,
    progressing,
    sessions,
    take,
)
from tests.support.wire import note


def stored(**settings: Any) -> Client:
    """A client with a session whose events the application stores."""
    return client(sessions=sessions(event_log="ask"), **settings)


def broken_stream(one: Client, n_events: int = 3) -> tuple[Store, Any, str]:
    """A stream that has lost its connection: the store, the request, the id of its first event."""
    store = Store(one.endpoint)
    exchange, handle = one.asked(progressing())
    one.endpoint.send_progress(handle, 0)
    first = answer(exchange).ids[0]
    exchange.receive_disconnect()
    for number in range(1, n_events):
        one.endpoint.send_progress(handle, number)
    store.serve()
    return store, handle, first


def resume(one: Client, last: str) -> ServerExchange:
    return one.get({"last-event-id": last})


def numbers(response: Response) -> list[int]:
    return [message["params"]["progress"] for message in response.messages]


def test_events_go_out_to_be_stored() -> None:
    """Each event must be given to the store once, in order, with the id to resume from."""
    user = stored()
    exchange, handle = user.asked(progressing())
    user.endpoint.send_progress(handle, 1)
    events = of(EventToStore, drain(user.endpoint))

    assert [(event.stream, event.event, event.message[:1]) for event in events] == [
        (2, 1, b""),
        (2, 2, b"{"),
    ]
    assert {event.session for event in events} == {user.session}
    assert user.endpoint.open_questions == ()
    assert len(answer(exchange).ids) == 2


def test_a_stream_is_resumed_from_what_was_stored() -> None:
    """The response must begin when the store has answered, and go on with new events."""
    user = stored()
    store, handle, first = broken_stream(user)
    exchange = resume(user, first)
    question = one(ReplayWanted, user.endpoint)
    assert (question.session, question.stream, question.after) == (user.session, 2, 1)
    assert question.exchange is exchange
    assert exchange.next_output() is None
    assert not exchange.has_output
    assert store.answer(question)

    before = answer(exchange)
    assert numbers(before) == [0, 1, 2]
    user.endpoint.send_progress(handle, 3)
    user.endpoint.send_result(handle, {"content": []})
    rest = more(exchange, before)
    assert [event.id[-1] for event in rest.events] == ["5", "6"]
    assert rest.ended
    with pytest.raises(LocalProtocolError, match="answered already"):
        user.endpoint.replay(question, [])


def test_messages_that_come_meanwhile_follow_what_is_replayed() -> None:
    """Events must be sent in the order of their ids, however long the store takes."""
    user = stored()
    store, handle, first = broken_stream(user)
    exchange = resume(user, first)
    question = one(ReplayWanted, user.endpoint)
    user.endpoint.send_progress(handle, 3)
    user.endpoint.send_result(handle, {"content": []})
    assert store.answer(question)
    before = answer(exchange)
    assert numbers(before) == [0, 1, 2]
    assert not before.ended
    assert store.serve() == []

    rest = more(exchange, before)
    assert [event.id[-1] for event in rest.events] == ["5", "6"]
    assert rest.ended


def test_nothing_is_asked_twice_while_the_store_looks() -> None:
    """A transport may look for output at any time, which must not repeat the question."""
    user = stored()
    store, _, first = broken_stream(user)
    store.portion = 1
    exchange = resume(user, first)
    assert store.serve() == []
    response = answer(exchange)
    for _ in range(3):
        assert exchange.next_output() is None
    assert len(user.endpoint.open_questions) == 1
    assert user.endpoint.ready() in ([], [exchange])
    while store.serve() == [] and exchange.has_output:
        response = more(exchange, response)

    assert store.replays == 3
    assert not exchange.ended


def test_a_store_gives_portions() -> None:
    """The next portion must be asked for when the one before was taken."""
    user = stored()
    store, handle, first = broken_stream(user, 10)
    user.endpoint.send_result(handle, {"content": []})
    store.serve()
    store.portion = 4
    exchange = resume(user, first)
    store.serve()
    assert store.replays == 1
    first_part = answer(exchange)
    assert numbers(first_part) == [0, 1, 2, 3]
    store.serve()
    assert numbers(more(exchange, first_part)) == [4, 5, 6, 7]
    store.serve()
    last = more(exchange, first_part)

    assert [message.get("id") for message in last.messages] == [None, None, 1]
    assert last.ended
    assert store.replays == 3


def test_whole_responses_are_composed_of_portions() -> None:
    """Some callers can send a response only as a whole."""
    user = stored()
    store, handle, first = broken_stream(user, 10)
    user.endpoint.send_result(handle, {"content": []})
    store.serve()
    store.portion = 4
    exchange = resume(user, first)
    for _ in range(3):
        assert exchange.response() is None
        assert exchange.response() is None
        store.serve()

    whole = exchange.response()
    assert whole is not None
    assert whole[2].count(b"data: {") == 11
    assert exchange.response() is whole


def test_a_stream_that_is_over_and_unknown_is_refused() -> None:
    """If the store does not know a finished stream, the client must be refused."""
    user = stored()
    store, handle, first = broken_stream(user)
    user.endpoint.send_result(handle, {"content": []})
    store.serve()
    store.events.clear()
    exchange = resume(user, first)
    store.serve()
    assert answer(exchange).status == 400
    never = resume(user, first.replace("-2-", "-98-"))
    assert answer(never).status == 400

    assert not of(ReplayWanted, drain(user.endpoint))
    assert user.session.open


def test_events_that_the_store_has_lost_are_reported() -> None:
    """The stream must go on, and the lost events be reported."""
    user = stored()
    store, handle, first = broken_stream(user, 5)
    stream = store.events[user.session, 2]
    del stream[2], stream[3], stream[6]
    exchange = resume(user, first)
    (report,) = of(LimitReached, store.serve())

    assert report.rule == "OWN-033"
    assert "has lost 3 of the events" in report.text
    before = answer(exchange)
    assert numbers(before) == [2, 3]
    user.endpoint.send_progress(handle, 9)
    assert numbers(more(exchange, before)) == [9]


def test_a_store_that_knows_nothing_of_an_open_stream_loses_its_events() -> None:
    """An open stream must be resumed although the store has lost its events."""
    user = stored()
    store, handle, first = broken_stream(user)
    store.events.clear()
    exchange = resume(user, first)
    (report,) = of(LimitReached, store.serve())
    before = answer(exchange)
    user.endpoint.send_progress(handle, 9)

    assert "has lost 3" in report.text
    assert (before.status, numbers(more(exchange, before))) == (200, [9])


def test_an_empty_answer_is_asked_again_for_what_came_meanwhile() -> None:
    """Events that came during an empty answer must be asked for again."""
    user = stored()
    store, handle, first = broken_stream(user, 1)
    last = first[:-1] + "2"
    exchange, _ = resume(user, last), drain(user.endpoint)
    user.endpoint.send_progress(handle, 1)
    drain(user.endpoint)
    user.endpoint.close_stream(handle)
    first_try = resume(user, last)
    question = one(ReplayWanted, user.endpoint)
    user.endpoint.send_progress(handle, 2)
    assert user.endpoint.replay(question, [])
    again = [event for event in drain(user.endpoint) if isinstance(event, ReplayWanted)]

    assert [event.after for event in again] == [3]
    assert exchange.ended
    assert answer(first_try).status == 200
    assert store.endpoint is user.endpoint


def test_a_failed_replay_is_answered_and_the_stream_stays() -> None:
    """The client must be able to retry without losing events."""
    user = stored()
    store, _, first = broken_stream(user)
    exchange = resume(user, first)
    question = one(ReplayWanted, user.endpoint)
    assert not exchange.refuse(403, "no"), "it is being served"
    assert user.endpoint.fail_lookup(question, status=503, retry_after=1)
    response = answer(exchange)
    assert (response.status, response.headers["retry-after"]) == (503, "1")
    assert ends(user.endpoint) == [LookupEnd.FAILED]
    again = resume(user, first)
    store.serve()

    assert numbers(answer(again)) == [0, 1, 2]


def test_a_failed_portion_ends_the_response() -> None:
    """The response must end, so that the client resumes for the rest."""
    user = stored()
    store, _, first = broken_stream(user)
    store.portion = 1
    exchange = resume(user, first)
    store.serve()
    assert numbers(answer(exchange)) == [0]
    question = one(ReplayWanted, user.endpoint)
    assert user.endpoint.fail_lookup(question)

    assert exchange.next_output() is not None
    assert exchange.ended
    assert user.session.open


def test_a_newer_connection_takes_the_stream_over() -> None:
    """The question for the older connection must be cancelled."""
    user = stored()
    store, _, first = broken_stream(user)
    older = resume(user, first)
    (question,) = of(ReplayWanted, drain(user.endpoint))
    newer = resume(user, first)
    others = store.serve()

    assert [type(event) for event in others] == [LookupEnded]
    assert not user.endpoint.replay(question, [])
    assert (answer(older).messages, older.ended) == ([], True)
    assert numbers(answer(newer)) == [0, 1, 2]


def test_a_client_that_leaves_comes_back() -> None:
    """Events that were not read must be there for the next connection."""
    user = stored()
    store, _, first = broken_stream(user)
    exchange = resume(user, first)
    (question,) = of(ReplayWanted, drain(user.endpoint))
    exchange.receive_disconnect()
    assert ends(user.endpoint) == [LookupEnd.DISCONNECTED]
    assert not store.answer(question)
    again = resume(user, first)
    store.serve()

    assert numbers(answer(again)) == [0, 1, 2]


def test_a_client_that_leaves_before_the_rest_of_a_finished_stream_is_gone() -> None:
    """After the disconnect no further portion may be asked for."""
    user = stored()
    store, handle, first = broken_stream(user)
    user.endpoint.send_result(handle, {"content": []})
    store.serve()
    exchange = resume(user, first)
    (question,) = of(ReplayWanted, drain(user.endpoint))
    exchange.receive_disconnect()

    assert exchange.next_output() is None
    assert not user.endpoint.replay(question, [])
    assert user.endpoint.open_questions == ()


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_session_that_ends_ends_what_waits(is_answered: bool) -> None:
    """Questions about a session that has ended must be cancelled."""
    user = stored()
    store, handle, first = broken_stream(user)
    if is_answered:
        user.endpoint.send_result(handle, {"content": []})
        store.serve()
    exchange = resume(user, first)
    (question,) = of(ReplayWanted, drain(user.endpoint))
    user.endpoint.end_session(user.session)
    kinds = [type(event) for event in drain(user.endpoint)]

    assert SessionEnded in kinds
    assert kinds.count(LookupEnded) == 1
    assert exchange.ended
    assert answer(exchange).ended
    assert not user.endpoint.replay(question, [])
    assert user.endpoint.open_questions == ()


def test_a_closed_endpoint_answers_who_waits() -> None:
    """A request that waits for a replay must get a whole response."""
    user = stored()
    _, _, first = broken_stream(user)
    exchange = resume(user, first)
    user.endpoint.close()

    assert answer(exchange).status == 503
    assert ends(user.endpoint) == [LookupEnd.CLOSED]
    assert user.endpoint.open_questions == ()


def test_a_closed_endpoint_ends_a_replay_that_has_begun() -> None:
    """The head was sent, so only the stream can be ended."""
    user = stored()
    store, _, first = broken_stream(user)
    store.portion = 1
    exchange = resume(user, first)
    store.serve()
    before = answer(exchange)
    user.endpoint.close()

    assert more(exchange, before).ended
    assert ends(user.endpoint) == [LookupEnd.CLOSED]


def test_get_streams_have_what_was_never_sent() -> None:
    """A new GET stream without an event id must get the events that were never sent."""
    user = stored()
    store = Store(user.endpoint)
    exchange, _ = open_stream(user)
    exchange.receive_disconnect()
    for number in range(3):
        user.endpoint.send_notification(f"x/{number}", session=user.session)
    store.serve()
    again = user.get()
    assert take(again) is None
    store.serve()

    assert answer(again).messages == [note(f"x/{number}") for number in range(3)]


def test_several_streams_follow_each_other_in_one_response() -> None:
    """The order must be the same as with events in memory."""
    user = stored()
    store = Store(user.endpoint)
    exchanges = [open_stream(user)[0] for _ in range(3)]
    for number, exchange in enumerate(reversed(exchanges)):
        user.endpoint.send_notification(f"x/{number}", session=user.session)
        exchange.receive_disconnect()
    store.serve()
    again = user.get()
    response = None
    for _ in range(8):
        store.serve()
        response = take(again) if response is None else more(again, response)

    assert user.endpoint.open_questions == ()
    user.endpoint.send_notification("x/last", session=user.session)
    assert response is not None
    assert more(again, response).messages == [note("x/last")]


def test_requests_of_the_server_wait_in_the_store() -> None:
    """A request must end when its event is lost, and not before."""
    user = stored()
    asked, lost, failed = [
        user.endpoint.send_request("roots/list", session=user.session) for _ in range(3)
    ]
    events = of(EventToStore, drain(user.endpoint))
    assert asked.open
    assert user.endpoint.store_failed(events[-1], "the disk is full")
    assert user.endpoint.store_dropped(user.session, 2)

    reports = drain(user.endpoint)
    ended = of(RequestFailed, reports)
    assert [event.request for event in ended] == [failed, asked, lost]
    assert {event.reason for event in ended} == {FailureReason.NO_STREAM}
    texts = [event.text for event in of(LimitReached, reports)]
    assert "the disk is full" in texts[0]
    assert "its oldest events were dropped" in texts[1]


def test_what_was_read_is_not_lost_with_the_store() -> None:
    """A request that its client has received may still be answered."""
    user = stored()
    store = Store(user.endpoint)
    waiting = user.endpoint.send_request("roots/list", session=user.session)
    (event,) = of(EventToStore, drain(user.endpoint))
    store.keep(event)
    exchange = user.get()
    store.serve()
    assert [message["id"] for message in answer(exchange).messages] == [waiting.id]
    assert user.endpoint.store_failed(event, "it is away")

    assert waiting.open
    assert [report.rule for report in of(LimitReached, drain(user.endpoint))] == ["OWN-033"]


def test_a_session_that_is_over_needs_no_store() -> None:
    """Answers of the store about an ended session must have no effect."""
    user = stored()
    user.endpoint.send_notification("x/y", session=user.session)
    (event,) = of(EventToStore, drain(user.endpoint))
    other = stored()
    with pytest.raises(LocalProtocolError, match="another endpoint"):
        other.endpoint.store_failed(event, "no")
    with pytest.raises(ValueError, match="count"):
        user.endpoint.store_dropped(user.session, 0)
    user.endpoint.end_session(user.session)

    assert not user.endpoint.store_failed(event, "no")
    assert not user.endpoint.store_dropped(user.session, 1)


def test_an_answer_that_is_none_changes_nothing() -> None:
    """After an invalid answer the question must still be open."""
    user = stored()
    _, _, first = broken_stream(user)
    resume(user, first)
    question = one(ReplayWanted, user.endpoint)
    wrong: Any = user.session
    with pytest.raises(LocalProtocolError, match="does not follow"):
        user.endpoint.replay(question, [(1, b"{}")])
    text: Any = "{}"
    with pytest.raises(LocalProtocolError, match="the bytes of its message, not int and str"):
        user.endpoint.replay(question, [(9, text)])
    with pytest.raises(LocalProtocolError, match="needs events"):
        user.endpoint.replay(question, [], more=True)
    with pytest.raises(LocalProtocolError, match="is no ReplayWanted"):
        user.endpoint.replay(wrong, [])

    assert user.endpoint.open_questions == (question,)


def test_a_client_that_does_not_read_is_not_replayed_more() -> None:
    """Waiting output is bounded, and stored events can be asked for again."""
    user = stored(config=Config(max_unsent_bytes=1_000, soft_unsent_bytes=500))
    store, _, first = broken_stream(user, 20)
    exchange = resume(user, first)
    store.serve()

    assert (answer(exchange).messages, exchange.ended) == ([], True)
    assert user.session.open


def test_too_many_replays_are_refused() -> None:
    """Replays count towards the limit of waiting requests; one that has begun ends, and may be
    resumed."""
    user = stored(config=Config(max_requests=1))
    store, _, first = broken_stream(user)
    store.portion = 1
    exchange = resume(user, first)
    store.serve()
    waiting = resume(user, first.replace("-2-", "-1-"))
    assert take(waiting) is None
    assert not exchange.ended
    before = answer(exchange)
    assert (numbers(before), before.ended) == ([0], True)
    assert len(user.endpoint.open_questions) == 1

    late = resume(user, first)
    assert answer(late).status == 503
    store.serve()
    assert answer(waiting).status == 400
    again = resume(user, first)
    store.serve()
    assert numbers(answer(again)) == [0]


def test_a_stream_that_is_closed_or_started_while_its_replay_waits_keeps_its_order() -> None:
    """No event may be created that would come before the missed ones."""
    user = stored()
    store, handle, first = broken_stream(user)
    exchange = resume(user, first)
    assert user.endpoint.start_stream(handle)
    assert user.endpoint.close_stream(handle, retry_ms=5)
    response = answer(exchange)
    assert (response.ended, response.messages) == (True, [])
    again = resume(user, first)
    store.serve()

    assert numbers(answer(again)) == [0, 1, 2]


def test_what_was_sent_once_is_not_sent_again_without_being_asked_for() -> None:
    """An event that was written to a failed connection must be repeated only for its id."""
    user = stored()
    store = Store(user.endpoint)
    first_exchange, before = open_stream(user)
    for number in range(2):
        user.endpoint.send_notification(f"x/{number}", session=user.session)
    store.serve()
    response = more(first_exchange, before)
    again = resume(user, response.ids[0])
    store.serve()
    again.receive_disconnect()  # and has read nothing
    user.endpoint.send_notification("x/2", session=user.session)
    store.serve()
    last = user.get()
    store.serve()

    assert answer(last).messages == [note("x/2")]


def test_events_of_several_streams_that_were_not_read_are_sent_again() -> None:
    """Several streams were written to one connection, one after the other, before it failed."""
    user = stored()
    store = Store(user.endpoint)
    exchanges = [open_stream(user)[0] for _ in range(2)]
    texts = iter(("x/1", "x/2", "x/3", "x/4"))
    for exchange in reversed(exchanges):
        for _ in range(2):
            user.endpoint.send_notification(next(texts), session=user.session)
        exchange.receive_disconnect()
    store.serve()
    unread = user.get()
    store.serve()  # the first stream gives way to the second one
    store.serve()
    unread.receive_disconnect()
    again = user.get()
    store.serve()
    response = answer(again)
    messages = response.messages
    for _ in range(4):
        store.serve()
        messages += more(again, response).messages

    assert sorted(message["method"] for message in messages) == ["x/1", "x/2", "x/3", "x/4"]
    assert user.endpoint.open_questions == ()


def test_the_rest_of_a_finished_stream_may_be_asked_for_again() -> None:
    """A client may disconnect in the middle of the rest."""
    user = stored()
    store, handle, first = broken_stream(user)
    user.endpoint.send_result(handle, {"content": []})
    store.serve()
    store.portion = 2
    exchange = resume(user, first)
    store.serve()
    exchange.receive_disconnect()
    store.portion = 10
    again = resume(user, first)
    store.serve()

    assert [event.id[-1] for event in answer(again).events] == ["2", "3", "4", "5"]
