"""Whatever somebody changes behind the board's back, in any column of any row, is found.

Each case is tried inside a transaction that is rolled back, so that one board serves for all.
"""

from __future__ import annotations

import contextlib

import pytest

from dibs.board.verify import verified
from dibs.domain import commands as c
from dibs.domain.model import TaskKey, Terms
from dibs.domain.values import HOUR
from dibs.storage.queries import BoardRow
from dibs.storage.transaction import ReadTransaction

T1, T2, T3 = map(TaskKey, ("T-1", "T-2", "T-3"))

KEYS = {
    "event": ("seq",), "task": ("id",), "ended_lease": ("task", "token_epoch", "token_number"),
    "stint": ("seq",), "note": ("seq",), "dependency": ("task", "on_task"), "actor": ("id",),
    "actor_name": ("folded",), "board": ("board",), "allowance": ("seq",), "approval": ("seq",),
}  # fmt: skip

NOT_PROVEN = {
    ("board", "uid"),  # the head of the ledger follows from it
    ("board", "created"),
    ("board", "keys"),  # lower: the next key is looked for from there
    ("board", "moved_to"), ("board", "arriving"), ("board", "ticket"),  # where the board is; not what happened
    ("task", "renewals"), ("task", "suspect"), ("task", "version"),  # changed without an event
    ("event", "request"),  # serves retries, and proves nothing
}  # fmt: skip
"""What no event contains. Sessions, requests, refusals and the clock's anchor are beside the ledger."""


@pytest.fixture
def busy(apart):
    """A board on which of everything something has happened, without its rules."""
    bench = apart
    codex, claude, ana = (
        bench.agent("codex", "s1"),
        bench.agent("claude", "s9"),
        bench.person("ana"),
    )
    request = c.Add(
        Terms("asked"), channel="mail", origin_ask_ref="<1@x>", digest="d1", url="http://x"
    )
    ana.do(request)
    ana.do(request.but(digest="d2"))
    ana.do(c.Add(Terms("second"), ("src/**",), after=(T1,)))
    ana.do(c.Add(Terms("third")))
    codex.claim(ttl=HOUR)
    codex.do(c.Stop(T1))
    codex.do(c.Start(T1))
    bench.advance(3601)
    claude.claim()
    codex.refused(c.Complete(T1, note="late result"))
    codex.do(c.Release(T1))
    claude.do(c.Note(T1, note="half way"))
    ana.do(c.Redact(T1, bench.events()[-1].seq, "a secret"))
    ana.do(c.SetActor("codex", tier=3, add_aliases=("cody",)))
    ana.do(c.Assign(T3, to="codex"))
    ana.do(c.Allow(T1, ("src/a.py",), to="codex", span=HOUR, reason="hotfix"))
    week = (bench.now() - HOUR, bench.now(), "UTC", "a week")
    ana.do(c.Approve("codex", *week))
    ana.do(c.Reopen("codex", week[0], week[1], "a week", reason="a mistake"))
    ana.do(c.Approve("codex", *week))
    ana.do(c.Pause(reason="lunch"))
    bench.advance(1)
    bench.tamper("SELECT 1")
    assert bench.faults() == ()
    return bench


class Forger:
    """Changes rows of a board, looks what its ledger says, and takes it back."""

    def __init__(self, bench) -> None:
        self.bench = bench

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Names and types, without that of the board's number."""
        if self.bench.kind == "sqlite":
            sql = f"SELECT name, type FROM pragma_table_xinfo('{table}') WHERE hidden = 0"
        else:
            sql = (
                "SELECT column_name, data_type FROM information_schema.columns WHERE"
                f" table_schema = 'dibs' AND table_name = '{table}' AND is_generated = 'NEVER'"
                " ORDER BY ordinal_position"
            )
        with self.session() as run:
            found = [(name, kind.upper()) for name, kind in run(sql)]
        return [one for one in found if one[0] != "board" or table == "board"]

    def rows(self, table: str) -> list[dict]:
        names = [name for name, _ in self.columns(table)]
        order = ", ".join(KEYS[table])
        with self.session() as run:
            found = run(f"SELECT {', '.join(names)} FROM {table} ORDER BY {order}")
            return [dict(zip(names, row, strict=True)) for row in found]

    def finds(self, *statements: str) -> bool:
        """Whether the ledger, or the rows, say that this was done."""
        with self.session() as run:
            for statement in statements:
                run(statement)
            return bool(verified(self.look(run)).faults)

    @contextlib.contextmanager
    def session(self):
        store = self.bench.store
        if self.bench.kind == "sqlite":
            connection = store.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield lambda sql: connection.execute(sql).fetchall()
            finally:
                connection.execute("ROLLBACK")
            return
        with store.connect() as connection:
            connection.autocommit = False
            connection.execute("SET search_path = dibs")

            def run(sql):
                cursor = connection.execute(sql)
                return cursor.fetchall() if cursor.description else []

            self.connection = connection
            try:
                yield run
            finally:
                connection.rollback()

    def look(self, run) -> ReadTransaction:
        [row] = run(f"SELECT {', '.join(BoardRow.fields)} FROM board")
        now, store = self.bench.machine.wall_us, self.bench.store
        if self.bench.kind == "sqlite":
            return ReadTransaction(store, BoardRow(*row), now, skewed=False)
        from dibs.storage.postgres.copy import PlainLink

        link = PlainLink(store, self.connection, self.bench.number)
        return ReadTransaction(link, BoardRow(*row), now, skewed=False)


