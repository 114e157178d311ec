"""The two threads of a worker that talk to Redis: one writes, one reads.

They are threads, and not tasks, for three reasons: the same code serves every loop; the lease is
renewed while a handler keeps the loop busy; and the loop is woken once for many entries.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError
from redis.retry import Retry

from .._async.background import logged
from .._common.anomalies import LOGGER
from ._commands import Command, Keys, Word
from ._errors import ClusterError

if TYPE_CHECKING:
    from ._member import Member

OLDEST: Final = (7, 0)
"""The version of Redis that is needed: Valkey says 7.2.4."""
_BATCH: Final = 512
_BATCH_BYTES: Final = 1024 * 1024
_TIMEOUT: Final = 3.0
"""Seconds in which Redis has to answer."""
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 1.0
_TICKS: Final = 3  # in a lease
_INBOX_LEASES: Final = 6
_STUCK_SECONDS: Final = 60.0
"""A worker whose loop does not move for so long gives up its lease."""

NewConnection: TypeAlias = Callable[[float], Any]
"""Makes a connection of redis-py, from the seconds in which Redis has to answer."""


class RedisEngine:
    """Sends commands and takes entries, until it is stopped. It can be started once.

    Args:
        new_connection: Makes a connection, from the seconds in which Redis has to answer.
        keys: The names of keys.
        worker: The id of the worker.
        lease: Seconds after which a worker that is silent counts as dead.
        where: The address of Redis, for messages.
    """

    def __init__(
        self,
        new_connection: NewConnection,
        keys: Keys,
        worker: str,
        *,
        lease: float,
        where: str,
    ) -> None:
        self._new_connection: Final = new_connection
        self._keys: Final = keys
        self._worker: Final = worker
        self._lease: Final = lease
        self._where: Final = where
        self._condition: Final = threading.Condition()
        self._commands: deque[Command] = deque()
        self._is_stopping = False
        self._has_lease = True  # as far as it is to be renewed
        self._age = 0.0  # of Redis, at the first connection, in seconds
        self._broken: set[str] = {"writing", "reading"}
        self._was_told = False  # of a failure, in the log
        self._has_joined = False
        self._failure: ClusterError | None = None
        self._loop_moved_at = time.monotonic()
        self._trim: bytes | None = None  # the last entry that was read
        self._member: Member
        self._post: Callable[[Callable[[], object]], object]
        self._on_joined: Callable[[], object] = _nothing
        self._on_stopped: Callable[[], object] = _nothing
        self._reader: threading.Thread | None = None

    # --------------------------------------------------------------------- from the loop

    def start(
        self,
        member: Member,
        post: Callable[[Callable[[], object]], object],
        on_joined: Callable[[], object],
    ) -> None:
        """Start the thread that writes, which starts the other one when Redis is one of use.

        Args:
            member: Takes entries and answers, in the thread of the loop.
            post: Calls a function in the thread of the loop.
            on_joined: Called there once the worker is known to the others, or cannot be.
        """
        self._member, self._post, self._on_joined = member, post, on_joined
        threading.Thread(target=self._write, name="sansmcp redis write", daemon=True).start()

    def go_on_with(self, post: Callable[[Callable[[], object]], object]) -> None:
        """Call functions in the thread of another loop from now on."""
        self._post = post
        self._loop_moved_at = time.monotonic()

    def put(self, command: Command) -> None:
        """Send a command. One that does not last fails at once while Redis is away."""
        with self._condition:
            fails = not command.is_lasting and "writing" in self._broken
            if not fails:
                self._commands.append(command)
                if len(self._commands) == 1:
                    self._condition.notify()
        if fails:
            self._hand_over([command], [ConnectionError("Redis cannot be reached")])

    def withdraw(self, command: Command, words: tuple[Word, ...]) -> bool:
        """Send other words instead of a command, and return whether it was certainly not sent."""
        with self._condition:
            if command.words:  # else it was sent, and answered
                command.words = words
            return command.tries == 0

    def drop_lease(self) -> None:
        """Remove the lease: after the commands before, and before those that follow."""
        with self._condition:
            self._has_lease = False
        self.put(Command(("DEL", self._keys.lease(self._worker)), is_lasting=True))

    @property
    def failure(self) -> ClusterError | None:
        """Why the worker cannot join; None: it has joined, or has not tried."""
        return self._failure

    def stop(self, on_stopped: Callable[[], object]) -> None:
        """Give up the lease, when all commands before were sent.

        Args:
            on_stopped: Called in the thread of the loop when that is done, or cannot be.
        """
        with self._condition:
            self._on_stopped = on_stopped
            self._is_stopping = True
            self._condition.notify_all()

    # ------------------------------------------------------------------------ both threads

    def _tell(self, function: Callable[[], object]) -> None:
        """Call a function in the thread of the loop, which has to go on if that fails."""
        self._post(partial(_call_all, [function]))

    def _connect(self, timeout: float = _TIMEOUT) -> Any:
        connection: Any = self._new_connection(timeout)
        connection.connect()
        return connection

    def _broke(self, which: str, error: BaseException) -> None:
        with self._condition:
            is_first = not self._broken
            self._broken.add(which)
            tells = not self._was_told
            self._was_told = True
            if is_first:  # within the lock, so that the loop hears of both threads in order
                self._tell(self._member.went_away)
        if tells:
            failure = self._failure or f"Redis at {self._where} cannot be reached: {error}"
            LOGGER.error("%s", failure)

    def _mended(self, which: str) -> None:
        with self._condition:
            if which not in self._broken:
                return
            self._broken.discard(which)
            if self._broken:
                return
            tells, self._was_told = self._was_told, False
            has_joined, self._has_joined = self._has_joined, True
            self._failure = None
            self._tell(partial(self._member.came_back, self._age))
            if not has_joined:
                self._post(self._on_joined)
        if tells:
            LOGGER.warning("Redis at %s can be reached again", self._where)

    def _wait(self, seconds: float) -> float:
        """Wait before another attempt; return for how long to wait before the next one."""
        with self._condition:
            if not self._is_stopping:
                self._condition.wait_for(lambda: self._is_stopping, seconds)
        return min(seconds * 2, _LONGEST_WAIT)

    # ------------------------------------------------------------------------------- writing

    def _write(self) -> None:
        try:
            self._write_all()
        finally:
            self._post(self._on_stopped)

    def _write_all(self) -> None:
        wait = _FIRST_WAIT
        connection: Any = None
        pending: list[Command] = []
        tick_at = 0.0
        while True:
            try:
                if connection is None:
                    connection = self._connect()
                    if self._reader is None:
                        self._check(connection)
                        self._reader = threading.Thread(
                            target=self._read, name="sansmcp redis read", daemon=True
                        )
                        self._reader.start()
                    tick_at = 0.0
                now = time.monotonic()
                if now >= tick_at:
                    tick_at = now + self._lease / _TICKS
                    if now - self._loop_moved_at < _STUCK_SECONDS + self._lease:
                        self._renew(connection)
                        self._mended("writing")
                        wait = _FIRST_WAIT
                    self._tell(self._tick)
                if not pending:
                    pending = self._next_batch(tick_at)
                if pending:
                    answers = _run(connection, [command.words for command in pending])
                    self._hand_over(pending, answers)
                    for command in pending:
                        command.words = ()  # those of a request may be large
                    pending = []
                elif self._is_stopping:
                    self._leave_cluster(connection)
                    return
            except Exception as error:  # of any kind: the thread must go on
                if connection is not None:
                    connection.disconnect()
                connection = None
                self._report_failed_start(error)
                self._broke("writing", error)
                failed, pending = self._split(pending)
                self._hand_over(failed, [error] * len(failed))
                if self._is_stopping:
                    return
                self._tell(self._tick)
                wait = self._wait(wait)

    def _tick(self) -> None:
        self._loop_moved_at = time.monotonic()
        self._member.tick()

    def _next_batch(self, until: float) -> list[Command]:
        commands = self._commands
        with self._condition:
            if not commands and not self._is_stopping:
                self._condition.wait(max(0.0, until - time.monotonic()))
            batch: list[Command] = []
            size = 0
            while commands and len(batch) < _BATCH and size < _BATCH_BYTES:
                command = commands.popleft()
                command.tries = 1
                batch.append(command)
                size += len(command.words[-1]) if isinstance(command.words[-1], bytes) else 0
                size += command.answer_bytes
            return batch

    def _split(self, pending: list[Command]) -> tuple[list[Command], list[Command]]:
        """The commands that fail, since Redis is away, and those that are sent a second time."""
        with self._condition:
            failed = [one for one in (*pending, *self._commands) if not one.is_lasting]
            again = [one for one in pending if one.is_lasting]
            rest = [one for one in self._commands if one.is_lasting]
            self._commands.clear()
            self._commands.extend(rest)
            for command in again:
                command.tries += 1
        return failed, again

    def _renew(self, connection: Any) -> None:
        """Renew the lease, and the stream of this worker, and drop entries that were read."""
        keys, worker = self._keys, self._worker
        lease = int(self._lease * 1000)
        inbox = keys.inbox(worker)
        words: list[Sequence[Word]] = [("PEXPIRE", inbox, lease * _INBOX_LEASES)]
        if self._has_lease:
            words.append(("SET", keys.lease(worker), "1", "PX", lease))
        if (last := self._trim) is not None:
            words.append(("XTRIM", inbox, "MINID", _after(last)))
        answers = _run(connection, words)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        if not answers[0]:
            created = [
                ("XADD", inbox, "*", "s", ""),
                ("PEXPIRE", inbox, lease * _INBOX_LEASES),
            ]
            for answer in _run(connection, created):
                if isinstance(answer, Exception):
                    raise answer

    def _hand_over(self, commands: list[Command], answers: list[Any]) -> None:
        """Call what waits for these answers, in the thread of the loop."""
        calls = [
            partial(command.done, answer)
            for command, answer in zip(commands, answers, strict=True)
            if command.done is not None
            and not (
                command.only_nothing and answer is not None and not isinstance(answer, Exception)
            )
        ]
        if calls:
            self._post(partial(_call_all, calls))

    def _leave_cluster(self, connection: Any) -> None:
        """Delete the keys of this worker in Redis, and end the connection."""
        keys, worker = self._keys, self._worker
        # The last entry wakes the thread that reads.
        _run(connection, [("DEL", keys.lease(worker)), ("XADD", keys.inbox(worker), "*", "s", "")])
        if self._reader is not None:
            self._reader.join(_TIMEOUT)
        _run(connection, [("DEL", keys.inbox(worker))])
        connection.disconnect()

    # ------------------------------------------------------------------------------- starting

    def _check(self, connection: Any) -> None:
        (info,) = _run(connection, [("INFO", "server")])
        if isinstance(info, Exception):
            raise info
        fields = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
        version = fields.get("redis_version", "0")
        self._age = float(fields.get("uptime_in_seconds", "0"))
        if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
            raise ClusterError(
                f"Redis at {self._where} has version {version}: install Redis 7.0 or newer, or"
                " Valkey"
            )

    def _report_failed_start(self, error: BaseException) -> None:
        if self._has_joined or self._failure is not None:
            return
        if isinstance(error, ClusterError):
            failure = error
        elif isinstance(error, AuthenticationError) or "NOAUTH" in str(error):
            failure = ClusterError(
                f"Redis at {self._where} refuses the credentials ({error}): put the right user and"
                " password into the URL, as in redis://user:password@host:6379/0"
            )
        elif isinstance(error, ResponseError):
            failure = ClusterError(
                f"Redis at {self._where} refuses a command that is needed ({error}): see what the"
                " user may do there, and which database the URL names"
            )
        else:
            failure = ClusterError(
                f"Redis at {self._where} cannot be reached ({error}): start it, or put its host"
                " and port into the URL"
            )
        self._failure = failure
        self._post(self._on_joined)

    # ------------------------------------------------------------------------------- reading

    def _read(self) -> None:
        wait = _FIRST_WAIT
        connection: Any = None
        inbox, changes = self._keys.inbox(self._worker), self._keys.changes
        tasks = self._keys.task_changes
        last_entry, last_change, last_task = b"0-0", b"", b""
        block = int(self._lease / _TICKS * 1000)
        while not self._is_stopping:
            try:
                if connection is None:
                    connection = self._connect(block / 1000 + _TIMEOUT)
                    last_change = _last_of(connection, changes, last_change)
                    last_task = _last_of(connection, tasks, last_task)
                    self._mended("reading")
                    wait = _FIRST_WAIT
                words = (
                    *("XREAD", "COUNT", _BATCH, "BLOCK", block, "STREAMS"),
                    *(inbox, changes, tasks, last_entry, last_change, last_task),
                )
                connection.send_packed_command(connection.pack_command(*words), check_health=False)
                found = connection.read_response()
                for name, entries in found or ():
                    fields = [fields for _, fields in entries if fields[0] != b"s"]
                    if name == changes.encode():
                        last_change = entries[-1][0]
                        self._tell(partial(self._member.changes.receive, fields))
                    elif name == tasks.encode():
                        last_task = entries[-1][0]
                        self._tell(partial(self._member.tasks.receive, fields))
                    else:
                        self._trim = last_entry = entries[-1][0]
                        self._tell(partial(self._member.receive, fields))
            except Exception as error:  # of any kind: the thread must go on
                if connection is not None:
                    connection.disconnect()
                connection = None
                last_entry = b"0-0"  # a new Redis may count from another time: numbers tell
                self._trim = None
                self._broke("reading", error)
                wait = self._wait(wait)
        if connection is not None:
            connection.disconnect()


def connections_to(url: str, options: Mapping[str, Any]) -> NewConnection:
    """Return what makes connections for a URL.

    Raises:
        ValueError: The URL is none of Redis.
    """

    def new_connection(timeout: float) -> Any:
        settings: dict[str, Any] = {
            "socket_connect_timeout": _TIMEOUT,
            "protocol": 2,
            **options,
            "socket_timeout": timeout,
            # Failures are to be seen at once: what is sent again has to be known here.
            "retry": Retry(NoBackoff(), 0),
        }
        pools: Any = ConnectionPool  # whose arguments have no types
        return pools.from_url(url, **settings).make_connection()

    new_connection(_TIMEOUT)  # which does not connect
    return new_connection


def _run(connection: Any, commands: Sequence[Sequence[Word]]) -> list[Any]:
    """Send commands, and return their answers, or the errors that Redis has answered."""
    connection.send_packed_command(connection.pack_commands(commands), check_health=False)
    answers: list[Any] = []
    for _ in commands:
        try:
            answers.append(connection.read_response())
        except ResponseError as error:
            answers.append(error)
    return answers


def _last_of(connection: Any, stream: str, known: bytes) -> bytes:
    """The id to read a stream from: after what is there, or after what was read before."""
    (entries,) = _run(connection, [("XREVRANGE", stream, "+", "-", "COUNT", 1)])
    if isinstance(entries, Exception):
        raise entries
    last: bytes = entries[0][0] if entries else b"0-0"
    if not known:
        return last
    return known if _order(last) >= _order(known) else b"0-0"


def _order(id: bytes) -> tuple[int, int]:
    first, _, second = id.partition(b"-")
    return int(first), int(second)


def _after(id: bytes) -> str:
    """The id that follows an id."""
    first, second = _order(id)
    return f"{first}-{second + 1}"


def _call_all(calls: Sequence[Callable[[], object]]) -> None:
    """Call each of them, whether or not others fail."""
    for call in calls:
        with logged("a part of a worker of the cluster"):
            call()


def _nothing() -> None:
    """Do nothing: there is no waiting caller."""
