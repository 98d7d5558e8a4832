"""`move --check` answers as the move would; and a move that is refused has written nothing."""

from __future__ import annotations

import os
import secrets
from urllib.parse import urlsplit

import apsw
import psycopg
import pytest

from dibs.board.execute import Board
from dibs.board.settings import Settings
from dibs.board.transfer import move
from dibs.domain.refusals import Refused
from kit.boards import USER, Bench, database_apart
from kit.postgres import server
from kit.repositories import Repo

ANA = ("--as", "ana")


@pytest.fixture
def shop(tmp_path):
    repo = Repo.create(tmp_path / "shop")
    repo.ok("init")
    repo.add()
    return repo


def by_role(url: str, *, owner: bool = False) -> str:
    """The same database, by a role of its own that may do nothing there, or make schemas."""
    role = server().new_role(f"dibs_role_{secrets.token_hex(4)}")
    if owner:
        server().execute(f'GRANT CREATE ON DATABASE "{urlsplit(url).path[1:]}" TO "{role}"')
    return url.replace("://postgres@", f"://{role}@")


def role_in(url: str) -> str:
    return url.partition("://")[2].partition("@")[0]


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def schemas(url: str) -> int:
    with psycopg.connect(url) as connection:
        [(count,)] = connection.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname = 'dibs'"
        ).fetchall()
        return count


def refused_alike(repo: Repo, to: str, **around: str) -> str:
    """The code with which the check is refused, and so the move; the board works on where it is."""
    codes = set()
    for check in (("--check",), ()):
        ran = repo.run("board", "move", "--to", to, *check, *ANA, "--json", **around)
        assert ran.code, (check, ran.out)
        codes.add((ran.code, ran.error["code"], ran.error["message"]))
        repo.ok("add", "goes on", *ANA, **around)
    assert len(codes) == 1, codes
    return codes.pop()[1]


# A server that a newer dibs has been at.


def test_a_schema_that_is_too_new_stops_a_move_before_anything_is_written(shop):
    url = database_apart()
    change(url, "INSERT INTO dibs.migration VALUES (99, 0)")
    assert refused_alike(shop, f"{url}#web") == "newer_schema"


def test_a_schema_that_is_too_new_stops_an_init_before_anything_is_written(tmp_path):
    url = database_apart()
    change(url, "INSERT INTO dibs.migration VALUES (99, 0)")
    ran = Repo(tmp_path).fails(74, "init", "--json", DIBS_URL=f"{url}#web")
    assert ran.error["code"] == "newer_schema"
    change(url, "DELETE FROM dibs.migration WHERE number = 99")
    assert Repo(tmp_path).fails(2, "list", "--json", DIBS_URL=f"{url}#web")


def test_a_file_that_is_too_new_is_not_moved_into(shop, tmp_path):
    """It was a board's former place; a newer dibs has been at it since."""
    home, away = str(shop.folder / ".git/dibs"), str(tmp_path / "away")
    shop.ok("board", "move", "--to", away, *ANA)
    connection = apsw.Connection(f"{home}/board.db")
    connection.pragma("user_version", 99)
    connection.close()
    assert refused_alike(shop, home, DIBS_BOARD=away) == "newer_schema"


# Who may do it.


def test_a_role_that_may_only_use_boards_cannot_move_one_away(tmp_path):
    url, away = database_apart(), tmp_path / "away"
    repo = Repo.create(tmp_path / "repo", f"{url}#web")
    repo.ok("init")
    granted = by_role(url)
    repo.ok("board", "grant", role_in(granted))
    assert refused_alike(repo, str(away), DIBS_URL=f"{granted}#web") == "not_granted"
    assert not away.exists()


@pytest.mark.parametrize("there", ["nothing", "a schema of others", "a schema to use"])
def test_a_role_that_may_not_make_a_board_cannot_move_one_in(shop, there):
    url = server().new_database() if there == "nothing" else database_apart()
    role = by_role(url)
    if there == "a schema to use":
        Repo(shop.folder, f"{url}#other").ok("init")
        Repo(shop.folder, f"{url}#other").ok("board", "grant", role_in(role))
    assert refused_alike(shop, f"{role}#web") == "not_granted"