def where(table: str, row: dict) -> str:
    if table == "board":
        return "1 = 1"
    return " AND ".join(f"{key} = {literal(row[key])}" for key in KEYS[table])


def literal(value) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


FLAGS = ("lost", "acknowledged")


def another(name: str, value, kind: str) -> str:
    """A value that is not there: one bit of a flag, one letter of a text, another number."""
    if "INT" not in kind:
        flipped = "x" if not value else value[:-1] + ("x" if value[-1] != "x" else "y")
        return literal(flipped)
    return str(1 - value if name in FLAGS else (value or 0) + 1_000)


def some(rows: list[dict], kind: str) -> list[dict]:
    """All of them in a file; of a server, which answers more slowly, the first, one within, the last."""
    places = {0, len(rows) // 2, len(rows) - 1}
    return rows if kind == "sqlite" else [row for place, row in enumerate(rows) if place in places]


@pytest.mark.parametrize("table", KEYS)
def test_a_change_of_any_column_of_any_row_is_found(busy, kind, table):
    forger = Forger(busy)
    rows, columns = forger.rows(table), forger.columns(table)
    assert rows, f"nothing of {table} is there to be changed"
    missed = [
        (name, row)
        for row in some(rows, kind)
        for name, type_ in columns
        if (table, name) not in NOT_PROVEN and name != "board"
        if not forger.finds(
            f"UPDATE {table} SET {name} = {another(name, row[name], type_)} WHERE {where(table, row)}"
        )
    ]
    assert missed == []


@pytest.mark.parametrize("table", [table for table in KEYS if table != "board"])
def test_a_row_that_is_deleted_is_found(busy, kind, table):
    forger = Forger(busy)
    rows = some(forger.rows(table), kind)
    missed = [
        row for row in rows if not forger.finds(f"DELETE FROM {table} WHERE {where(table, row)}")
    ]
    assert missed == []


@pytest.mark.parametrize("table", [table for table in KEYS if table != "board"])
def test_a_row_that_is_inserted_is_found(busy, kind, table):
    """A copy of one that is there, under a key of its own."""
    forger = Forger(busy)
    names, number = [name for name, _ in forger.columns(table)], busy.number
    own = {"uid": "x", "key": "X-9", "position": 99, "origin_ask_ref": "<2@x>", "amends": None}
    missed = []
    for row in some(forger.rows(table), kind):
        copy = row | {name: value for name, value in own.items() if row.get(name) is not None}
        for key in KEYS[table][:1]:
            copy[key] = "x" if isinstance(row[key], str) else row[key] + 900
        values = ", ".join(literal(copy[name]) for name in names)
        into = f"INSERT INTO {table} (board, {', '.join(names)}) VALUES ({number}, {values})"
        if not forger.finds(into):
            missed.append(copy)
    assert missed == []


@pytest.mark.parametrize("key", ["seq", "position"])
def test_events_that_change_places_are_found(busy, key):
    """Each with the next: in the whole ledger by number, in its chain by position."""
    forger = Forger(busy)
    events = forger.rows("event")
    pairs = [(one, two) for one in events for two in events if follows(one, two, key)]
    assert len(pairs) > 8
    for one, two in pairs[:: 1 if busy.kind == "sqlite" else 5]:
        park = f"UPDATE event SET {key} = -1 WHERE {where('event', one)}"
        back = f"UPDATE event SET {key} = {one[key]} WHERE {where('event', two)}"
        last = f"UPDATE event SET {key} = {two[key]} WHERE {key} = -1"
        assert forger.finds(park, back, last), (one, two)


def follows(one: dict, two: dict, key: str) -> bool:
    return two[key] == one[key] + 1 and (key == "seq" or one["task"] == two["task"])


def test_a_tail_of_any_length_that_is_cut_off_is_found(busy):
    forger = Forger(busy)
    last = forger.rows("event")[-1]["seq"]
    for seq in range(0, last, 1 if busy.kind == "sqlite" else 6):
        assert forger.finds(f"DELETE FROM event WHERE seq > {seq}")
        assert forger.finds(f"DELETE FROM event WHERE seq > {seq}", f"UPDATE board SET seq = {seq}")
