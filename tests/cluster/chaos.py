"""A chat of many clients with workers that are killed, paused, and stopped at random.

    python -m tests.cluster.chaos --clients 50 --workers 4 --seconds 180

Each client calls tools one after the other, in a session or without one; its requests go to one
worker after the other. Each call is noted by its handler in a second Redis, which no fault reaches.
The program ends with an error unless every call has ended once and not by a timeout, no call was
served twice, each call with a result was served, no worker has logged a traceback, and nothing is
left in Redis beyond its time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs

from sansmcp import (
    ErrorReceived,
    JSONObject,
    MessageIgnored,
    OutgoingRequest,
    RequestFailed,
    ResponseReceived,
)
from sansmcp_io.asyncio import (
    Call,
    Client,
    ConnectionLost,
    PeerError,
    RequestRefused,
    RequestTimeout,
    StartFailed,
)
from tests.support.redis_server import RedisServer, running_redis
from tests.support.workers import InTurn, Worker, client_of, running_workers, tool

FAULTS: Final = ("kill worker", "pause worker", "stop worker", "kill redis", "pause redis")
PAUSES: Final = (0.3, 3.0)
"""The seconds that a worker or Redis is paused, as a random fault."""
_KNOWN: Final = (PeerError, ConnectionLost, RequestRefused, RequestTimeout, StartFailed)


@attrs.define
class Report:
    """What has happened.

    Attributes:
        begun: Calls begun.
        ended: How calls have ended.
        faults: What was done to workers and Redis.
        wrong: What must not happen.
        results: The texts that calls have got.
    """

    begun: int = 0
    ended: Counter[str] = attrs.Factory(Counter[str])
    faults: Counter[str] = attrs.Factory(Counter[str])
    wrong: list[str] = attrs.Factory(list[str])
    results: dict[str, str] = attrs.Factory(dict[str, str])


@attrs.frozen
class Endings:
    """A trace of a client, which counts the endings of each request.

    Attributes:
        wrong: What must not happen.
        counts: The endings of each request.
    """

    wrong: list[str]
    counts: Counter[OutgoingRequest] = attrs.Factory(Counter[OutgoingRequest])

    def sent(self, connection: str, data: bytes) -> None:
        """Nothing is known of bytes."""

    def received(self, connection: str, data: bytes) -> None:
        """Nothing is known of bytes."""

    def happened(self, event: Any) -> None:
        """Count endings; a second response has no request, and so it is ignored."""
        match event:
            case ResponseReceived() | ErrorReceived() | RequestFailed():
                self.counts[event.request] += 1
            case MessageIgnored(answer=answer) if answer is not None:
                self.wrong.append(f"a response came for no request: {str(answer)[:200]}")
            case _:
                pass

    def judge(self, calls: int) -> None:
        """Compare with the calls that have ended."""
        ended = [one for one in self.counts if one.method == "tools/call"]
        # Fewer requests than calls: a call that cannot be sent ends without one.
        self.wrong.extend(
            f"{one!r} has ended {self.counts[one]} times" for one in ended if self.counts[one] != 1
        )
        if len(ended) < calls:
            self.wrong.append(f"{calls} calls have a response, of {len(ended)} requests")


@attrs.define
class Chat:
    """Clients, workers and Redis, for some time.

    Attributes:
        redis: What the workers share.
        ledger: What notes the calls.
        workers: The workers, some of which may be dead for a moment.
        seconds: How long clients begin calls.
        most: How many calls are begun at most.
        faults: Seconds between two faults; None: there are none.
        plan: The faults, one after the other; None: they are random.
    """

    redis: RedisServer
    ledger: RedisServer
    workers: list[Worker]
    seconds: float
    most: int
    faults: float | None
    plan: Sequence[tuple[str, float]] | None = None
    report: Report = attrs.Factory(Report)
    ending: bool = False

    async def run(self, clients: int) -> None:
        """Have the clients talk, and do harm meanwhile."""
        harm = asyncio.create_task(self._do_harm())
        talks = [asyncio.create_task(self._talk(number)) for number in range(clients)]
        await asyncio.wait(talks, timeout=self.seconds)
        self.ending = True
        _, hanging = await asyncio.wait(talks, timeout=60)
        harm.cancel()
        await asyncio.wait([harm])
        if not harm.cancelled() and (error := harm.exception()) is not None:
            self.report.wrong.append(f"no more harm was done: {error!r}")
        for talk in hanging:
            self.report.wrong.append(f"a client still waits: {talk.get_stack(limit=3)}")
            talk.cancel()
        for talk in talks:
            if talk not in hanging and (error := talk.exception()) is not None:
                self.report.wrong.append(f"a client has failed: {error!r}")

    async def _talk(self, number: int) -> None:
        choose = random.Random(number)
        revision = "2026-07-28" if number % 5 == 4 else "2025-11-25"
        while not self._is_over():
            transport = InTurn(self.workers, number)
            endings = Endings(self.report.wrong)
            answered = 0
            capabilities: JSONObject = {"sampling": {}}
            try:
                async with client_of(
                    transport,
                    revisions=[revision],
                    on_request=_sample,
                    capabilities=capabilities,
                    request_timeout=30.0,
                    trace=endings,
                ) as client:
                    while not self._is_over():
                        answered += await self._call(client, number, choose, revision)
            except _KNOWN as error:  # of the start: no call was begun
                self.report.ended[f"(start) {_cause(error)}"] += 1
                await asyncio.sleep(0.2)
            endings.judge(answered)

    def _is_over(self) -> bool:
        return self.ending or self.report.begun >= self.most

    async def _call(
        self, client: Client, number: int, choose: random.Random, revision: str
    ) -> bool:
        """Call a tool, and return whether there was a result."""
        report = self.report
        report.begun += 1
        name = f"{number}-{report.begun}"
        chosen = choose.random()
        kind = "once" if chosen < 0.85 else "progress" if chosen < 0.95 else "sample"
        if revision == "2026-07-28":
            kind = "once"
        try:
            if kind == "once":
                seconds = choose.choice((0, 0, 0, 0, 0.05, 0.5))
                found = await tool(
                    client, "once", text=name, ledger=self.ledger.port, seconds=seconds
                )
                report.results[name] = found
                cause = "result"
                if not found.startswith(f"{name} "):
                    report.wrong.append(f"{name} has got the result of another call: {found}")
            elif kind == "progress":
                cause = await tool(client, "progress", steps=3)
            else:
                cause = await tool(client, "sample")
        except _KNOWN as error:
            report.ended[f"{kind}: {_cause(error)}"] += 1
            if isinstance(error, RequestTimeout) and kind != "sample":
                # The answer of a client to a question may get lost, but no other message.
                report.wrong.append(f"{name} has ended by a timeout")
            await asyncio.sleep(0.05)
            return False
        report.ended[cause] += 1
        return True

    async def _do_harm(self) -> None:
        for fault, seconds in self.plan or ():
            await asyncio.sleep(3)
            self.report.faults[fault] += 1
            await self._harm(fault, random.Random(7), (seconds,))
        if self.faults is None:
            return
        choose = random.Random(7)
        while True:
            await asyncio.sleep(self.faults * choose.uniform(0.5, 1.5))
            fault = choose.choice(FAULTS)
            self.report.faults[fault] += 1
            await self._harm(fault, choose, PAUSES)

    async def _harm(self, fault: str, choose: random.Random, pauses: Sequence[float]) -> None:
        place = choose.randrange(len(self.workers))
        worker = self.workers[place]
        match fault:
            case "kill worker":
                worker.kill()
            case "stop worker":
                worker.stop()
            case "pause worker":
                worker.pause()
                await asyncio.sleep(choose.choice(pauses))
                worker.go_on()
                return
            case "kill redis":
                await asyncio.to_thread(self.redis.kill)
                await asyncio.sleep(choose.choice((0.1, 1.0)))
                await asyncio.to_thread(self.redis.start)
                return
            case _:
                self.redis.pause()
                await asyncio.sleep(choose.choice(pauses))
                self.redis.go_on()
                return
        await asyncio.to_thread(self.read_log, worker)
        new = Worker(self.redis.url, "lease=1", "keep_events=5")
        self.workers[place] = new
        await asyncio.to_thread(new.wait)

    def read_log(self, worker: Worker) -> None:
        """Look for failures in the log of a worker that ends, and close the log."""
        text = worker.ended()
        worker.close()
        if "Traceback" in text:
            self.report.wrong.append(text[-2000:])

    def judge(self) -> None:
        """Compare what clients were told with what handlers have noted."""
        report = self.report
        with self.ledger.client() as client:
            served = {key.decode(): int(value) for key, value in client.hgetall("calls").items()}
        for name, count in served.items():
            if count > 1:
                report.wrong.append(f"{name} was served {count} times")
        for name in report.results:
            if name not in served:
                report.wrong.append(f"{name} has a result, and was not served")
        ended = sum(count for how, count in report.ended.items() if not how.startswith("("))
        if ended != report.begun:
            report.wrong.append(f"{report.begun} calls were begun, and {ended} have ended")


async def _sample(call: Call) -> JSONObject:
    content = {"type": "text", "text": "sampled"}
    return {"role": "assistant", "content": content, "model": "m"}


def _cause(error: Exception) -> str:
    status = getattr(error, "status", None)
    what = type(error).__name__
    return f"{what} {status}: {str(error)[:70]}" if status else f"{what}: {str(error)[:70]}"


def chat(
    *,
    clients: int,
    workers: int,
    seconds: float,
    most: int = sys.maxsize,
    faults: float | None = None,
    plan: Sequence[tuple[str, float]] | None = None,
) -> Report:
    """Have clients talk to workers for some time, and judge what has happened."""
    with (
        running_redis() as redis,
        running_redis() as ledger,
        running_workers(redis.url, workers, "lease=1", "keep_events=5") as running,
    ):
        talk = Chat(redis, ledger, running, seconds, most, faults, plan)
        asyncio.run(talk.run(clients))
        talk.judge()
        for worker in running:
            worker.kill()
            talk.read_log(worker)
        until = time.monotonic() + 20
        while redis.keys and time.monotonic() < until:
            time.sleep(0.1)  # keys expire by themselves, and nothing says when
        left = [key for key in redis.keys if not key.endswith(":changes")]
        if left:
            talk.report.wrong.append(f"Redis still has {left}")
        return talk.report


def main(arguments: list[str]) -> int:
    """Exit status: 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--calls", type=int, default=sys.maxsize, help="begin at most so many")
    parser.add_argument("--faults", type=float, default=2.0, help="seconds between two; 0: none")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    report = chat(
        clients=options.clients,
        workers=options.workers,
        seconds=options.seconds,
        most=options.calls,
        faults=options.faults or None,
    )
    print(f"{report.begun} calls in {time.monotonic() - begun:.0f} s, of {options.clients} clients")
    for title, counter in (("faults", report.faults), ("endings", report.ended)):
        print(f"{title}:")
        for what, count in counter.most_common():
            print(f"  {count:7} {what}")
    for wrong in report.wrong:
        print("WRONG:", wrong)
    if not report.wrong:
        print("every call ended once, none was served twice, and nothing is left in Redis")
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
