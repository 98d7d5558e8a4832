"""A board keeps which schema it has: another one is refused, a newer one is noticed, an older one migrates."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import psycopg
import pytest

import dibs
from dibs.storage.queries import FINGERPRINTS, computed, plain
from kit.boards import database_apart
from kit.hands import Hand
from kit.repositories import Ran, Repo

SHARED = """
-- One column more, which a newer dibs might have.
ALTER TABLE task ADD COLUMN flavour TEXT NOT NULL DEFAULT 'plain';
CREATE TABLE flavour (board INTEGER NOT NULL REFERENCES board, name TEXT NOT NULL, PRIMARY KEY (board, name)) STRICT;
"""


@pytest.fixture
def repo(tmp_path, kind):
    """A board that is alone in its database, with one task."""
    url = "" if kind == "sqlite" else f"{database_apart()}#shop"
    repo = Repo.create(tmp_path / "repo", url)
    repo.ok("init")
    repo.add("first")
    return repo


def change(repo: Repo, of_file: str, of_server: str) -> None:
    """Whatever the program itself would never do."""
    if repo.around:
        with psycopg.connect(repo.around["DIBS_URL"].partition("#")[0]) as connection:
            connection.execute(of_server.encode())
        return
    connection = apsw.Connection(str(repo.database))
    connection.execute(of_file)
    connection.close()


class Newer:
    """A dibs that has one migration more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(Path(dibs.__file__).parent, folder / "dibs")
        steps = folder / "dibs/storage/sql/migrations"
        (steps / "0002_flavour.sql").write_text(SHARED)
        for database in ("sqlite", "postgres"):
            (steps / f"0002_flavour.{database}.sql").write_text("")
        dialect = folder / "dibs/storage/dialect.py"
        dialect.write_text(
            dialect.read_text().replace('    "board", "home",', '    "board", "flavour", "home",')
        )
        found = self.python("from dibs.storage.queries import computed; print(computed())")
        assert found.code == 0, found.err
        module = folder / "dibs/storage/queries.py"
        text = module.read_text()
        before = text[
            text.index("{", text.index("FINGERPRINTS = ")) : text.index(
                "}", text.index("FINGERPRINTS = ")
            )
            + 1
        ]
        module.write_text(text.replace(before, found.out.strip()))

    def python(self, text: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-c", text], env={"PYTHONPATH": str(self.folder)}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def run(self, repo: Repo, *arguments: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *arguments], cwd=repo.folder, text=True,
            env=repo.environment(PYTHONPATH=str(self.folder)), capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def newer(tmp_path):
    return Newer(tmp_path / "newer")


# The fingerprint.


def test_the_fingerprints_are_those_of_the_migrations():
    assert computed() == FINGERPRINTS, "make docs writes them anew"


def test_neither_comments_nor_layout_count():
    assert plain("CREATE  TABLE x ( -- why\n    y\n);\n") == plain("CREATE TABLE x ( y );")


def test_a_board_that_another_schema_made_is_refused_with_the_way_out(repo):
    change(repo, "PRAGMA application_id = 7", "UPDATE dibs.migration SET fingerprint = 7")
    for line in (("list",), ("add", "x", "--as", "ana"), ("init",)):
        ran = repo.fails(74, *line, "--json")
        assert ran.error["code"] == "other_schema"
        assert "dibs export FILE" in ran.error["advice"]
        assert "dibs import FILE" in ran.error["advice"]


def test_a_board_from_before_there_were_fingerprints_is_refused(repo):
    drop = "ALTER TABLE dibs.migration DROP COLUMN fingerprint"
    change(repo, "PRAGMA application_id = 0", drop)
    assert repo.fails(74, "list", "--json").error["code"] == "other_schema"


def test_a_backup_that_another_schema_made_is_refused_too(repo, tmp_path):
    saved = str(tmp_path / "saved.db")
    repo.ok("board", "backup", saved)
    connection = apsw.Connection(saved)
    connection.execute("PRAGMA application_id = 7")
    connection.close()
    ran = repo.fails(74, "board", "restore", saved, "--reason", "r", "--as", "ana", "--json")
    assert ran.error["code"] == "other_schema"
    assert repo.json("list")["tasks"]


# A newer dibs.


def test_an_older_board_is_migrated_and_keeps_everything(repo, newer, tmp_path):
    before = repo.json("show", "T-1")["task"]
    assert newer.run(repo, "show", "T-1", "--json").json["task"]["uid"] == before["uid"]
    assert newer.run(repo, "log", "--verify", "--json").json["ok"]
    newer.run(repo, "claim", "T-1", "--agent", "codex", "--session", "s1")
    assert repo.fails(74, "list", "--json").error["code"] == "newer_schema"


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_backup_of_an_older_board_is_restored(repo, newer, tmp_path):
    saved = str(tmp_path / "saved.db")
    repo.ok("board", "backup", saved)
    newer.run(repo, "add", "second", "--as", "ana")
    newer.run(repo, "board", "restore", saved, "--reason", "r", "--as", "ana")
    assert len(newer.run(repo, "list", "--json").json["tasks"]) == 1
    assert newer.run(repo, "doctor", "--json").json["ok"]


def test_a_process_of_the_older_dibs_stops_writing_when_a_newer_one_has_migrated(repo, newer):
    with Hand(repo.folder, "codex", **repo.around) as codex:
        assert codex.do("command", "Claim", task="T-1") == "1.1"
        newer.run(repo, "list")
        for name in ("Renew", "Note", "Complete"):
            more = {"note": "x"} if name == "Note" else {}
            assert codex.do("command", name, task="T-1", **more) == "newer_schema"
        assert codex.do("remaining", "T-1") == "newer_schema"
    assert newer.run(repo, "show", "T-1", "--json").json["task"]["state"] == "in_progress"


# What a file brings along.


PLANTED = {
    "trigger": "CREATE TRIGGER planted AFTER INSERT ON event BEGIN UPDATE task SET title = 'mine'; END",
    "view": "DROP TABLE refusal; CREATE VIEW refusal AS WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS board, i AS id FROM n",
    "table": "CREATE TABLE more (x)",
    "index": "DROP INDEX task_by_key",
}


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("what", PLANTED)
def test_a_backup_with_something_planted_in_it_is_refused(repo, tmp_path, what):
    saved = str(tmp_path / "saved.db")
    repo.ok("board", "backup", saved)
    connection = apsw.Connection(saved)
    connection.execute(PLANTED[what])
    connection.close()
    ran = repo.fails(2, "board", "restore", saved, "--reason", "r", "--as", "ana", "--json")
    assert "not of dibs" in ran.error["message"]
    assert repo.json("show", "T-1")["task"]["title"] == "first"


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_doctor_sees_what_was_planted_in_a_board(repo):
    connection = apsw.Connection(str(repo.database))
    connection.execute(PLANTED["trigger"])
    connection.close()
    findings = repo.fails(1, "doctor", "--json").json["findings"]
    [found] = [f for f in findings if f["what"] == "schema"]
    assert found["level"] == "wrong" and "trigger planted" in found["found"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_nothing_that_a_file_brings_along_is_trusted(bench):
    """No view is used, no function with effects runs in a trigger, the schema is not written by hand."""
    connection = bench.store.connection
    assert connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    assert connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1) == 0
    assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, -1) == 0
    connection.execute("PRAGMA writable_schema = ON")
    with pytest.raises(apsw.SQLError):
        connection.execute("UPDATE sqlite_schema SET sql = ''")
