"""The queue of events keeps their order, and releases each event that was taken."""

import weakref

from sansmcp._connection.events import EventQueue


class Thing:
    """A value that an event may hold."""


def test_an_event_that_was_taken_is_not_kept() -> None:
    """Events hold params of any size, which must be freed while others wait."""
    queue: EventQueue[Thing] = EventQueue()
    first = Thing()
    gone = weakref.ref(first)
    queue += [first, Thing()]

    assert queue.take() is first
    del first

    assert gone() is None
    assert len(queue.waiting) == 1


def test_the_order_is_kept_while_events_come_and_go() -> None:
    """Places of taken events are removed now and then, also in the middle of a long queue."""
    queue: EventQueue[int] = EventQueue()
    taken: list[int] = []
    for number in range(1_000):
        queue.append(number)
        if number % 3:
            taken.append(queue.take())
    while queue:
        taken.append(queue.take())

    assert taken == list(range(1_000))
    assert queue.waiting == []


def test_places_of_taken_events_are_no_more_than_those_that_wait() -> None:
    """A queue that is never empty must not grow with the events that pass through it."""
    queue: EventQueue[int] = EventQueue()
    queue += range(100)
    for number in range(10_000):
        queue.append(number)
        queue.take()

    assert len(queue) <= 2 * len(queue.waiting) + 32
