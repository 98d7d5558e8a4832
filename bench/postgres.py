"""Boards in PostgreSQL: cycles per second beside procrastinate and pgqueuer, renewals, round trips.

One durable server (fsync, synchronous commit) for all, in one run. A client is a process of its own,
started and connected before any clock runs. A turn is given to some clients of one system at once, by
an instant at which they begin and one at which they end; what is finished in between counts. Tasks
and jobs are there before. The turns alternate between the systems.

Like is compared with like: each client has one connection, each cycle is two transactions with the same
settings of the server, each commit waits for the disk. What the peers do in them: procrastinate's trigger
writes an entry of its log at each change of a job's state; it notifies when a job comes or is to be
aborted, not when one is fetched or finished. pgqueuer notifies when jobs come and when they leave. Nobody
listens, so dibs notifies nobody. procrastinate's pool checks its connection before each statement, as it does
in a worker.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
from measure import DATA, Figure, Report, profile, show, spread

from dibs import open_board
from dibs.machine import this_machine

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from kit.postgres import DURABLE, Node
from kit.postgres_ground import DISK
from kit.postgres_proxy import Proxy

CLIENTS = (1, 8, 32)
SECONDS = 1.0
REPEATS = 8
AHEAD = 0.1
"""A turn is told so long before it begins."""
FIRST_AHEAD = 3.0
"""The first time, a client claims what it renews."""

FASTEST = {"procrastinate": 1_500, "pgqueuer": 9_000, "pgqueuer-1": 2_000}
"""Jobs per second for which enough are prepared."""
FASTEST_DIBS = 800
PROFILED = 300
COUNTED = 0.4

SETTINGS = {
    **DURABLE,
    "max_connections": "500",
    "shared_buffers": "256MB",
    "checkpoint_timeout": "1h",  # one before the first turn, none in between
    "max_wal_size": "8GB",
    "min_wal_size": "8GB",  # its log is written to files that are there, as on a server that has run for long
}
SCRIPT = Path(__file__).with_name("postgres_peers.py")
PEERS = DATA / "queues"
INSTALL_SECONDS = 300
PACKAGES = {"procrastinate": "procrastinate", "pgqueuer": "pgqueuer"}

ONE, EIGHT = "dibs, one board", "dibs, eight boards"
PROCRASTINATE = "procrastinate"
TEN, SINGLE = "pgqueuer, ten at once", "pgqueuer, one by one"
RENEWALS = "dibs, renewals"


# The peers.


def python_of_peers() -> Path:
    return PEERS / "bin" / "python"


def missing() -> dict[str, str]:
    """Installs the peers; which of them is not there, and why."""
    python = python_of_peers()
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS)], check=True)
    return {name: why for name in PACKAGES if (why := installed(python, name))}


def installed(python: Path, name: str) -> str:
    if imports(python, name):
        return ""
    wanted = [name, "psycopg[binary,pool]", "asyncpg", "uvloop"]
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    try:
        subprocess.run(
            command, check=True, timeout=INSTALL_SECONDS, stderr=subprocess.PIPE, text=True
        )
    except subprocess.TimeoutExpired:
        return f"pip install {name} took more than {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        return f"it cannot be installed: {(error.stderr or str(error)).strip().splitlines()[-1]}"
    return "" if imports(python, name) else f"{name} cannot be imported"


def imports(python: Path, name: str) -> bool:
    command = [python, "-c", f"import {name}, psycopg_pool, asyncpg, uvloop"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


# Clients.


class Client:
    """A process that works when it is told to."""

    def __init__(self, system: str, python: Path | str, url: str, name: str) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self.process = subprocess.Popen(
            [python, SCRIPT, system, "work", url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def ready(self) -> str:
        return self.answer()

    def send(self, turn: dict) -> None:
        print(json.dumps(turn), file=self.process.stdin, flush=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise RuntimeError(self.errors.read()[-2000:])
        return json.loads(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.errors.close()


class System:
    """One that is measured: its database, and its clients."""

    def __init__(self, label: str, node: Node, system: str, python: Path | str) -> None:
        self.label, self.node, self.system, self.python = label, node, system, python
        self.database = re.sub(r"\W+", "_", label)
        self.clients: list[Client] = []
        self.about = ""
        self.finished = 0
        with node.connect() as connection:
            connection.execute(f"CREATE DATABASE {self.database}".encode())

    def prepare(self, jobs: int) -> None:
        command = [self.python, SCRIPT, self.system, "prepare", self.url(), str(jobs)]
        subprocess.run(command, check=True, capture_output=True)

    def url(self, _client: int = 0) -> str:
        return self.node.url(self.database)

    def start(self, clients: int) -> None:
        self.clients = [
            Client(self.system, self.python, self.url(number), f"w{number}")
            for number in range(clients)
        ]

    def work_for(self, _client: int, _clients: int, _seconds: float) -> dict:
        return {}

    def used(self, _client: int, _work: dict, count: int) -> None:
        self.finished += count

    def turn(self, clients: int, seconds: float, ahead: float | None = None) -> tuple[int, float]:
        """What was finished in time, by so many clients at once; their processor time per cycle."""
        works = [self.work_for(number, clients, seconds) for number in range(clients)]
        begin = time.monotonic() + (ahead or AHEAD + clients * 0.01)
        for client, work in zip(self.clients, works):
            client.send({"begin": begin, "end": begin + seconds, **work})
        found = [client.answer() for client in self.clients[:clients]]
        for number, (_, count, _) in enumerate(found):
            self.used(number, works[number], count)
        processor = sum(each for _, _, each in found) / sum(count for _, count, _ in found)
        return sum(in_time for in_time, _, _ in found), processor

    def done(self) -> int:
        """How many the server says are done."""
        return self.node.query(
            {
                "procrastinate": "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
                "pgqueuer": "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'",
                "pgqueuer-1": "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'",
                "dibs": "SELECT count(*) FROM dibs.task WHERE state = 'complete'",
            }[self.system],
            self.database,
        )

    def close(self) -> None:
        for client in self.clients:
            client.close()


class Dibs(System):
    """A client has one board; a turn brings it tasks that nobody else has."""

    def __init__(self, label: str, node: Node, boards: int) -> None:
        super().__init__(label, node, "dibs", sys.executable)
        self.names = [f"b{number}" for number in range(boards)]
        self.keys: dict[str, list[str]] = {}

    def prepare(self, jobs: int) -> None:
        """The first board has the tasks for a client that is alone; the others need fewer."""
        for number, name in enumerate(self.names):
            tasks = jobs if number == 0 else jobs // 2
            make_board(self.node, self.database, self.address(name), tasks)
            self.keys[name] = [f"T-{each + 1}" for each in range(tasks)]

    def address(self, name: str) -> str:
        return f"{self.node.url(self.database)}#{name}"

    def name_of(self, client: int) -> str:
        return self.names[client % len(self.names)]

    def url(self, client: int = 0) -> str:
        return self.address(self.name_of(client))

    def take(self, count: int, client: int = 0) -> list[str]:
        keys = self.keys[self.name_of(client)]
        taken, keys[:] = keys[:count], keys[count:]
        assert len(taken) == count, "no task is left"
        return taken

    def work_for(self, client: int, clients: int, seconds: float) -> dict:
        count = int(FASTEST_DIBS * seconds / clients * 1.5) + 30
        return {"keys": self.take(count, client), "renew": False}

    def used(self, client: int, work: dict, count: int) -> None:
        super().used(client, work, count)
        self.keys[self.name_of(client)] += work["keys"][count:]


class Renewals(Dibs):
    """The clients of the one board, each with a task that it holds."""

    def __init__(self, of: Dibs) -> None:
        self.of, self.label, self.system, self.node = of, RENEWALS, "dibs", of.node
        self.database = of.database

    def start(self, clients: int) -> None:
        self.held = [self.of.take(1) for _ in range(clients)]
        self.clients = self.of.clients

    def work_for(self, client: int, _clients: int, _seconds: float) -> dict:
        return {"keys": self.held[client], "renew": True}

    def used(self, _client: int, _work: dict, count: int) -> None:
        pass

    def close(self) -> None:
        pass


def make_board(node: Node, database: str, address: str, tasks: int) -> None:
    """A board with open tasks T-1 to T-n: the first by the rules, the rest as copies of its row.

    Each has its `added` event. The digests are copies too: only time is measured here.
    """
    from dibs.board.locate import Place
    from dibs.opening import create_at

    board, _ = create_at(Place(tempfile.gettempdir(), url=address))
    number = board.store.find()
    board.store.close()
    with open_board(agent="bench", session="s0", environment={"DIBS_URL": address}) as opened:
        opened.add("work")
    with node.connect(database) as connection, connection.transaction():
        copy(
            connection, "task", number, tasks, id="n", uid="lpad(n::text, 32, '0')", key="'T-' || n"
        )
        copy(connection, "event", number, tasks, seq="last + n - 1", task="n")
        more = {"board": number, "more": tasks - 1}
        connection.execute(
            "UPDATE dibs.board SET seq = seq + %(more)s, tasks = tasks + %(more)s, "
            "keys = keys + %(more)s WHERE board = %(board)s",
            more,
        )


def copy(connection, table: str, board: int, tasks: int, **changed: str) -> None:
    which = "id" if table == "task" else "task"
    found = connection.execute(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = 'dibs' AND table_name = %s AND is_generated = 'NEVER' "
        "ORDER BY ordinal_position",
        (table,),
    )
    columns = [name for (name,) in found]
    values = ", ".join(changed.get(column, column) for column in columns)
    connection.execute(
        f"INSERT INTO dibs.{table} SELECT {values} FROM dibs.{table}, "
        f"(SELECT seq AS last FROM dibs.board WHERE board = {board}) AS counted, "
        f"generate_series(2, {tasks}) AS n WHERE board = {board} AND {which} = 1".encode()
    )


# What the server does for it.


class Watch:
    """What one turn cost the server: bytes of its log, processor time."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.server = psutil.Process(node.pid)
        self.connection = node.connect()
        self.begin()

    def begin(self) -> None:
        self.written, self.worked = self.log(), self.processor()

    def end(self) -> tuple[int, float]:
        worked = self.processor()
        spent = sum(each - self.worked.get(pid, 0.0) for pid, each in worked.items())
        return self.log() - self.written, spent

    def log(self) -> int:
        [row] = self.connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'")
        return int(row[0])

    def processor(self) -> dict[int, float]:
        found = {}
        for process in self.server.children():
            with suppress(psutil.NoSuchProcess):  # a vacuum has ended
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
        return found


