"""A whole board from one place to another: everything arrives, and one place is in charge."""

from __future__ import annotations

import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

import dibs
from dibs.board.execute import Board
from dibs.board.locate import copier
from dibs.board.server_boards import load_settings
from dibs.board.settings import Settings
from dibs.board.transfer import move
from dibs.board.verify import verify
from dibs.domain import commands as c
from dibs.domain.model import TaskKey, Token
from dibs.domain.refusals import Refused
from dibs.domain.values import HOUR, SECOND
from dibs.storage.copy import contents_of
from dibs.storage.sqlite.store import SqliteStore
from kit.boards import START, STORES, USER, Bench, FakeMachine, new_address, new_store
from kit.postgres_ground import until
from kit.repositories import DIBS, Repo

K = TaskKey("T-1")


@pytest.fixture(params=STORES)
def target(request, tmp_path, bench):
    """A place to move to, of each kind."""
    store = new_store(request.param, tmp_path / "target", bench.machine, apart=True)
    yield store
    store.close()


@pytest.fixture
def busy(bench):
    """A board with everything on it: notes, ended leases, requests, refusals, a running lease."""
    for n in range(4):
        bench.add(f"task {n} \u00fc\u2603", scope=("src/**",))
    codex, ana = bench.agent(), bench.person()
    codex.claim(ttl=HOUR)
    codex.do(c.Note(K, note="half way"), "r-1")
    codex.claim("T-2")
    codex.do(c.Complete(TaskKey("T-2"), note="done"))
    ana.do(c.Assign(TaskKey("T-3"), to="codex"))
    bench.agent("claude", "s9").refused(c.Claim(K))
    bench.advance(600)
    return bench


def contents(store):
    with copier(store).snapshot(store) as seen:
        return contents_of(seen)


def carry(bench, store, monkeypatch, **options):
    """Moves the board; the target's clock is the test's too."""
    monkeypatch.setattr(move, "target_of", lambda board, to: store)
    return move.move(bench.board, store.where, bench.person().identity, **options)


def accepts(store) -> bool:
    """Whether a write is accepted there, without following anything."""
    try:
        with store.write("try"):
            return True
    except Refused:
        return False
    finally:
        store.close()


def at(store) -> Board:
    return Board(store, Settings(), user=USER)


def follow_with(monkeypatch, *stores) -> None:
    """A forwarding record leads to these stores, with their still clocks."""
    import dibs.board.locate

    by_place = {store.where: store for store in stores}

    def store_of(moved, *_):
        return by_place[moved.refusal.facts["to"]].another()

    monkeypatch.setattr(dibs.board.locate, "store_of_record", store_of)


def test_everything_arrives_and_leases_keep_their_tokens_and_times(busy, target, monkeypatch):
    before = contents(busy.store)
    lease, left = busy.task().lease, busy.task().lease.expires - busy.now()
    source = busy.store
    moved = carry(busy, target, monkeypatch)
    assert (moved.tasks, moved.rows) == (4, before.rows)
    there = at(target)
    with there.read() as tx:
        task = tx.task(K)
        assert (task.token, task.lease.session) == (Token(1, 1), lease.session)
        assert task.lease.expires - tx.now == left
        assert [note.text for note in tx.notes(task.id)] == ["half way"]
    assert verify(there).faults == ()
    assert not accepts(source) and accepts(target)


def test_times_are_shifted_by_the_difference_of_the_clocks_in_one_clock_event(
    busy, tmp_path, monkeypatch
):
    left = busy.task().lease.expires - busy.now()
    other = FakeMachine()
    other.wall_us -= 3 * HOUR
    store = SqliteStore(str(tmp_path / "slow"), machine=other)
    moved = carry(busy, store, monkeypatch)
    assert moved.shifted == other.wall() - (busy.machine.boottime() - 10**9 + 1_794_700_000_000_000)
    with at(store).read() as tx:
        assert tx.task(K).lease.expires - tx.now == left
        assert [entry.verb for entry in tx.events()].count("clock_set") == 1
    assert verify(at(store)).faults == ()


def test_the_time_that_a_move_takes_is_no_difference_of_clocks(busy, target, monkeypatch):
    """The ledger is verified on both sides, and rows are copied: leases run on meanwhile."""
    left = busy.task().lease.expires - busy.now()
    verified = move.require_sound_ledger

    def slowly(tx, where):
        busy.advance(7)
        verified(tx, where)

    monkeypatch.setattr(move, "require_sound_ledger", slowly)
    monkeypatch.setattr("dibs.storage.copy.STEP", 5)
    moved = carry(busy, target, monkeypatch, progress=lambda *_: busy.advance(1))
    assert moved.shifted == 0
    with at(target).read() as tx:
        passed = left - (tx.task(K).lease.expires - tx.now)
        assert passed > 14 * SECOND
        assert tx.task(K).lease.expires == START + 600 * SECOND + left


