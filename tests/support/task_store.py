"""The tasks of workers in a real Redis, in one thread: each command is run when it is given."""

import itertools
from collections.abc import Callable
from typing import Any, Final

from redis.exceptions import NoScriptError, ResponseError

from sansmcp import Task, TaskQuestion
from sansmcp_io.redis._commands import Command, Keys
from sansmcp_io.redis._reachability import Reachability
from sansmcp_io.redis._tasks import SharedTasks
from tests.support.redis_server import RedisServer
from tests.support.tasks import START, Shelf

_NAMES: Final = itertools.count(1)
LEASE: Final = 9.0


class Shared:
    """What workers share: a part of a Redis that nobody else uses.

    Attributes:
        keys: The names of keys.
        client: A client of redis-py.
        now: The time, on both clocks of all workers.
        workers: The workers, by name.
        is_away: Whether Redis cannot be reached.
        loses_answers: Whether commands reach Redis, and their answers get lost with the connection.
        refuses: Whether Redis answers with an error.
        holds_answers: Whether answers are under way until `release_answers`.
    """

    def __init__(self, redis: RedisServer) -> None:
        self.keys: Final = Keys(f"test{next(_NAMES)}")
        self.client: Final = redis.client()
        self.now = 0.0
        self.workers: dict[str, Keeper] = {}
        self.is_away = False
        self.loses_answers = False
        self.refuses = False
        self._waiting: list[Command] = []
        self._under_way: list[tuple[Command, Any]] = []
        self.holds_answers = False
        self._read = "0-0"

    def put(self, command: Command) -> None:
        """As the threads do it, but at once."""
        if self.is_away:
            self._broke(command)
            return
        if self.refuses:
            _done(command, ResponseError("OOM command not allowed"))
            return
        command.tries += 1
        try:
            answer = self.client.execute_command(*command.words)
        except NoScriptError as error:  # others are faults of the scripts
            answer = error
        if self.holds_answers or self._under_way:  # answers keep their order
            self._under_way.append((command, answer))
            return
        if self.loses_answers and not isinstance(answer, NoScriptError):
            self._broke(command)
        else:
            _done(command, answer)

    def _broke(self, command: Command) -> None:
        if command.is_lasting:
            self._waiting.append(command)
        else:
            _done(command, OSError("away"))

    def release_answers(self) -> None:
        """Hand over the answers that are under way."""
        under_way, self._under_way[:] = self._under_way[:], []
        for command, answer in under_way:
            _done(command, answer)

    def withdraw(self, command: Command, words: Any) -> bool:
        """No command of tasks is withdrawn."""
        raise AssertionError(command)

    def drop_lease(self) -> None:
        """The lease of a worker is dropped by `Keeper.die`."""
        raise AssertionError

    def come_back(self) -> None:
        """Redis can be reached again, and is sent what has waited."""
        self.is_away = self.loses_answers = False
        for worker in self.workers.values():
            worker.came_back()
        waiting, self._waiting[:] = self._waiting[:], []
        for command in waiting:
            self.put(command)

    def names(self) -> list[bytes]:
        """The keys that are there."""
        prefix = self.keys.task("").partition("task:")[0].encode()
        return [key for key in self.client.keys("*") if key.startswith(prefix)]

    def lose_all(self) -> None:
        """Redis is started again, without its data."""
        for key in self.names():
            self.client.delete(key)
        for worker in self.workers.values():
            worker.live()

    def deliver(self) -> None:
        """Give all workers the changes of tasks."""
        entries = self.client.xrange(self.keys.task_changes, f"({self._read}")
        if entries:
            self._read = entries[-1][0].decode()
            found = [[b"t", fields[b"t"]] for _, fields in entries]
            for worker in self.workers.values():
                worker.tasks.receive(found)

    def wait(self, seconds: float) -> None:
        """Let time pass for workers; in Redis it does not."""
        self.now += seconds


class Keeper:
    """A worker, or a server with one client, whose tasks are in Redis. It is a `ClusterHost`.

    Args:
        shared: What it shares with others.
        name: Its id, of twelve letters.
        endpoint: What asks: a `ServerConnection` has the same verbs as an endpoint.
        turn: Handles its events.
    """

    def __init__(
        self,
        shared: Shared,
        name: str,
        endpoint: Any,
        turn: Callable[[], object] = lambda: None,
        *,
        most: int = 2_000,
        most_here: int = 10_000,
        max_bytes: int = 100_000,
        resumes: Callable[[Task], bool] = lambda task: False,
    ) -> None:
        self.shared: Final = shared
        self.name: Final = name
        self.endpoint: Any = endpoint
        self.wires: dict[Any, Any] = {}
        self.shares_tasks = True
        self.most_tasks = most_here
        self._turn = turn
        self._resumes = resumes
        self._redis = Reachability(self.now, LEASE)
        self.tasks = SharedTasks(
            self,
            shared,
            shared.keys,
            name,
            redis=self._redis,
            most=most,
            max_bytes=max_bytes,
            at=lambda: START + shared.now,
        )
        shared.workers[name] = self
        self._redis.came_back(1_000.0)
        self.tasks.came_back()
        self.live()

    def now(self) -> float:
        """The time of the test."""
        return self.shared.now

    def turn(self) -> None:
        """Handle all events."""
        self._turn()

    def resume_task(self, task: Task) -> bool:
        """As the test says."""
        return self._resumes(task)

    def carried_context(self, method: str, target: str, headers: Any) -> Any:
        """Nothing is carried."""
        raise AssertionError(method)

    def live(self) -> None:
        """Renew the lease."""
        self.shared.client.set(self.shared.keys.lease(self.name), "1")

    def die(self) -> None:
        """Be killed: the lease ends."""
        del self.shared.workers[self.name]
        self.shared.client.delete(self.shared.keys.lease(self.name))

    def go_away(self) -> None:
        """Learn that Redis cannot be reached."""
        self._redis.went_away()

    def came_back(self) -> None:
        """Learn that Redis can be reached again."""
        self._redis.came_back(0.0)
        self.tasks.came_back()


class RedisShelf(Shelf):
    """A store of one server, as the shelf of a test, in Redis."""

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared: Final = shared
        self._keepers: dict[int, Keeper] = {}

    def record(self, id: str) -> Any:
        """The stored record of a task."""
        from sansmcp import TaskRecord

        data = self.shared.client.hget(self.shared.keys.task(id), "d")
        return None if data is None else TaskRecord.from_bytes(data)

    def answer(self, server: Any, asked: TaskQuestion) -> None:
        """Answer a question of this server."""
        keeper = self._keepers.get(id(server))
        if keeper is None:
            name = f"{len(self._keepers):012d}"
            keeper = self._keepers[id(server)] = Keeper(self.shared, name, server)
        keeper.tasks.handle(asked)


def _done(command: Command, outcome: Any) -> None:
    if command.done is not None and (outcome is None or not command.only_nothing):
        command.done(outcome)
