"""One client of `postgres.py`, as a process of its own: of dibs, of procrastinate or of pgqueuer.

    python postgres_peers.py SYSTEM prepare URL JOBS
    python postgres_peers.py SYSTEM work URL [NAME]

`prepare` makes the schema and the jobs. `work` connects, says what it is, and waits for its turns: a
line of JSON each, with the instants (of the clock that all processes share) between which it works. It
counts what it finished in that time. Nothing but the standard library is imported before its system.

Each peer does what its own worker does to fetch a job and to finish it, by the functions that its
worker calls, without the rest of the worker: no task is called, nothing is logged. That is less than
it does in earnest.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import timedelta
from importlib.metadata import version
from uuid import uuid4

CHUNK = 1_000


class Dibs:
    """The library, as anybody uses it. A turn brings the keys of its tasks: dibs hands out none."""

    def __init__(self, url: str, name: str) -> None:
        from dibs import __version__, open_board

        self.held: set[str] = set()
        around = {"DIBS_URL": url}
        self.board = open_board(agent=name, session="s1", environment=around)
        self.about = f"dibs {__version__}, psycopg {version('psycopg')}"

    def turn(self, begin: float, end: float, *, keys: list[str], renew: bool) -> tuple[int, int]:
        if renew:
            [key] = keys
            if key not in self.held:
                self.board.claim(key)
                self.held.add(key)
            work = count_until(end, lambda: self.board.renew(key))
        else:
            own = iter(keys)
            work = count_until(end, lambda: self.cycle(next(own)))
        wait_until(begin)
        return work()

    def cycle(self, key: str) -> None:
        self.board.start(key)
        self.board.complete(key)

    def close(self) -> None:
        self.board.close()


def count_until(end: float, act):
    """Acts until the time is over: how often in time, and how often in all."""

    def work() -> tuple[int, int]:
        done = 0
        while True:
            act()
            if time.monotonic() > end:
                return done, done + 1
            done += 1

    return work


def wait_until(begin: float) -> None:
    left = begin - time.monotonic()
    assert left > 0, "it was not ready in time"
    time.sleep(left)


class Peer:
    """A client whose library is asynchronous."""

    def __init__(self, url: str, _name: str) -> None:
        self.loop = self.new_loop()
        self.loop.run_until_complete(self.open(url))

    def new_loop(self):
        return asyncio.new_event_loop()

    def close(self) -> None:
        self.loop.run_until_complete(self.shut())

    def turn(self, begin: float, end: float, **_: object) -> tuple[int, int]:
        wait_until(begin)
        return self.loop.run_until_complete(self.until(end))

    async def until(self, end: float) -> tuple[int, int]:
        done = 0
        while True:
            more = await self.cycle()
            assert more, "no job was left"
            if time.monotonic() > end:
                return done, done + more
            done += more


class Procrastinate(Peer):
    """`fetch_job` and `finish_job` of its job manager; a job that is done stays as a row."""

    async def open(self, url: str) -> None:
        from procrastinate import App, PsycopgConnector
        from procrastinate.jobs import Status

        one = PsycopgConnector(conninfo=url, min_size=1, max_size=1)  # as the others have
        self.app = App(connector=one)
        await self.app.open_async()
        self.done = Status.SUCCEEDED
        self.worker = await self.app.job_manager.register_worker()
        self.about = f"procrastinate {version('procrastinate')}, psycopg {version('psycopg')}"

    async def shut(self) -> None:
        await self.app.close_async()

    async def cycle(self) -> int:
        manager = self.app.job_manager
        job = await manager.fetch_job(queues=None, worker_id=self.worker)
        if job is None:
            return 0
        await manager.finish_job(job, self.done, delete_job=False)
        return 1

    @staticmethod
    async def prepare(url: str, jobs: int) -> None:
        from procrastinate import App, PsycopgConnector

        app = App(connector=PsycopgConnector(conninfo=url))

        @app.task(name="work")
        async def work() -> None:
            pass

        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            for _ in range(0, jobs, CHUNK):
                await work.batch_defer_async(*({} for _ in range(CHUNK)))


class Pgqueuer(Peer):
    """`dequeue` and `log_jobs` of its queries; a job that is done moves to the log.

    Its worker takes ten jobs at once, and says that they are done at once, unless it is set
    otherwise.
    """

    batch = 10

    def new_loop(self):
        import uvloop  # its own command line runs on it

        return uvloop.new_event_loop()

    async def open(self, url: str) -> None:
        import asyncpg
        from pgqueuer.queries import EntrypointExecutionParameter, Queries

        self.connection = await asyncpg.connect(url)
        self.queries = Queries.from_asyncpg_connection(self.connection)
        self.entrypoints = {"work": EntrypointExecutionParameter(concurrency_limit=0)}
        self.me = uuid4()
        self.about = f"pgqueuer {version('pgqueuer')}, asyncpg {version('asyncpg')}"

    async def shut(self) -> None:
        await self.connection.close()

    async def cycle(self) -> int:
        jobs = await self.queries.dequeue(
            self.batch, self.entrypoints, self.me, None, timedelta(seconds=30)
        )
        if jobs:
            await self.queries.log_jobs([(job, "successful", None) for job in jobs])
        return len(jobs)

    @staticmethod
    async def prepare(url: str, jobs: int) -> None:
        import asyncpg
        from pgqueuer.queries import Queries

        connection = await asyncpg.connect(url)
        queries = Queries.from_asyncpg_connection(connection)
        await queries.install()
        for _ in range(0, jobs, CHUNK):
            await queries.enqueue(["work"] * CHUNK, [None] * CHUNK, [0] * CHUNK)
        await connection.close()


class PgqueuerOneByOne(Pgqueuer):
    batch = 1


SYSTEMS = {
    "dibs": Dibs,
    "procrastinate": Procrastinate,
    "pgqueuer": Pgqueuer,
    "pgqueuer-1": PgqueuerOneByOne,
}


def main(system: str, verb: str, url: str, more: str = "") -> None:
    kind = SYSTEMS[system]
    if verb == "prepare":
        asyncio.run(kind.prepare(url, int(more)))
        return
    client = kind(url, more)
    print(json.dumps(client.about), flush=True)
    for line in sys.stdin:
        worked = time.process_time()
        in_time, in_all = client.turn(**json.loads(line))
        print(json.dumps([in_time, in_all, time.process_time() - worked]), flush=True)
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