def test_whoever_has_the_old_place_open_is_led_to_the_new_one(busy, target, monkeypatch):
    follow_with(monkeypatch, target)
    holder = Board(busy.store.another(), Settings(), user=USER)
    carry(busy, target, monkeypatch)
    outcome = holder.execute(busy.agent().identity, c.Renew(K))
    assert (outcome.task.lease.renewals, holder.store.where) == (2, target.where)
    with holder.read() as tx:
        assert tx.task(K).lease.renewals == 2


def test_a_fenced_place_refuses_and_says_where_the_board_is(busy, target, monkeypatch):
    carry(busy, target, monkeypatch)
    with pytest.raises(Refused) as problem, busy.store.another().write("try"):
        pass
    refusal = problem.value.refusal
    assert (refusal.code, refusal.facts["to"]) == ("board_moved", target.where)


STEPS = ("copying", "before the fence", "fencing", "arriving")


@pytest.mark.parametrize("step", STEPS)
def test_cut_off_at_any_step_one_place_is_in_charge_and_it_can_be_run_again(
    busy, target, monkeypatch, step
):
    follow_with(monkeypatch, target, busy.store)
    source = busy.store.another()
    with monkeypatch.context() as patch:
        cut_off(patch, step, target)
        with pytest.raises(KeyboardInterrupt):
            carry(busy, target, patch, progress=stopping if step == "copying" else None)
    busy.store.close()
    client = Board(source.another(), Settings(), user=USER)
    outcome = client.execute(busy.agent().identity, c.Note(K, note="somebody works on"))
    assert [accepts(source.another()), accepts(target.another())].count(True) == 1
    again = Board(source.another(), Settings(), user=USER)
    monkeypatch.setattr(move, "target_of", lambda board, to: target)
    move.move(again, target.where, busy.person().identity)
    assert (accepts(source.another()), accepts(target.another())) == (False, True)
    with at(target).read() as tx:
        assert outcome.entries[-1].digest in {entry.digest for entry in tx.events()}
    assert verify(at(target)).faults == ()


def cut_off(patch, step, target) -> None:
    from dibs.storage.transaction import WriteTransaction

    def stop(*_, **__):
        raise KeyboardInterrupt

    if step == "copying":
        patch.setattr("dibs.storage.copy.STEP", 5)
    if step == "before the fence":
        patch.setattr(WriteTransaction, "arriving_from", stop)
    if step == "fencing":
        patch.setattr(WriteTransaction, "fence", stop)
    if step == "arriving":
        patch.setattr(copier(target), "activate_copy", stop)


def stopping(done: int, total: int) -> None:
    if done > total // 2:
        raise KeyboardInterrupt


def test_a_place_with_another_board_is_refused_and_left_alone(busy, target, monkeypatch):
    target.create("another-board")
    with pytest.raises(Refused) as problem:
        carry(busy, target, monkeypatch)
    assert problem.value.code == "board_exists"
    with at(target).read() as tx:
        assert tx.board.uid == "another-board"
    assert busy.agent().do(c.Renew(K)).task.lease.renewals == 2


def test_a_board_is_not_moved_within_its_database(tmp_path, monkeypatch):
    bench = Bench(tmp_path / "x", kind="postgres")
    bench.add()
    with pytest.raises(Refused) as problem:
        carry(bench, new_store("postgres", tmp_path, bench.machine), monkeypatch)
    assert problem.value.code == "in_this_database"
    assert problem.value.refusal.facts["there"] == bench.store.where
    bench.close()


def test_a_check_changes_nothing(busy, target, monkeypatch):
    before = busy.snapshot()
    assert carry(busy, target, monkeypatch, dry=True).tasks == 4
    assert busy.snapshot() == before
    with pytest.raises(Refused):
        at(target).follow_if_moved()


def test_only_people_move_boards(busy, target, monkeypatch):
    monkeypatch.setattr(move, "target_of", lambda board, to: target)
    with pytest.raises(Refused) as problem:
        move.move(busy.board, target.where, busy.agent().identity)
    assert problem.value.code == "people_only"


