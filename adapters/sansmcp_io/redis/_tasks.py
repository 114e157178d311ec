"""The tasks of all workers, kept in Redis: each worker answers for each of them.

A record is written only in the place of the version that was read, so two workers never lose each
other's changes. The change of a task that another worker works on, or waits for, is told by a Redis
Stream that all workers read. The tasks of a worker that is gone are taken over by another one.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import attrs
from redis.exceptions import NoScriptError

from sansmcp import (
    ErrorCode,
    Task,
    TaskRecord,
    TaskStatus,
    TasksWanted,
    TaskToStore,
    TaskWanted,
)

from .._common.anomalies import LOGGER
from .._common.cluster import ClusterHost
from ._commands import Command, Engine, Keys, Word
from ._entries import Fields
from ._reachability import Reachability
from ._task_scripts import CLAIM, FORGET, FULL, NOBODY, PAGE, RELEASE, SAVE, SAVED, Script

_ID: Final = re.compile(r"[0-9a-f]{48}")
"""The id of a task that this library has made. Others need not be looked up."""
_AWAY: Final = "the store of tasks cannot be reached: try again later"
_TOO_MANY_OF_OWNER: Final = "the client has as many tasks as it may have"
_TOO_LARGE: Final = "the task has more bytes than are kept for one"
_TOO_MUCH_WAITS: Final = "too much waits to be stored"
_GONE: Final = "the process that worked on the task has ended"
_TOO_OFTEN: Final = "the processes that worked on the task have ended, one after the other"
_MOST_WAITING: Final = 64 * 1024 * 1024
"""Bytes of records that may wait to be stored."""
_MOST_CLAIMS: Final = 32
"""Tasks of dead workers that one script takes over."""
_MOST_LOOKS: Final = 256
"""Tasks of each dead worker that one script looks at: some of them cannot be taken over here."""
_MOST_UNFIT: Final = 1000
"""Tasks that cannot be taken over here, of each of which the log speaks."""
_MOST_RUNS: Final = 5
"""How often work on one task may be begun, should it end its worker each time."""
_PEER_SECONDS: Final = 10.0
"""How long the request of a client waits whose change cannot be stored."""
_SHORT_BYTES: Final = 2048
"""Records up to this size are given to listings as they are."""
_ANSWER_BYTES: Final = 64 * 1024
_PAYLOAD: Final[dict[str, Any]] = dict.fromkeys(
    ("questions", "answers", "result", "error", "keep"), b""
)


class _Saving:
    """A record that is being stored.

    Attributes:
        asked: The question; None: it was answered, or there was none.
        record: The record.
        mark: The mark of this write.
        size: Its bytes.
        deadline: When the question is answered with a failure; the write goes on.
        is_own: Whether this worker works on the task.
    """

    def __init__(
        self, asked: TaskToStore | None, record: TaskRecord, mark: str, size: int, is_own: bool
    ) -> None:
        self.asked = asked
        self.record: Final = record
        self.mark: Final = mark
        self.size: Final = size
        self.is_own: Final = is_own
        self.deadline = math.inf


class SharedTasks:
    """The store of tasks of one worker.

    Args:
        host: Runs the endpoint.
        engine: Sends commands to Redis.
        keys: The names of keys.
        worker: The id of this worker.
        redis: Tells whether Redis can be reached.
        most: Tasks of one owner.
        max_bytes: Bytes of the record of one task.
        at: Tells the time in Unix seconds.
    """

    def __init__(
        self,
        host: ClusterHost,
        engine: Engine,
        keys: Keys,
        worker: str,
        *,
        redis: Reachability,
        most: int,
        max_bytes: int,
        at: Callable[[], float] = time.time,
    ) -> None:
        self._at: Final = at
        self._host: Final = host
        self._engine: Final = engine
        self._keys: Final = keys
        self._worker: Final = worker
        self._redis: Final = redis
        self._most: Final = most
        self._max_bytes: Final = max_bytes
        self._is_ending = False
        self._running: dict[str, TaskRecord] = {}  # as they were last stored by this worker
        self._saving: dict[str, _Saving] = {}  # by id: the core stores one after the other
        self._refused: list[_Saving] = []  # by Redis: they are written again later
        self._waiting_bytes = 0
        self._marks = 0
        self._asking: dict[str, int] = {}  # how many questions about a task wait for Redis
        self._looking: dict[str, bool] = {}  # whether the task has changed again meanwhile
        self._last_change: int | None = None
        self._has_complained = False
        self._n_unfit = 0  # tasks that could not be taken over here

    # ------------------------------------------------------------------- questions of the endpoint

    def handle(self, event: TaskWanted | TasksWanted | TaskToStore) -> None:
        """Answer a question of the endpoint."""
        match event:
            case TaskWanted():
                self._find(event)
            case TasksWanted():
                self._list(event)
            case TaskToStore():
                self._store(event)

    def _fail(
        self, asked: TaskWanted | TasksWanted | TaskToStore, text: str, *, no_room: bool = False
    ) -> None:
        endpoint = self._host.endpoint
        endpoint.fail_task_lookup(asked, text, no_room=no_room, now=self._host.now())

    def _find(self, wanted: TaskWanted) -> None:
        if not _ID.fullmatch(wanted.task_id):
            self._host.endpoint.provide_task(wanted, None, now=self._host.now())
            return
        self._asking[wanted.task_id] = self._asking.get(wanted.task_id, 0) + 1
        self._get(wanted.task_id, partial(self._found, wanted))

    def _get(self, task_id: str, done: Callable[[Any], object]) -> None:
        words = ("HGET", self._keys.task(task_id), "d")
        self._engine.put(Command(words, done, answer_bytes=_ANSWER_BYTES))

    def _found(self, wanted: TaskWanted, outcome: Any) -> None:
        left = self._asking.pop(wanted.task_id) - 1
        if left:
            self._asking[wanted.task_id] = left
        record = self._record_of(outcome)
        if isinstance(record, Exception):
            self._fail(wanted, _AWAY)
        else:
            self._host.endpoint.provide_task(wanted, record, now=self._host.now())
        self._host.turn()

    def _record_of(self, outcome: Any) -> TaskRecord | Exception | None:
        """The record in an answer of Redis; or why there is none."""
        if outcome is None or isinstance(outcome, Exception):
            return outcome
        try:
            return TaskRecord.from_bytes(outcome)
        except ValueError as error:  # of a later version
            LOGGER.error("a task in Redis cannot be read: %s", error)
            return error

    def _list(self, wanted: TasksWanted) -> None:
        keys = self._keys
        after = b"-"
        if wanted.after is not None:
            after = b"(" + wanted.after.encode("utf-8", "surrogatepass")
        names = (keys.places(wanted.owner), keys.place_expiries(wanted.owner))
        self._run(PAGE, names, (after, wanted.limit, keys.task("")), partial(self._listed, wanted))

    def _listed(self, wanted: TasksWanted, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            self._fail(wanted, _AWAY)
        else:
            found = [self._record_of(data) for data in outcome]
            records = [one for one in found if isinstance(one, TaskRecord)]
            self._host.endpoint.provide_tasks(wanted, records, now=self._host.now())
        self._host.turn()

    def _run(
        self,
        script: Script,
        keys: tuple[str, ...],
        arguments: tuple[Word, ...],
        done: Callable[[Any], object],
        *,
        is_lasting: bool = False,
    ) -> None:
        """Run a script, which Redis may not know yet."""
        rest = (len(keys), *keys, *arguments)

        def ran(outcome: Any) -> None:
            if isinstance(outcome, NoScriptError):
                words = ("EVAL", script.text, *rest)
                self._engine.put(Command(words, done, is_lasting=is_lasting))
            else:
                done(outcome)

        self._engine.put(Command(("EVALSHA", script.digest, *rest), ran, is_lasting=is_lasting))

    # ------------------------------------------------------------------------------------- storing

    def _store(self, asked: TaskToStore) -> None:
        record, now = asked.record, self._host.now()
        known = self._running.get(record.id)
        is_own = record.version == 1 or known is not None
        data = record.to_bytes()
        if len(data) > self._max_bytes:
            self._refuse(asked, _TOO_LARGE)
            return
        if self._waiting_bytes + len(data) > _MOST_WAITING:
            self._refuse(asked, _TOO_MUCH_WAITS)
            return
        self._marks += 1
        mark = f"{self._worker}{self._marks}"
        saving = _Saving(asked, record, mark, len(data), is_own)
        if known is not None and _may_be_of_peer(record, known):
            saving.deadline = now + _PEER_SECONDS
        self._waiting_bytes += saving.size
        self._saving[record.id] = saving
        # What this worker does is written also after Redis was away; a client may ask again.
        self._write(saving, "change" if known is None else "keep", data)

    def _refuse(self, asked: TaskToStore, text: str) -> None:
        """Refuse a record: there is no room. The core then lets a task of this worker fail.

        If that has no room either, this worker gives the task up, and another one lets it fail.
        """
        LOGGER.error("a task cannot be stored: %s", text)
        task_id = asked.record.id
        self._fail(asked, text, no_room=True)
        if task_id in self._running and not self._host.endpoint.follows_task(task_id):
            self._release(task_id, text)

    @property
    def is_storing(self) -> bool:
        """Whether records of tasks of this worker wait to be stored."""
        return any(saving.is_own for saving in self._saving.values())

    def release(self, task_id: str) -> None:
        """Leave a task to the other workers: this one ends before the result is there."""
        self._release(task_id, "")

    def _release(self, task_id: str, reason: str, *, is_unfit: bool = False) -> None:
        self._running.pop(task_id, None)
        keys = self._keys
        arguments = (task_id, keys.running(""), reason, NOBODY, self._worker, int(is_unfit))
        names = (keys.task(task_id), keys.task_workers)
        # Its text, since this happens seldom, and a worker that ends cannot ask Redis twice.
        words = ("EVAL", RELEASE.text, len(names), *names, *arguments)
        self._engine.put(Command(words, is_lasting=True))

    def _write(self, saving: _Saving, how: str, data: bytes) -> None:
        record, keys = saving.record, self._keys
        expires = record.expires_at
        left: Word = "" if expires is None else math.ceil((expires - self._at()) * 1000)
        head = b""
        if len(data) > _SHORT_BYTES:
            head = attrs.evolve(record, **_PAYLOAD).to_bytes()
        self._run(
            SAVE,
            (
                *(keys.task(record.id), keys.places(record.owner)),
                *(keys.place_expiries(record.owner), keys.task_workers),
                *(keys.task_changes, keys.task_count),
            ),
            (
                *(how, saving.mark, record.id, record.place, left, int(record.status.is_final)),
                *(self._worker, keys.running(""), self._most, head, record.version, data),
            ),
            partial(self._saved, saving),
            is_lasting=saving.is_own and record.version > 1,
        )

    def _saved(self, saving: _Saving, outcome: Any) -> None:
        record, endpoint = saving.record, self._host.endpoint
        if isinstance(outcome, Exception) and saving.is_own and record.version > 1:
            if not self._has_complained:
                self._has_complained = True
                LOGGER.error("Redis does not store a task: it is tried again (%s)", outcome)
            self._refused.append(saving)
            return
        self._has_complained = False
        self._waiting_bytes -= saving.size
        if self._saving.get(record.id) is saving:
            del self._saving[record.id]
        asked, saving.asked = saving.asked, None
        if isinstance(outcome, Exception) or outcome == FULL:
            if record.version == 1 and asked is not None and outcome != FULL:
                self._forget(saving)  # it was stored, perhaps, and its client hears of no task
            if asked is not None and outcome == FULL:
                self._fail(asked, _TOO_MANY_OF_OWNER, no_room=True)
            elif asked is not None:
                self._fail(asked, _AWAY)
        else:
            if outcome == SAVED and saving.is_own:
                self._note(record)
            if asked is not None:
                endpoint.task_stored(asked, outcome == SAVED, now=self._host.now())
            elif outcome == SAVED:
                endpoint.task_changed(record, now=self._host.now())
        self._host.turn()

    def _note(self, record: TaskRecord) -> None:
        """Remember the record of a task of this worker, as long as it is not over."""
        if record.status.is_final:
            self._running.pop(record.id, None)
        else:
            self._running[record.id] = record

    def _forget(self, saving: _Saving) -> None:
        record, keys = saving.record, self._keys
        names = (
            *(keys.task(record.id), keys.places(record.owner)),
            keys.place_expiries(record.owner),
        )
        arguments = (saving.mark, record.id, record.place, keys.running(""))
        self._run(FORGET, names, arguments, _nothing, is_lasting=True)

    # ------------------------------------------------------------------------ changes of others

    def receive(self, entries: Iterable[Fields]) -> None:
        """Take note of changes that workers have made."""
        for fields in entries:
            try:
                number, worker, task_id = json.loads(fields[1])
            except (IndexError, TypeError, ValueError) as error:
                LOGGER.warning("a change of a task cannot be read: %s", error)
                continue
            last, self._last_change = self._last_change, number
            if last is not None and number != last + 1:
                self._look_at_all()  # some were lost
            if worker != self._worker:
                self._look(task_id)
        self._host.turn()

    def _look(self, task_id: str) -> None:
        """Read a task that has changed, if somebody here waits for that, or soon will."""
        if task_id in self._looking:
            self._looking[task_id] = True
        elif task_id in self._asking or self._host.endpoint.follows_task(task_id):
            self._looking[task_id] = False
            self._get(task_id, partial(self._looked, task_id))

    def _look_at_all(self) -> None:
        for task_id in self._host.endpoint.followed_tasks:
            self._look(task_id)

    def _looked(self, task_id: str, outcome: Any) -> None:
        has_changed = self._looking.pop(task_id)
        record = self._record_of(outcome)
        if isinstance(record, TaskRecord):
            if record.status.is_final:
                self._running.pop(task_id, None)
            self._host.endpoint.task_changed(record, now=self._host.now())
        if has_changed:
            self._look(task_id)
        self._host.turn()

    # ------------------------------------------------------------------------- time and failures

    def tick(self) -> None:
        """Part of a lease has passed: take over tasks of workers that are gone."""
        if not self._host.shares_tasks:
            return
        now = self._host.now()
        for saving in tuple(self._saving.values()):
            if saving.deadline <= now and saving.asked is not None:
                asked, saving.asked = saving.asked, None
                self._fail(asked, _AWAY)
        refused, self._refused = self._refused, []
        for saving in refused:
            self._write(saving, "keep", saving.record.to_bytes())
        at = self._at()
        expired = [id for id, record in self._running.items() if record.is_expired(at)]
        if expired:
            for task_id in expired:
                del self._running[task_id]
            self._engine.put(Command(("SREM", self._keys.running(self._worker), *expired)))
        if not self._redis.is_away and self._redis.is_reliable and not self._is_ending:
            self._claim()

    def _claim(self) -> None:
        """Take over as many tasks as there is room for: another worker may have more."""
        keys, room = self._keys, self._room
        if room > 0:
            names = (keys.lease(""), keys.running(""), keys.task(""))
            arguments = (self._worker, *names, min(room, _MOST_CLAIMS), _MOST_LOOKS)
            self._run(CLAIM, (keys.task_workers,), arguments, self._claimed)

    @property
    def _room(self) -> int:
        """How many more tasks this worker may work on."""
        return self._host.most_tasks - len(self._host.endpoint.open_tasks)

    def _claimed(self, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            return
        # Not only the first failure: each of them belongs to this worker now.
        taken = [
            self._take_over(task_id.decode(), data, runs, reason.decode())
            for task_id, data, runs, reason in outcome
        ]
        if len(taken) == _MOST_CLAIMS and all(taken) and not self._is_ending:
            self._claim()
        self._host.turn()

    def _take_over(self, task_id: str, data: bytes, runs: int, reason: str) -> bool:
        """Go on with a task of a worker that is gone, if it may run twice; else let it fail.

        Returns:
            Whether it is a task of this worker now. Otherwise it is left to the others.
        """
        endpoint, at, now = self._host.endpoint, self._at(), self._host.now()
        if self._is_ending and not reason:
            self._release(task_id, "")
            return False
        try:
            record = TaskRecord.from_bytes(data)
            if any(task.id == task_id for task in endpoint.open_tasks):
                # It was taken from this worker while that was silent, and has come back.
                self._running[task_id] = record
                endpoint.task_changed(record, now=now)
                return True
            if self._room <= 0:  # a client has taken it meanwhile
                self._release(task_id, "")
                return False
            task = endpoint.adopt_task(record, at=at, now=now)
        except Exception as error:  # such as for a record of a later version
            self._release(task_id, "", is_unfit=True)
            self._n_unfit += 1
            if self._n_unfit <= _MOST_UNFIT:
                LOGGER.error("a task of another worker cannot be taken over: %s", error)
            return False
        self._running[task_id] = record
        if not reason and runs > _MOST_RUNS:
            reason = _TOO_OFTEN
        if reason or not self._resumes(task):
            text = reason or _GONE
            LOGGER.warning("a task of %.80r fails: %s", record.method, text)
            endpoint.fail_task(task, ErrorCode.INTERNAL_ERROR, text, at=at, now=now)
        return True

    def _resumes(self, task: Task) -> bool:
        """Whether the server goes on with a task that it has taken over."""
        try:
            return self._host.resume_task(task)
        except Exception as error:  # such as for what another version of the program has kept
            LOGGER.error("a task cannot be begun again", exc_info=error)
            return False

    def came_back(self) -> None:
        """Redis can be reached: again, or for the first time. It may have lost all that it had."""
        if not self._host.shares_tasks:
            return
        for record in tuple(self._running.values()):
            if record.id not in self._saving:
                self._marks += 1
                mark = f"{self._worker}{self._marks}"
                saving = _Saving(None, record, mark, 0, is_own=True)
                self._write(saving, "restore", record.to_bytes())
        self._look_at_all()
        words = ("SMEMBERS", self._keys.running(self._worker))
        self._engine.put(Command(words, self._compare))

    def _compare(self, outcome: Any) -> None:
        """Give up the tasks that count as those of this worker, and are not.

        Redis has gone away after it had given them to this worker.
        """
        if isinstance(outcome, Exception):
            return
        for data in outcome:
            task_id = data.decode()
            if task_id not in self._running and task_id not in self._saving:
                self._release(task_id, "")

    def drain(self) -> None:
        """This worker ends soon: take over no more tasks."""
        self._is_ending = True


def _may_be_of_peer(record: TaskRecord, known: TaskRecord) -> bool:
    """Whether a change was perhaps asked for by a client, whose request waits for its end."""
    if record.status is TaskStatus.CANCELLED:
        return True
    return record.is_modern and len(record.answers) > len(known.answers)


def _nothing(_outcome: object) -> None:
    """Do nothing: the answer does not matter."""
