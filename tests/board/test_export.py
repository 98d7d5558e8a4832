"""A board as lines of JSON: everything is in them, and they become the same board, or nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from hashlib import sha256

import pytest

from dibs.board.execute import Board
from dibs.board.locate import copier
from dibs.board.settings import Settings
from dibs.board.transfer import export, move
from dibs.board.transfer.scratch import new_file
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.domain.values import HOUR, SECOND
from dibs.storage import jsonl
from dibs.storage.copy import TABLES
from dibs.storage.queries import NEWEST
from kit.boards import STORES, Bench, FakeMachine, new_store, of_a_file

K = TaskKey("T-1")
SAVES = {"export": export.export, "backup": move.backup}


@pytest.fixture
def busy(apart):
    """A board with everything on it: notes, ended leases, requests, refusals, a running lease."""
    bench = apart
    for n in range(4):
        bench.add(f'task {n} \u00fc\u2603 "\u2028\t', scope=("src/**",))
    codex, ana = bench.agent(), bench.person()
    codex.claim(ttl=HOUR)
    codex.do(c.Note(K, note="half way\n\u2603"), "r-1")
    codex.claim("T-2")
    codex.do(c.Complete(TaskKey("T-2"), note="done"))
    ana.do(c.Assign(TaskKey("T-3"), to="codex"))
    ana.do(c.Depend(TaskKey("T-4"), on=(K,)))
    bench.agent("claude", "s9").refused(c.Claim(K))
    bench.advance(600)
    return bench


@pytest.fixture(params=STORES)
def target(request, tmp_path, busy):
    """A place without a board, of each kind."""
    store = new_store(request.param, tmp_path / "target", busy.machine, apart=True)
    yield store
    store.close()


def at(store) -> Board:
    return Board(store, Settings())


def exported(bench, path):
    export.export(bench.board, str(path))
    return path


def brought(bench, store, path, **options):
    return export.import_board(at(store), str(path), bench.person().identity, **options)


def tables(path) -> dict[str, list[dict]]:
    found = {table: [] for table in TABLES}
    for line in path.read_bytes().splitlines()[1:-1]:
        table, row = json.loads(line)
        found[table].append(row)
    return found


def has_no_board(store) -> bool:
    try:
        with store.another().read():
            return False
    except Refused as problem:
        return problem.code == "no_board"


# Out.


def test_an_export_is_one_private_file_that_says_what_it_is(busy, tmp_path):
    path = exported(busy, tmp_path / "board.jsonl")
    lines = path.read_bytes().split(b"\n")
    assert (lines[-1], stat.S_IMODE(path.stat().st_mode)) == (b"", 0o600)
    head, last = json.loads(lines[0]), json.loads(lines[-2])
    with busy.store.read() as tx:
        assert (head["format"], head["schema"], head["board"]) == ("dibs", NEWEST, tx.board.uid)
    assert head["rows"] == len(lines) - 3 == sum(last["counts"].values())
    assert last["sha256"] == sha256(b"\n".join(lines[:-2]) + b"\n").hexdigest()
    assert [p.name for p in tmp_path.iterdir() if "part" in p.name] == []


@pytest.mark.parametrize("how", SAVES)
@pytest.mark.parametrize("planted", ["link", "file"])
def test_nothing_that_waits_at_the_name_of_a_part_is_followed(busy, tmp_path, how, planted):
    victim, path = tmp_path / "victim", tmp_path / "saved"
    victim.write_text("theirs")
    victim.chmod(0o644)
    part = tmp_path / "saved.part"
    if planted == "link":
        part.symlink_to(victim)
    else:
        os.link(victim, part)
    SAVES[how](busy.board, str(path))
    assert victim.read_text() == part.read_text() == "theirs"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.glob("*saved*")) == ["saved", "saved.part"]
    assert list(tmp_path.glob(".dibs-*")) == []


HALF_WRITTEN = """
import sys
from dibs.board.transfer.scratch import new_file
with new_file(sys.argv[1], "a backup"):
    print(flush=True)
    sys.stdin.read()