def test_there_and_back_again(busy, tmp_path, monkeypatch):
    """The place that the board left takes it back."""
    home, away = busy.store, new_store("postgres", tmp_path / "x", busy.machine, apart=True)
    carry(busy, away, monkeypatch)
    follow_with(monkeypatch, away, home)
    busy.board = at(away.another())
    carry(busy, home.another(), monkeypatch)
    assert (accepts(home.another()), accepts(away.another())) == (True, False)
    with at(home.another()).read() as tx:
        assert tx.task(K).lease.session == "s1"


def test_a_move_back_that_fails_leaves_the_way_to_the_board(busy, tmp_path, monkeypatch):
    """The old place leads on until the board is really back."""
    home, away = busy.store, new_store("postgres", tmp_path / "x", busy.machine, apart=True)
    carry(busy, away, monkeypatch)
    follow_with(monkeypatch, away, home)
    busy.board = at(away.another())
    with monkeypatch.context() as patch:
        cut_off(patch, "fencing", home)
        with pytest.raises(KeyboardInterrupt):
            carry(busy, home.another(), patch)
    client = at(home.another())
    assert client.execute(busy.agent().identity, c.Renew(K)).task.lease.renewals == 2
    assert client.store.where == away.where


def test_settings_go_with_the_board_there_and_back(tmp_path, monkeypatch):
    bench = Bench(tmp_path / "dibs")
    bench.add()
    (tmp_path / "dibs" / "settings.toml").write_text('ttl_agent = "30m"\n')
    home, away = bench.store, new_store("postgres", tmp_path / "x", bench.machine, apart=True)
    carry(bench, away, monkeypatch)
    assert away.another().stated_settings() == 'ttl_agent = "30m"\n'
    load_settings(at(away), 'identity = "strict"\n', bench.person().identity, "a file")
    follow_with(monkeypatch, away, home)
    bench.board = at(away.another())
    carry(bench, home.another(), monkeypatch)
    assert (tmp_path / "dibs" / "settings.toml").read_text() == 'identity = "strict"\n'
    assert (tmp_path / "dibs" / "settings.toml.old").read_text() == 'ttl_agent = "30m"\n'


def test_a_restore_that_is_refused_leaves_nothing(tmp_path):
    bench = Bench(tmp_path / "dibs")
    bench.add()
    (tmp_path / "broken.db").write_bytes(b"no backup" * 1000)
    before = sorted(path.name for path in (tmp_path / "dibs").iterdir())
    with pytest.raises(Refused) as problem:
        move.restore(bench.board, str(tmp_path / "broken.db"), bench.person().identity, "why")
    assert "broken.db is not a dibs backup" in problem.value.refusal.message
    assert sorted(path.name for path in (tmp_path / "dibs").iterdir()) == before
    bench.close()


def test_an_address_with_a_password_is_not_written_down(bench):
    with pytest.raises(Refused) as problem:
        move.target_of(bench.board, "postgresql://ana:geheim@localhost/x#web")
    assert "geheim" not in problem.value.refusal.message
    assert "passfile" in problem.value.refusal.message


# Backup and restore.


def test_a_backup_is_one_private_file_with_everything_in_it(busy, tmp_path):
    path = tmp_path / "saved.db"
    move.backup(busy.board, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir() if "saved" in p.name) == ["saved.db"]
    folder = tmp_path / "opened"
    folder.mkdir(mode=0o700)
    (folder / "board.db").write_bytes(path.read_bytes())
    assert contents(SqliteStore(str(folder))) == contents(busy.store)


def test_a_backup_overwrites_nothing(busy, tmp_path):
    path = tmp_path / "saved.db"
    path.write_text("mine")
    with pytest.raises(Refused):
        move.backup(busy.board, str(path))
    assert path.read_text() == "mine"


def test_a_restore_ends_every_lease_and_no_token_is_given_twice(busy, tmp_path):
    path = str(tmp_path / "saved.db")
    move.backup(busy.board, path)
    later = busy.agent().claim("T-4").task.token
    restored = move.restore(busy.board, path, busy.person().identity, "a mistake")
    assert restored.epoch > later.epoch
    assert busy.task().lease is None and busy.task("T-4").lease is None
    codex = busy.agent()
    assert codex.refused(c.Complete(K)) == "lease_lost"
    assert codex.refused(c.Complete(TaskKey("T-4"), token=later)) == "token_ahead"
    assert codex.claim("T-4").task.token > later
    assert busy.faults() == ()