def test_a_role_that_may_make_a_schema_can_move_a_board_in(shop):
    url = server().new_database()
    role = by_role(url, owner=True)
    shop.ok("board", "move", "--to", f"{role}#web", "--check", *ANA)
    assert schemas(url) == 0
    shop.ok("board", "move", "--to", f"{role}#web", *ANA)


def test_a_move_says_as_whom_everybody_will_follow(shop):
    """Agents may have another role than who moves the board: then the address names nobody."""
    url = server().new_database()
    role = by_role(url, owner=True)
    named = f"all clients will connect as {role_in(role)}"
    check = shop.ok("board", "move", "--to", f"{role}#web", "--check", *ANA)
    assert named in check.out
    nameless = f"{url.partition('//')[0]}//{role.partition('@')[2]}#web"
    moved = shop.ok("board", "move", "--to", nameless, *ANA, PGUSER=role_in(role))
    assert "everybody follows" not in moved.out
    other = by_role(url)
    shop.ok("board", "grant", role_in(other), PGUSER=role_in(role))
    shop.ok("claim", "T-1", "--agent", "codex", "--session", "s1", PGUSER=role_in(other))


def test_where_the_board_is_already_is_said(shop):
    check = shop.ok("board", "move", "--to", str(shop.folder / ".git" / "dibs"), "--check", *ANA)
    assert "already" in check.out


# Where a folder can be.


def a_file(tmp_path) -> str:
    (tmp_path / "file").write_text("mine")
    return str(tmp_path / "file")


def below_a_file(tmp_path) -> str:
    return a_file(tmp_path) + "/below"


def a_link(tmp_path) -> str:
    (tmp_path / "link").symlink_to(tmp_path)
    return str(tmp_path / "link")


def nowhere(_) -> str:
    return "/proc/nowhere/at-all"


@pytest.mark.parametrize("place", [a_file, below_a_file, a_link, nowhere])
def test_where_no_folder_can_be_the_check_says_so_and_names_the_place(shop, tmp_path, place):
    to = place(tmp_path)
    before = sorted(tmp_path.iterdir())
    ran = shop.run("board", "move", "--to", to, "--check", *ANA, "--json")
    assert (ran.code, ran.error["code"] in ("storage_failed", "unsafe_storage")) == (74, True)
    assert to in ran.error["message"]
    assert shop.run("board", "move", "--to", to, *ANA).code == 74
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("there", ["nothing", "a folder", "an empty file"])
def test_a_check_leaves_nothing_in_the_place_that_it_tried(shop, tmp_path, there):
    away = tmp_path / "up" / "away"
    if there != "nothing":
        away.mkdir(parents=True)
    if there == "an empty file":
        (away / "board.db").touch(0o600)
    before = sorted(tmp_path.rglob("*"))
    shop.ok("board", "move", "--to", str(away), "--check", *ANA)
    assert sorted(tmp_path.rglob("*")) == before
    shop.ok("board", "move", "--to", str(away), *ANA)
    assert os.stat(away / "board.db").st_mode & 0o77 == 0


def test_a_folder_on_a_file_system_that_cannot_keep_a_board_is_refused(tmp_path):
    bench, away = Bench(tmp_path / "dibs"), tmp_path / "up" / "away"
    bench.add()
    bench.machine.kind = "nfs4"
    for dry in (True, False):
        with pytest.raises(Refused) as problem:
            move.move(
                Board(bench.store, Settings(), user=USER),
                str(away),
                bench.person().identity,
                dry=dry,
            )
        assert problem.value.code == "network_file_system"
        assert problem.value.refusal.facts["path"] == str(away)


@pytest.mark.parametrize("how", ["init", "move"])
def test_a_folder_that_was_made_beforehand_is_made_private(shop, tmp_path, how):
    away = tmp_path / "away"
    away.mkdir(mode=0o755)
    if how == "init":
        shop.ok("init", DIBS_BOARD=str(away))
    else:
        shop.ok("board", "move", "--to", str(away), *ANA)
    assert away.stat().st_mode & 0o777 == 0o700
    assert shop.ok("doctor", DIBS_BOARD=str(away))


def test_the_mode_of_a_folder_with_other_things_in_it_is_left_as_it_is(shop, tmp_path):
    away = tmp_path / "away"
    away.mkdir(mode=0o755)
    (away / "notes").write_text("for everybody")
    shop.ok("board", "move", "--to", str(away), *ANA)
    assert away.stat().st_mode & 0o777 == 0o755