"""


def test_the_partial_file_of_a_killed_process_is_removed_by_the_next_one_in_that_folder(tmp_path):
    """Not while that process is still writing it."""
    writer = subprocess.Popen(
        [sys.executable, "-c", HALF_WRITTEN, tmp_path / "killed"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    writer.stdout.readline()
    [part] = tmp_path.glob(".dibs-*.part")
    with new_file(str(tmp_path / "meanwhile"), "a backup"):
        assert part.exists()
    writer.kill()
    writer.communicate()
    assert part.exists()
    with new_file(str(tmp_path / "after"), "a backup"):
        assert not part.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "meanwhile"]


def test_what_is_there_by_the_time_of_its_name_is_not_overwritten(tmp_path):
    path = tmp_path / "saved"
    with pytest.raises(Refused, match="overwrites nothing"), new_file(str(path), "a backup"):
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert list(tmp_path.glob(".dibs-*")) == []


@of_a_file
@pytest.mark.parametrize("how", SAVES)
def test_a_link_that_leads_nowhere_is_not_written_through(busy, tmp_path, how):
    (tmp_path / "saved").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="overwrites nothing"):
        SAVES[how](busy.board, str(tmp_path / "saved"))
    assert not (tmp_path / "elsewhere").exists()


def test_an_export_has_every_row_of_every_table(busy, tmp_path):
    found = tables(exported(busy, tmp_path / "board.jsonl"))
    with copier(busy.store).snapshot(busy.store) as seen:
        for table in TABLES:
            columns, rows = seen.rows(table)
            assert found[table] == [dict(zip(columns, row)) for row in rows], table
    assert [note["text"] for note in found["note"]] == ["half way\n\u2603", "done"]


def test_an_export_overwrites_nothing(busy, tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(Refused) as problem:
        export.export(busy.board, str(tmp_path / "mine"))
    assert problem.value.code == "bad_argument"
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_folder_that_is_not_there_is_not_made(busy, tmp_path):
    with pytest.raises(Refused) as problem:
        export.export(busy.board, str(tmp_path / "no" / "file"))
    assert "there is no folder" in problem.value.refusal.message


def test_a_board_that_is_not_sound_is_not_exported(busy, tmp_path):
    busy.tamper("UPDATE task SET title = 'forged' WHERE id = 1")
    with pytest.raises(Refused) as problem:
        exported(busy, tmp_path / "board.jsonl")
    assert problem.value.code == "corrupt"
    assert list(tmp_path.glob("board.jsonl*")) == []


def test_an_export_that_is_interrupted_leaves_no_file(busy, tmp_path, monkeypatch):
    monkeypatch.setattr("dibs.storage.copy.STEP", 5)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export.export(busy.board, str(tmp_path / "board.jsonl"), stop)
    assert list(tmp_path.glob("board.jsonl*")) == []


def test_writers_go_on_while_a_board_is_exported_and_are_not_in_it(busy, tmp_path, monkeypatch):
    """The snapshot is of one instant."""
    monkeypatch.setattr("dibs.storage.copy.STEP", 3)
    other = Board(busy.store.another(), Settings())
    done = []

    def writes(_done, _total):
        if not done:
            done.append(other.execute(busy.agent().identity, c.Note(K, note="meanwhile")))

    export.export(busy.board, str(tmp_path / "board.jsonl"), writes)
    other.store.close()
    assert done
    assert b"meanwhile" not in (tmp_path / "board.jsonl").read_bytes()


# And in.


def test_the_same_board_comes_back_with_its_ledger_and_every_lease_ended(busy, target, tmp_path):
    path = exported(busy, tmp_path / "board.jsonl")
    token = busy.task().token
    done = brought(busy, target, path)
    with at(target).read() as tx, busy.store.read() as source:
        assert tx.board.uid == source.board.uid
        assert tx.task(K).lease is None and tx.task(TaskKey("T-3")).lease is None
        assert tx.task(K).token == token
        assert [note.text for note in tx.notes(tx.task(K).id)] == ["half way\n\u2603"]
        assert [entry.digest for entry in tx.events()][: source.board.seq] == [
            entry.digest for entry in source.events()
        ]
    assert verify(at(target)).faults == ()
    assert (done.tasks, done.epoch > token.epoch) == (4, True)


def test_no_token_is_given_twice_after_an_import(busy, target, tmp_path):
    path = exported(busy, tmp_path / "board.jsonl")
    later = busy.agent().claim("T-1").task.token
    brought(busy, target, path)
    board, codex = at(target), busy.agent().identity
    with pytest.raises(Refused) as problem:
        board.execute(codex, c.Complete(K))
    assert problem.value.code == "lease_lost"
    assert board.execute(codex, c.Claim(K)).task.token > later


def test_a_request_that_was_answered_is_answered_the_same_after_an_import(busy, target, tmp_path):
    brought(busy, target, exported(busy, tmp_path / "board.jsonl"))
    board = at(target)
    with board.read() as tx:
        before = tx.board.seq
    board.execute(busy.agent().identity, c.Note(K, note="half way\n\u2603"), "r-1")
    with board.read() as tx:
        assert tx.board.seq == before


def test_there_and_back_again_nothing_changes_but_what_a_restore_changes(busy, target, tmp_path):
    first = tables(exported(busy, tmp_path / "1.jsonl"))
    brought(busy, target, tmp_path / "1.jsonl")
    export.export(at(target), str(tmp_path / "2.jsonl"))
    second = tables(tmp_path / "2.jsonl")
    same = ("actor", "actor_name", "session", "dependency", "note", "request", "refusal")
    assert {table: second[table] for table in same} == {table: first[table] for table in same}
    assert second["event"][: len(first["event"])] == first["event"]
    added = second["event"][len(first["event"]) :]
    assert [event["verb"] for event in added] == ["epoch_raised", "lease_ended", "lease_ended"]
    assert second["ended_lease"][-1]["cause"] == "restored"
    assert len(second["ended_lease"]) == len(first["ended_lease"]) + 2
    held = {row["id"] for row in first["task"] if row["holder"]}
    for before, after in zip(first["task"], second["task"]):
        assert (before["id"] in held) or before == after
    kept = ("uid", "created", "actors", "tasks", "keys", "paused_by", "paused_why")
    [before], [after] = first["board"], second["board"]
    assert [before[name] for name in kept] == [after[name] for name in kept]


def test_a_second_import_of_a_board_without_leases_adds_the_epoch_alone(busy, target, tmp_path):
    brought(busy, target, exported(busy, tmp_path / "1.jsonl"))
    export.export(at(target), str(tmp_path / "2.jsonl"))
    third = new_store("sqlite", tmp_path / "third", busy.machine)
    brought(busy, third, tmp_path / "2.jsonl")
    export.export(at(third), str(tmp_path / "3.jsonl"))
    second, third = tables(tmp_path / "2.jsonl"), tables(tmp_path / "3.jsonl")
    for table in TABLES[1:]:
        if table != "event":
            assert second[table] == third[table]
    assert [event["verb"] for event in third["event"][len(second["event"]) :]] == ["epoch_raised"]


def test_a_slower_clock_takes_the_board_in_one_clock_event(busy, tmp_path, kind):
    busy.agent().do(c.Renew(K))
    path = exported(busy, tmp_path / "board.jsonl")
    machine = FakeMachine()
    machine.wall_us -= 3 * HOUR
    slow = new_store("sqlite", tmp_path / "slow", machine)
    done = brought(busy, slow, path)
    assert done.shifted == -3 * HOUR - 600 * SECOND
    with at(slow).read() as tx:
        assert [entry.verb for entry in tx.events()].count("clock_set") == 1
        [over] = tx.ended_leases(tx.task(K).id)
        assert over.acquired <= over.renewed <= over.ended
    assert verify(at(slow)).faults == ()


def test_a_place_with_a_board_is_refused_and_left_alone(busy, target, tmp_path):
    path = exported(busy, tmp_path / "board.jsonl")
    target.create("another-board")
    for store, uid in ((target, "another-board"), (busy.store, None)):
        with pytest.raises(Refused) as problem:
            brought(busy, store, path)
        assert problem.value.code == "board_exists"
        with at(store).read() as tx:
            assert uid is None or (tx.board.uid, tx.board.seq) == (uid, 0)
    assert busy.agent().do(c.Renew(K)).task.lease.renewals == 2


def test_a_place_from_which_the_board_moved_on_still_leads_to_it(
    busy, target, tmp_path, monkeypatch
):
    path = exported(busy, tmp_path / "board.jsonl")
    home = busy.store.another()
    monkeypatch.setattr(move, "target_of", lambda board, to: target)
    move.move(busy.board, target.where, busy.person().identity)
    with pytest.raises(Refused) as problem:
        brought(busy, home, path)
    assert (problem.value.code, problem.value.refusal.facts["to"]) == ("board_moved", target.where)


def test_a_board_is_not_brought_under_a_second_name_into_its_database(tmp_path):
    bench = Bench(tmp_path / "x", kind="postgres")
    bench.add()
    path = exported(bench, tmp_path / "board.jsonl")
    second = new_store("postgres", tmp_path, bench.machine)
    with pytest.raises(Refused) as problem:
        brought(bench, second, path)
    assert (problem.value.code, has_no_board(second)) == ("board_exists", True)
    bench.close()


def test_a_board_that_moved_out_of_a_database_is_not_brought_into_it_again(tmp_path, monkeypatch):
    """Its old name there still leads to where it is."""
    bench = Bench(tmp_path / "x", kind="postgres")
    bench.add()
    path, home = exported(bench, tmp_path / "board.jsonl"), bench.store.another()
    away = new_store("sqlite", tmp_path / "away", bench.machine)
    monkeypatch.setattr(move, "target_of", lambda board, to: away)
    move.move(bench.board, away.where, bench.person().identity)
    with pytest.raises(Refused) as problem:
        brought(bench, new_store("postgres", tmp_path, bench.machine), path)
    assert problem.value.code == "board_exists"
    with pytest.raises(Refused) as problem, home.read():
        pass
    assert problem.value.refusal.facts["to"] == away.where
    bench.close()


def test_a_board_that_had_come_from_elsewhere_is_at_home_where_it_is_brought(
    busy, target, tmp_path, monkeypatch
):
    monkeypatch.setattr(move, "target_of", lambda board, to: target)
    move.move(busy.board, target.where, busy.person().identity)
    export.export(at(target), str(tmp_path / "board.jsonl"))
    third = new_store("sqlite", tmp_path / "third", busy.machine)
    brought(busy, third, tmp_path / "board.jsonl")
    with at(third).read() as tx:
        assert (tx.board.moved_to, tx.board.arriving) == ("", 0)


def test_a_name_of_its_own_beside_other_boards_is_free(tmp_path):
    file, server = Bench(tmp_path / "x"), Bench(tmp_path / "y", kind="postgres")
    file.add()
    second = new_store("postgres", tmp_path, file.machine)
    brought(file, second, exported(file, tmp_path / "board.jsonl"))
    assert verify(at(second)).faults == () and server.faults() == ()
    for bench in (file, server):
        bench.close()


def test_settings_that_wait_beside_the_place_stay(tmp_path):
    bench = Bench(tmp_path / "x")
    bench.add()
    (tmp_path / "x" / "settings.toml").write_text('identity = "strict"\n')
    (tmp_path / "there").mkdir(mode=0o700)
    (tmp_path / "there" / "settings.toml").write_text('ttl_agent = "30m"\n')
    store = new_store("sqlite", tmp_path / "there", bench.machine)
    brought(bench, store, exported(bench, tmp_path / "board.jsonl"))
    assert (tmp_path / "there" / "settings.toml").read_text() == 'ttl_agent = "30m"\n'
    assert not (tmp_path / "there" / "settings.toml.old").exists()
    bench.close()


def test_only_people_import_boards(busy, target, tmp_path):
    path = exported(busy, tmp_path / "board.jsonl")
    with pytest.raises(Refused) as problem:
        export.import_board(at(target), str(path), busy.agent().identity)
    assert (problem.value.code, has_no_board(target)) == ("people_only", True)
    assert not (tmp_path / "target").exists()


def test_progress_rises_to_the_number_of_rows_and_ends_there(busy, target, tmp_path, monkeypatch):
    monkeypatch.setattr("dibs.storage.copy.STEP", 3)
    progress = []
    out = export.export(busy.board, str(tmp_path / "b"), lambda *now: progress.append(now))
    assert (
        progress[-1] == (out.rows, out.rows) and progress == sorted(progress) and len(progress) > 5
    )
    progress.clear()
    brought(busy, target, tmp_path / "b", progress=lambda *now: progress.append(now))
    assert (
        progress[-1] == (out.rows, out.rows) and progress == sorted(progress) and len(progress) > 10
    )


# Files that are no export.


def sealed(lines: list[bytes], rows: int | None = None) -> bytes:
    """With the digest and the counts that fit: as somebody writes it who means harm."""
    parsed = [json.loads(line) for line in lines[1:-1]]
    head = json.loads(lines[0]) | {"rows": len(parsed) if rows is None else rows}
    body = b"\n".join([json.dumps(head).encode(), *lines[1:-1]]) + b"\n"
    counts = {table: sum(row[0] == table for row in parsed) for table in TABLES}
    last = {"counts": counts, "sha256": sha256(body).hexdigest()}
    return body + json.dumps(last).encode() + b"\n"


def in_row(table: str, which: int = 0, **values):
    """Changes a row of a table, and seals it."""
    return in_table(table, which, lambda row: row | values)


def in_table(table: str, which: int, change):
    def changed(lines):
        begins = b'["%s"' % table.encode()
        place = [n for n, line in enumerate(lines) if line.startswith(begins)][which]
        name, row = json.loads(lines[place])
        output = change(row)
        new = [] if output is None else [json.dumps([name, output]).encode()]
        return sealed([*lines[:place], *new, *lines[place + 1 :]])

    return changed


def without(table: str, column: str | None = None):
    if column is None:
        return in_table(table, 0, lambda row: None)
    return in_table(table, 0, lambda row: {k: v for k, v in row.items() if k != column})


def exchanged(row: dict) -> dict:
    """The same columns in another order."""
    return dict(reversed(row.items()))


def in_head(**values):
    def change(lines):
        head = json.dumps(json.loads(lines[0]) | values).encode()
        return sealed([head, *lines[1:]])

    return change


def in_last(**values):
    def change(lines):
        last = json.loads(lines[-1])
        return whole([*lines[:-1], json.dumps(last | values).encode()])

    return change


def whole(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


ALIEN = "does not begin like an export"
CUT = "truncated"
CHANGED = "the digest differs"
UNSOUND = "is not sound"
UNSTORED = "cannot be stored"
COLUMNS = "does not have the columns"

DAMAGE = {
    "empty": (lambda lines: b"", CUT),
    "something else": (lambda lines: b"# Backlog\n\n- T-1\n", ALIEN),
    "another's JSON": (lambda lines: b'{"id": "bd-1", "title": "x"}\n', ALIEN),
    "a list": (lambda lines: b"[]\n", ALIEN),
    "a database": (lambda lines: b"SQLite format 3\0" + bytes(4000), CUT),
    "binary": (lambda lines: bytes(range(128, 256)) * 50 + b"\n", ALIEN),
    "deep": (lambda lines: b"[" * 100_000 + b"\n", ALIEN),
    "deep inside": (lambda lines: whole([lines[0], b"[" * 100_000, *lines[1:]]), "line 2: it is not JSON"),
    "the head alone": (lambda lines: whole(lines[:1]), CUT),
    "cut in a line": (lambda lines: whole(lines)[:-40], CUT),
    "cut after a line": (lambda lines: whole(lines[:-1]), CUT),
    "cut in the middle": (lambda lines: whole(lines[: len(lines) // 2]), CUT),
    "without its end": (lambda lines: b"\n".join(lines), CUT),
    "a letter changed": (lambda lines: whole(lines).replace(b"half way", b"halt way"), CHANGED),
    "a refusal changed": (lambda lines: whole(lines).replace(b'"held"', b'"hexd"'), CHANGED),
    "a line gone": (lambda lines: whole([*lines[:9], *lines[10:]]), CHANGED),
    "a line twice": (lambda lines: whole([*lines[:9], lines[8], *lines[9:]]), ""),
    "rows exchanged": (lambda lines: sealed([*lines[:2], lines[3], lines[2], *lines[4:]]), "differ from the rows that were sent"),
    "tables exchanged": (lambda lines: sealed([*lines[:2], *lines[-3:1:-1], lines[-1]]), "is out of order"),
    "the board later": (lambda lines: sealed([lines[0], lines[2], lines[1], *lines[3:]]), "not the row of the board"),
    "no row": (lambda lines: whole([*lines[:2], b'["secrets", {}]', *lines[2:]]), "not a row of a table"),
    "more at the end": (lambda lines: whole([*lines, b"{}"]), "more after its last line"),
    "two of them": (lambda lines: whole(lines) * 2, "more after its last line"),
    "other counts": (in_last(counts={}), "row counts are wrong"),
    "another total": (lambda lines: sealed(lines, rows=5), "row counts are wrong"),
    "an older schema": (in_head(schema=0), "its schema is 0"),
    "a strange schema": (in_head(schema=[1]), "its schema is [1]"),
    "no time": (in_head(at="noon"), "lacks the board, the time"),
    "another board's head": (in_head(board="0199-other"), "row of another board"),
    "no board": (without("board"), "not the row of the board"),
    "no actor": (without("actor"), UNSOUND),
    "no event": (without("event"), UNSOUND),
    "no note": (without("note"), UNSOUND),
    "no dependency": (without("dependency"), UNSOUND),
    "no column": (without("task", "suspect"), COLUMNS),
    "a column too many": (in_row("task", more=1), COLUMNS),
    "columns exchanged": (in_table("refusal", 0, exchanged), COLUMNS),
    "a forged title": (in_row("task", title="forged"), UNSOUND),
    "a forged token": (in_row("task", token_number=7), UNSOUND),
    "a forged event": (in_row("event", at=1), UNSOUND),
    "a forged text": (in_row("note", text="forged"), UNSOUND),
    "a forged tier": (in_row("actor", tier=9), UNSOUND),
    "a forged counter": (in_row("board", seq=999_999), UNSOUND),
    "a text for a number": (in_row("task", priority="high"), ""),
    "a number out of range": (in_row("task", priority=77), ""),
    "a huge number": (in_row("task", priority=10**30), UNSTORED),
    "a fraction": (in_row("task", priority=1.5), UNSTORED),
    "a truth": (in_row("refusal", at=True), UNSTORED),
    "a list for a text": (in_row("task", title=["x"]), UNSTORED),
    "half a character": (in_row("refusal", message="\ud800"), UNSTORED),
    "a zero character": (in_row("refusal", message="a\0b"), UNSTORED),
    "a session of nobody": (in_row("session", -1, actor=99), "references"),
    "has moved": (in_row("board", moved_to="elsewhere", arriving=0), "it is in elsewhere"),
}  # fmt: skip
"""What is wrong with a file, and a part of its message."""


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_file_that_is_no_whole_export_is_refused_and_makes_nothing(busy, tmp_path, damage):
    path = exported(busy, tmp_path / "board.jsonl")
    change, why = DAMAGE[damage]
    path.write_bytes(change(path.read_bytes().splitlines()))
    store = new_store("sqlite", tmp_path / "there", busy.machine)
    with pytest.raises(Refused) as problem:
        brought(busy, store, path)
    assert problem.value.code == "bad_argument"
    message = problem.value.refusal.message
    assert f"{path} is not an export that can be used" in message and why in message
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_helper_that_seals_makes_a_file_that_is_accepted(busy, tmp_path):
    """Else the damage above would be refused for its digest alone."""
    path = exported(busy, tmp_path / "board.jsonl")
    path.write_bytes(sealed(path.read_bytes().splitlines()))
    brought(busy, new_store("sqlite", tmp_path / "there", busy.machine), path)


@pytest.mark.parametrize("damage", ["cut after a line", "a forged title", "a database"])
def test_a_server_is_not_touched_by_a_file_that_is_no_export(busy, target, tmp_path, damage):
    path = exported(busy, tmp_path / "board.jsonl")
    path.write_bytes(DAMAGE[damage][0](path.read_bytes().splitlines()))
    with pytest.raises(Refused) as problem:
        brought(busy, target, path)
    assert (problem.value.code, has_no_board(target)) == ("bad_argument", True)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_an_export_of_a_newer_dibs_says_so(busy, tmp_path):
    path = exported(busy, tmp_path / "board.jsonl")
    path.write_bytes(in_head(schema=NEWEST + 1)(path.read_bytes().splitlines()))
    with pytest.raises(Refused) as problem:
        brought(busy, new_store("sqlite", tmp_path / "there", busy.machine), path)
    assert (problem.value.code, str(path) in problem.value.refusal.message) == (
        "newer_schema",
        True,
    )


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_line_without_end_is_not_read_into_memory(busy, tmp_path, monkeypatch):
    path = exported(busy, tmp_path / "board.jsonl")
    monkeypatch.setattr(jsonl, "LINE_MAX", 100)
    with pytest.raises(Refused) as problem:
        brought(busy, new_store("sqlite", tmp_path / "there", busy.machine), path)
    assert "too long" in problem.value.refusal.message


def test_a_file_that_is_not_there_is_a_usage_error(busy, target, tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(Refused) as problem:
            brought(busy, target, path)
        assert "there is no file" in problem.value.refusal.message


@pytest.mark.parametrize("kind", ["sqlite"])
def test_memory_does_not_grow_with_the_board(busy, tmp_path):
    """Rows pass one by one, out and in."""
    import tracemalloc

    peaks = []
    for more in (0, 250):
        for n in range(more):
            busy.agent().do(c.Note(TaskKey(busy.add()), note=f"{n} " * 5_000))
        path, store = tmp_path / f"{more}.jsonl", tmp_path / f"there-{more}"
        tracemalloc.start()
        export.export(busy.board, str(path))
        brought(busy, new_store("sqlite", store, busy.machine), path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert path.stat().st_size > 3_000_000
    assert peaks[1] - peaks[0] < path.stat().st_size / 4
