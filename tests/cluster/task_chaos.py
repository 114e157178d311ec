"""Tasks on workers that are killed, stopped and paused at random: a soak of the store in Redis.

    python -m tests.cluster.task_chaos --clients 20 --workers 4 --seconds 120

Each client begins tasks one after the other, and asks random workers for them until they have
ended. Half of the tasks may restart. Each run is noted in a second Redis. The program ends with an
error unless each task has ended, a task that may restart has its result, each result that a client
has seen is there at the end, at every worker, no other task has run twice, and no worker has logged
a traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import time
from collections import Counter
from typing import Any, Final

import attrs
import httpx2

from sansmcp import JSONObject
from tests.support.redis_server import RedisServer, running_redis
from tests.support.task_caller import Caller, text_of
from tests.support.workers import Worker, running_workers

FAULTS: Final = ("kill", "kill", "kill", "stop", "pause")
OPTIONS: Final = ("lease=1", "drain=1")
_LOST: Final = "has ended"
_TOO_OFTEN: Final = "one after the other"
_SECONDS: Final = 90.0
"""How long a task may take, with all restarts."""


@attrs.define
class Report:
    """What has happened.

    Attributes:
        begun: Tasks of which a client knows.
        ended: How they have ended.
        faults: What was done to workers.
        wrong: What must not happen.
        results: The results that clients have seen, by the id of the task.
    """

    begun: int = 0
    ended: Counter[str] = attrs.Factory(Counter[str])
    faults: Counter[str] = attrs.Factory(Counter[str])
    wrong: list[str] = attrs.Factory(list[str])
    results: dict[str, str] = attrs.Factory(dict[str, str])


@attrs.define
class Soak:
    """Clients and workers, for some time.

    Attributes:
        redis: What the workers share.
        ledger: What notes the runs.
        workers: The workers, some of which may be dead for a moment.
        seconds: How long clients begin tasks.
        faults: Seconds between two faults.
    """

    redis: RedisServer
    ledger: RedisServer
    workers: list[Worker]
    seconds: float
    faults: float
    report: Report = attrs.Factory(Report)
    _until: float = attrs.field(default=0.0, init=False)

    async def run(self, clients: int) -> None:
        """Have the clients begin tasks, do harm meanwhile, and look at all results again."""
        self._until = time.monotonic() + self.seconds
        async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
            caller = Caller(http)
            harm = asyncio.create_task(self._do_harm())
            talks = [asyncio.create_task(self._talk(caller, number)) for number in range(clients)]
            for done in await asyncio.gather(*talks, return_exceptions=True):
                if isinstance(done, BaseException):
                    self.report.wrong.append(f"a client has failed: {done!r}")
            await harm
            await self._look_again(caller)

    async def _talk(self, caller: Caller, number: int) -> None:
        choose = random.Random(number)
        for count in itertools.count():
            if time.monotonic() > self._until:
                return
            text, may_restart = f"{number}-{count}", count % 2 == 0
            seconds = choose.choice((0, 0.05, 0.5, 2.0))
            more: JSONObject = {"ledger": self.ledger.port, "may_restart": may_restart}
            try:
                task = await caller.begin(choose.choice(self.workers), text, seconds, **more)
            except (httpx2.TransportError, KeyError):  # the worker is dead, or ends
                self.report.ended["(not begun)"] += 1
                await asyncio.sleep(0.05)
                continue
            self.report.begun += 1
            await self._follow(caller, choose, task, text, may_restart)

    async def _follow(
        self, caller: Caller, choose: random.Random, task: str, text: str, may_restart: bool
    ) -> None:
        report, until = self.report, time.monotonic() + _SECONDS
        found: JSONObject = {"status": "working"}
        while found["status"] == "working":
            if time.monotonic() > until:
                report.wrong.append(f"{text} has not ended")
                return
            await asyncio.sleep(0.05)
            try:
                answer = await caller.get(choose.choice(self.workers), task)
            except (httpx2.TransportError, ValueError):  # the worker is dead, or ends
                continue
            if "result" in answer:
                found = answer["result"]
            elif answer["error"]["code"] != -32603:
                report.wrong.append(f"{text} is not there: {answer}")
                return
        if found["status"] == "completed":
            report.results[task] = said = text_of(found)
            report.ended["result"] += 1
            if said.split()[0] != text:
                report.wrong.append(f"{text} has another result: {said}")
            return
        cause = str(found.get("error"))
        is_expected = (_TOO_OFTEN if may_restart else _LOST) in cause
        report.ended[cause[:90]] += 1
        if not is_expected:
            report.wrong.append(f"{text} has ended as {found}")

    async def _look_again(self, caller: Caller) -> None:
        """Ask each worker for each result that a client has seen."""
        for task, said in self.report.results.items():
            for worker in self.workers:
                answer = await caller.get(worker, task)
                result: Any = answer.get("result", {})
                if result.get("status") != "completed" or text_of(result) != said:
                    self.report.wrong.append(f"a finished result is lost: {said}, now {answer}")

    async def _do_harm(self) -> None:
        choose = random.Random(17)
        while time.monotonic() < self._until:
            await asyncio.sleep(self.faults * choose.uniform(0.5, 1.5))
            fault, place = choose.choice(FAULTS), choose.randrange(len(self.workers))
            self.report.faults[fault] += 1
            worker = self.workers[place]
            if fault == "pause":
                worker.pause()
                await asyncio.sleep(choose.choice((0.3, 3.0)))
                worker.go_on()
                continue
            worker.kill() if fault == "kill" else worker.stop()
            await asyncio.to_thread(self.read_log, worker)
            new = Worker(self.redis.url, *OPTIONS)
            await asyncio.to_thread(new.wait)
            self.workers[place] = new

    def read_log(self, worker: Worker) -> None:
        """Look for failures in the log of a worker that ends, and close the log."""
        text = worker.ended()
        worker.close()
        if "Traceback" in text:
            self.report.wrong.append(text[-2000:])

    def judge(self) -> None:
        """Compare what clients were told with the runs that were noted."""
        with self.ledger.client() as client:
            noted = {key.decode(): int(value) for key, value in client.hgetall("calls").items()}
        runs = Counter(noted.values())
        self.report.ended |= Counter({f"({count} runs)": number for count, number in runs.items()})
        for text, count in noted.items():
            if count > 1 and int(text.partition("-")[2]) % 2:
                self.report.wrong.append(f"{text} must not restart, and has run {count} times")
        for said in self.report.results.values():
            if said.split()[0] not in noted:
                self.report.wrong.append(f"{said} is the result of no run")


def soak(*, clients: int, workers: int, seconds: float, faults: float) -> Report:
    """Have clients begin tasks for some time, and judge what has happened."""
    with (
        running_redis() as redis,
        running_redis() as ledger,
        running_workers(redis.url, workers, *OPTIONS) as running,
    ):
        talk = Soak(redis, ledger, running, seconds, faults)
        asyncio.run(talk.run(clients))
        talk.judge()
        for worker in running:
            worker.kill()
            talk.read_log(worker)
        return talk.report


def main(arguments: list[str]) -> int:
    """Exit status: 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--faults", type=float, default=2.0, help="seconds between two")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    report = soak(
        clients=options.clients,
        workers=options.workers,
        seconds=options.seconds,
        faults=options.faults,
    )
    print(f"{report.begun} tasks in {time.monotonic() - begun:.0f} s, of {options.clients} clients")
    for title, counter in (("faults", report.faults), ("endings", report.ended)):
        print(f"{title}:")
        for what, count in counter.most_common():
            print(f"  {count:7} {what}")
    for wrong in report.wrong:
        print("WRONG:", wrong)
    if not report.wrong:
        print("each task has ended, and no finished result was lost")
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