class Trips(Proxy):
    """Remembers which statements each round trip carried."""

    def reset(self) -> None:
        super().reset()
        self.trips: list[list[str]] = []
        self.begun: list[str] = []

    def count(self, statements: list[str], *, waits: bool) -> None:
        super().count(statements, waits=waits)
        with self.lock:
            self.begun += statements
            if waits:
                self.trips.append(self.begun)
                self.begun = []


def short(statement: str) -> str:
    """What a statement does, in a few words."""
    text = " ".join(statement.split())
    if "pg_advisory" in text:
        return "lock"
    changes = re.findall(r"(INSERT|UPDATE|DELETE)(?: INTO| FROM)? dibs\.(\w+)", text)
    if changes:
        return " + ".join(f"{verb} {table}" for verb, table in changes)
    tables = re.findall(r"dibs\.(\w+)", text)
    verb = text.split()[0]
    return f"{verb} {tables[0]}" if tables and verb != "BEGIN" else " ".join(text.split()[:3])


def grouped(names: list[str]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for name in names:
        counts[name] += 1
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def claims(system: Dibs) -> tuple[list[list[str]], int, list[list[str]], list[list[str]]]:
    """The round trips of a first claim with its connection, and those of a warm claim and renewal."""
    with Trips(system.node.socket) as proxy:
        url = f"{proxy.url(system.database)}#{system.names[0]}"
        first, second, third = system.take(3)
        with open_board(
            agent="known", session="s1", environment={"DIBS_URL": system.url()}
        ) as board:
            board.claim(first)  # the actor and its session are known from now on
        proxy.reset()
        with open_board(agent="known", session="s1", environment={"DIBS_URL": url}) as board:
            board.claim(second)
            fresh, connections = proxy.trips, proxy.connections
            proxy.reset()
            board.claim(third)
            warm = proxy.trips
            proxy.reset()
            board.renew(third)
            renewal = proxy.trips
        return fresh, connections, warm, renewal


def counted(system: System) -> tuple[float, float]:
    """Round trips and statements per cycle of one warm client."""
    with Trips(system.node.socket) as proxy:
        url = proxy.url(system.database)
        if isinstance(system, Dibs):
            url += f"#{system.names[0]}"
        client = Client(system.system, system.python, url, "counted")
        client.ready()
        for _ in range(2):
            proxy.reset()
            work = system.work_for(0, 1, COUNTED)
            begin = time.monotonic() + AHEAD
            client.send({"begin": begin, "end": begin + COUNTED, **work})
            _, count, _ = client.answer()
            system.used(0, work, count)
        found = proxy.round_trips / count, len(proxy.statements) / count
        client.close()
        return found


def statements(system: Dibs) -> list[str]:
    """What the server says about the time of each statement of one client, per cycle."""
    logged_url = f"{system.node.url(system.database)}&options=-c%20log_min_duration_statement%3D0"
    address = {"DIBS_URL": f"{logged_url}#{system.names[0]}"}
    with open_board(agent="told", session="s1", environment=address) as board:
        for key in system.take(20):
            cycle(board, key)
        before = len(system.node.log.read_text())
        for key in system.take(PROFILED):
            cycle(board, key)
    system.finished += PROFILED + 20
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for duration, kind, text in DURATION.findall(system.node.log.read_text()[before:]):
        found[short(text)][kind].append(float(duration) * 1000)
    lines, whole = [], [0.0, 0.0, 0.0]
    width = max(map(len, found), default=0) + 2
    for name, kinds in found.items():
        count = len(kinds["execute"]) / PROFILED
        spent = [
            count * statistics.median(kinds[kind] or [0]) for kind in ("parse", "bind", "execute")
        ]
        lines.append(f"{name:<{width}}{count:8.1f}" + "".join(f"{each:10.0f}" for each in spent))
        if name != "COMMIT":
            whole = [a + b for a, b in zip(whole, spent)]
    head = f"{'':<{width}}{'times':>8}{'parse us':>10}{'plan us':>10}{'run us':>10}"
    return [
        head,
        *lines,
        f"{'all but COMMIT':<{width + 8}}" + "".join(f"{each:10.0f}" for each in whole),
    ]


DURATION = re.compile(r"duration: ([0-9.]+) ms  (parse|bind|execute) [^:]*: (.*(?:\n[ \t]+.*)*)")


# The measurement.


class Points:
    """All turns of one system with so many clients."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.log: list[float] = []
        self.client: list[float] = []
        self.server: list[float] = []

    @property
    def best(self) -> float:
        return max(self.rates)


def measure(
    clients: tuple[int, ...] = CLIENTS, seconds: float = SECONDS, repeats: int = REPEATS
) -> Report:
    absent = missing()
    load = " ".join(f"{each:.2f}" for each in os.getloadavg())
    began = f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}; load when begun {load}"
    with ExitStack() as stack:
        node = Node(SETTINGS, place=DISK).init().start()
        stack.callback(node.remove)
        systems = prepared(node, absent, seconds * len(clients) * repeats)
        for system in systems:
            system.start(max(clients))
            stack.callback(system.close)
        for system in systems[:-1]:
            system.about, *_ = [client.ready() for client in system.clients]
        for system in systems[:-1]:
            with node.connect(system.database) as connection:
                connection.execute("VACUUM ANALYZE")
        with node.connect() as connection:
            connection.execute("CHECKPOINT")
        points = turns(node, systems, clients, seconds, repeats)
        one = systems[0]
        trips = {system.label: counted(system) for system in systems[:-1]}
        claim = claims(one)
        server = statements(one)
        keys = one.take(PROFILED + 20)
        with open_board(agent="p", session="s1", environment={"DIBS_URL": one.url()}) as board:
            for key in keys[:20]:
                cycle(board, key)
            where = profile(lambda: [cycle(board, key) for key in keys[20:]])
        one.finished += len(keys)
        for system in systems[:-1]:
            assert system.done() == system.finished, (system.label, system.done(), system.finished)
        about = [
            f"{began}; {this_machine().file_system(DISK) or 'file system unknown'}; all by socket",
            f"PostgreSQL {node.query('SHOW server_version')}, "
            + ", ".join(f"{name}={node.query(f'SHOW {name}')}" for name in DURABLE),
            "; ".join(dict.fromkeys(system.about for system in systems[:-1])),
        ]
    found = report_of(points, trips, claim, absent, about, seconds, repeats)
    found.lines.extend(
        ["", f"where the time of the server goes, one client, per cycle ({PROFILED} cycles):"]
    )
    found.lines.extend(
        [*server, "", f"where the time of one client goes ({PROFILED} cycles under cProfile):"]
    )
    found.lines.extend([*where, "", *ABOUT.splitlines()])
    return found


def cycle(board, key: str) -> None:
    board.start(key)
    board.complete(key)


def prepared(node: Node, absent: dict[str, str], seconds: float) -> list[System]:
    """The boards first, then the peers that are there; the renewals, which use a board, last."""
    one, eight = Dibs(ONE, node, 1), Dibs(EIGHT, node, 8)
    systems: list[System] = [one, eight]
    python = python_of_peers()
    if "procrastinate" not in absent:
        systems.append(System(PROCRASTINATE, node, "procrastinate", python))
    if "pgqueuer" not in absent:
        systems.append(System(TEN, node, "pgqueuer", python))
        systems.append(System(SINGLE, node, "pgqueuer-1", python))
    for system in systems:
        system.prepare(int(FASTEST.get(system.system, FASTEST_DIBS) * (seconds + 2)))
    return [*systems, Renewals(one)]


def turns(node: Node, systems, clients, seconds: float, repeats: int):
    points: dict[tuple[str, int], Points] = defaultdict(Points)
    watch = Watch(node)
    for system in systems:
        system.turn(max(clients), min(seconds, 0.5), FIRST_AHEAD)  # warm
    for repeat in range(repeats):
        for number in clients:
            for place in range(len(systems)):
                system = systems[(place + repeat) % len(systems)]
                watch.begin()
                count, processor = system.turn(number, seconds)
                written, worked = watch.end()
                point = points[system.label, number]
                point.rates.append(count / seconds)
                point.log.append(written / max(count, 1))
                point.client.append(processor)
                point.server.append(worked / max(count, 1))
    return points


# What is told.

ABOUT = """\
A cycle of each is two commits that wait for the disk, except that pgqueuer as it comes takes ten jobs in
one commit and finishes ten in another: a fifth of a commit for each. One by one it can be compared.

What each does for it: a job of pgqueuer is one prepared statement that marks any free row, and one that
moves it to a log. procrastinate calls a function for each, and keeps two entries of a log (it checks its
connection and begins and commits in round trips of their own). dibs is asked for this task and no other;
it reads, decides in the client, and writes three chained events, each with the id by which somebody who was
cut off finds it again, the row of the task twice (with its five indexes: state and holder stand in two of
them), the row of the board twice, and the lease that ended. It says this in half as many round trips, and all
that a transaction changes in one statement. Where processors are few, the sum of "client us" and "server us"
is the limit.

Statements are prepared, as no pooler stands between. Behind one they are parsed and planned each time.

One board: its changes come one after another, each from the first round trip to the end of its sync, so
more clients add nothing. Eight boards share the syncs. Renewals share the lock, and each other's syncs.

Why two round trips and not one: what is decided depends on rows that are read after the lock, and the
rules are in the client. The first takes the lock and reads, the second writes and commits. One would need
the rules in the database too. A client that begins finds its board by name first; and what it could ask
ahead if it knew its own number (its request, its session) it asks when it knows it."""


def report_of(points, trips, claim, absent, about, seconds, repeats) -> Report:
    clients = sorted({number for _, number in points})
    labels = list(dict.fromkeys(label for label, _ in points))
    lines = [
        *about,
        f"best of {repeats} alternating turns of {seconds:g} s (lowest / median / highest), per second",
        "",
        f"{'clients':<24}" + "".join(f"{number:>26}" for number in clients),
    ]
    for label in sorted(labels, key=lambda label: label == RENEWALS):
        row = [
            f"{points[label, number].best:7.0f} {spread(points[label, number].rates, '{:.0f}'):>18}"
            for number in clients
        ]
        lines.append(f"{label:<24}" + "".join(f"{each:>26}" for each in row))
    lines += [f"{name}: not measured: {why}" for name, why in absent.items()]
    lines += ["", *costs(points, trips, clients), "", *told_claims(claim)]
    return Report("PostgreSQL", figures(points, claim, clients, absent), lines)


COSTS = ("round trips", "statements", "log bytes", "client us", "server us")


def costs(points, trips, clients) -> list[str]:
    middle = clients[len(clients) // 2]
    lines = [
        f"what one cycle costs (with {middle} clients; medians; round trips and statements: one client)",
        "".join([f"{'':<24}", *(f"{name:>12}" for name in COSTS)]),
    ]
    for label in dict.fromkeys(label for label, _ in points):
        point = points[label, middle]
        log, client, server = map(statistics.median, (point.log, point.client, point.server))
        round_trips = "".join(f"{each:12.1f}" for each in trips.get(label, ())) or " " * 24
        lines.append(f"{label:<24}{round_trips}{log:12.0f}{client * 1e6:12.0f}{server * 1e6:12.0f}")
    return lines


def told_claims(claim) -> list[str]:
    fresh, connections, warm, renewal = claim
    begun = "a connection" if connections == 1 else f"{connections} connections"
    lines = [
        f"round trips of a claim: {len(warm)} when warm; {len(fresh)} and {begun} when a client begins"
    ]
    for name, trips in (("warm claim", warm), ("first claim", fresh), ("warm renewal", renewal)):
        for number, trip in enumerate(trips, 1):
            lines.append(f"  {name}, {number}: {grouped([short(each) for each in trip])}")
    return lines


def figures(points, claim, clients, absent) -> list[Figure]:
    found = []
    wanted = [
        (EIGHT, PROCRASTINATE, "procrastinate", True),
        (ONE, PROCRASTINATE, "procrastinate", False),
        (EIGHT, SINGLE, "pgqueuer", False),
        (EIGHT, TEN, "pgqueuer", False),
    ]
    for ours, theirs, package, goal in wanted:
        for number in clients:
            name = f"cycles per second, {number} clients, {ours} / {theirs}"
            name = name.replace(" 1 clients", " 1 client")
            if package in absent:
                found.append(Figure(name, "not measured", "", None, absent[package]))
                continue
            mine, other = points[ours, number], points[theirs, number]
            ratio = mine.best / other.best
            rounds = spread([a / b for a, b in zip(mine.rates, other.rates)])
            more = "more than 1" if goal else ""
            found.append(
                Figure(name, f"{ratio:.2f}", more, ratio > 1 if goal else None, f"turns {rounds}")
            )
    for number in clients:
        renewed = points[RENEWALS, number]
        who = "1 client" if number == 1 else f"{number} clients"
        found.append(
            Figure(
                f"renewals per second, one board, {who}",
                f"{renewed.best:.0f}",
                "",
                None,
                f"turns {spread(renewed.rates, '{:.0f}')}",
            )
        )
    fresh, _, warm, renewal = claim
    found.append(
        Figure(
            "round trips of a claim, warm",
            str(len(warm)),
            "",
            None,
            f"first of a client {len(fresh)} and its connection; a renewal {len(renewal)}",
        )
    )
    return found


if __name__ == "__main__":
    show(measure())