def test_what_a_restore_replaces_is_kept(busy, tmp_path, kind):
    path = str(tmp_path / "saved.db")
    move.backup(busy.board, path)
    busy.agent().do(c.Note(K, note="only in the newer one"))
    move.restore(busy.board, path, busy.person().identity, "a mistake")
    if kind == "sqlite":
        [kept] = Path(busy.store.folder).glob("before-restore-*.db")
        assert b"only in the newer one" in kept.read_bytes()
    else:
        assert [name for name, *_ in busy.store.boards() if "-until-" in name]


def test_a_damaged_file_is_put_aside_and_the_backup_takes_its_place(tmp_path):
    bench = Bench(tmp_path / "dibs")
    bench.add()
    path = str(tmp_path / "saved.db")
    move.backup(bench.board, path)
    bench.close()
    (tmp_path / "dibs" / "board.db").write_bytes(b"no database at all" * 1000)
    move.restore(bench.board, path, bench.person().identity, "the disk")
    assert bench.task().key == K
    assert list((tmp_path / "dibs").glob("board.db.damaged-*"))


def test_a_restore_in_place_ends_leases_after_a_recovery_to_a_point_in_time(busy):
    restored = move.restore_in_place(busy.board, busy.person().identity, "recovered to noon")
    assert busy.task().lease is None and restored.epoch > 1
    assert busy.agent().refused(c.Complete(K)) == "lease_lost"


@pytest.mark.parametrize("who", ["agent", "nobody's reason"])
def test_restoring_is_for_people_with_a_reason(busy, tmp_path, who):
    path = str(tmp_path / "saved.db")
    move.backup(busy.board, path)
    before = busy.snapshot()
    caller = busy.agent() if who == "agent" else busy.person()
    with pytest.raises(Refused) as problem:
        move.restore(busy.board, path, caller.identity, "r" if who == "agent" else "")
    assert problem.value.code in ("people_only", "reason_missing")
    assert busy.snapshot() == before


# With real processes.


def test_what_a_killed_restore_left_in_the_way_is_removed_by_the_next_command_of_its_kind(tmp_path):
    """A copy of a whole board is not left lying about; nor is one removed that is in use."""
    repo, passing = Repo.create(tmp_path / "repo"), tmp_path / "passing"
    passing.mkdir()
    around = {"TMPDIR": str(passing)}
    repo.ok("init")
    repo.add()
    repo.ok("board", "backup", str(tmp_path / "saved.db"))
    with SqliteStore(str(repo.database.parent)).write("a long one"):
        line = ("board", "restore", str(tmp_path / "saved.db"), "--reason", "r", "--as", "ana")
        process = repo.start(*line, **around)
        until(lambda: list(passing.glob("*/board.db")), "a copy")
        repo.ok("board", "backup", str(tmp_path / "meanwhile.db"), **around)
        assert list(passing.glob("*/board.db"))
        process.kill()
        process.communicate()
    assert list(passing.glob("*/board.db"))
    repo.ok("board", "backup", str(tmp_path / "after.db"), **around)
    assert list(passing.iterdir()) == []


def test_a_keeper_renews_at_the_new_place(tmp_path):
    repo = Repo.create(tmp_path / "repo")
    repo.ok("init")
    key = repo.add()
    url = new_address("postgres")
    around = repo.environment()
    board = dibs.open_board(str(repo.folder), agent="codex", session="s1", environment=around)
    with board, board.hold(key, ttl="8s") as lease:
        repo.ok("board", "move", "--to", url, "--as", "ana")
        before = repo.json("show", key)["task"]["renewals"] or 0
        until(lambda: board.show(key).lease.renewals > before or lease.lost.is_set(), "a renewal")
        lease.check()
        assert repo.json("show", key)["task"]["renewals"] > before
    assert repo.json("show", key)["task"]["holder"] is None


def test_a_move_that_is_killed_at_any_moment_leaves_one_board(tmp_path):
    """Real kills at growing delays, from the start of the process to its end."""
    repo = Repo.create(tmp_path / "repo")
    repo.ok("init")
    for n in range(30):
        repo.add(f"task {n}")
    url = new_address("postgres")
    killed = 0
    for delay in range(12):
        process = subprocess.Popen(
            [DIBS, "board", "move", "--to", url, "--as", "ana"],
            cwd=repo.folder, env=repo.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(0.1 + delay * 0.06)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        added = repo.json("add", f"after {delay}", "--as", "ana")["task"]["key"]
        assert repo.json("show", added)["task"]["key"] == added
    repo.ok("board", "move", "--to", url, "--as", "ana")
    assert killed > 0
    assert len(repo.json("list", "--limit", "100")["tasks"]) == 42
    assert repo.json("log", "--verify")["ok"]
