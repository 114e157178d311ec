"""The table of deadlines: each fires once, in order of time, and dropped ones take no room."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from sansmcp._connection.timers import Timed, Timers


@attrs.define(eq=False)
class Subject:
    """An object with a deadline."""

    name: int
    _deadline: float | None = None


@attrs.define(eq=False)
class Owner:
    """Keeps the subjects whose deadlines have fired."""

    fired: list[int] = attrs.field(factory=list[int])

    def _timer_fired(self, subject: Timed) -> None:
        assert isinstance(subject, Subject)
        assert subject._deadline is None
        self.fired.append(subject.name)


def test_a_subject_that_is_armed_again_leaves_no_entry() -> None:
    """Earlier entries were kept as long as the subject had any deadline."""
    timers, owner = Timers(), Owner()
    subjects = [Subject(name) for name in range(200)]
    for time in range(200):
        for subject in subjects:
            timers.drop(subject)
            timers.arm(owner, subject, 1000.0 + time)
    assert len(timers._heap) <= 2 * len(subjects)
    for time in range(200):
        for subject in subjects:
            timers.arm(owner, subject, 2000.0 - time)
    assert len(timers._heap) <= 2 * len(subjects)
    timers.fire(2000.0)
    assert owner.fired == list(range(200))


def test_a_subject_that_is_armed_again_for_the_same_time_leaves_no_entry() -> None:
    """The clock of a caller may stand still: all entries have the deadline of their subject."""
    timers, owner, subjects = Timers(), Owner(), [Subject(name) for name in range(2)]
    for _ in range(1_000):
        for subject in subjects:
            timers.arm(owner, subject, 5.0)
    assert len(timers._heap) <= 100
    timers.fire(5.0)
    assert owner.fired == [0, 1]


def test_the_newest_entry_of_a_subject_is_kept() -> None:
    """It has the owner that is told. Its deadline was armed last, and was then moved."""
    timers, owner = Timers(), Owner()
    moved, others = Subject(-1), [Subject(name) for name in range(100)]
    timers.arm(Owner(), moved, 20.0)
    timers.arm(owner, moved, 10.0)
    moved._deadline = 15.0
    for subject in others:
        timers.arm(owner, subject, 30.0)
        timers.drop(subject)
    assert len(timers._heap) < len(others)
    timers.fire(14.0)
    assert owner.fired == []
    timers.fire(15.0)
    assert owner.fired == [-1]
    assert timers.earliest() is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arm", "again", "later", "drop", "fire"]),
        st.integers(0, 5),
        st.integers(0, 20),
    ),
    max_size=200,
)


@given(STEPS, st.integers(1, 40))
def test_each_deadline_fires_once_and_in_order(
    steps: list[tuple[str, int, int]], repeats: int
) -> None:
    """Deadlines may be dropped, armed again or moved, and the table be rebuilt at any time."""
    timers, owner, now = Timers(), Owner(), 0.0
    subjects = [Subject(name) for name in range(6)]
    for kind, name, number in steps:
        subject, deadline = subjects[name], now + number
        if kind == "arm":
            timers.arm(owner, subject, deadline)
        elif kind == "again":
            for _ in range(repeats):
                timers.drop(subject)
                timers.arm(owner, subject, deadline)
        elif kind == "later" and subject._deadline is not None:
            subject._deadline += number
        elif kind == "drop":
            timers.drop(subject)
        elif kind == "fire":
            now += number
            due: dict[int, float] = {
                one.name: one._deadline
                for one in subjects
                if one._deadline is not None and one._deadline <= now
            }
            owner.fired = []
            timers.fire(now)
            assert sorted(owner.fired) == sorted(due)
            assert [due[name] for name in owner.fired] == sorted(due.values())
        deadlines = [one._deadline for one in subjects if one._deadline is not None]
        assert timers.earliest() == min(deadlines, default=None)
        assert len(timers._heap) <= 2 * len(deadlines) + 66
