"""What is written on a server is written in UTF-8, whatever is set around it."""

from __future__ import annotations

import psycopg
import pytest

from dibs.board.facts.task import fresh_uid
from dibs.storage.address import parse
from kit.postgres import server
from kit.repositories import Repo

SNOWMAN = "☃ für 東京"
OTHERS = ("SQL_ASCII", "LATIN1", "EUC_JP")


def of_a_role(url: str) -> dict[str, str]:
    name = server().new_role(f"r{fresh_uid()[:13]}", "LOGIN SUPERUSER")
    server().execute(f"ALTER ROLE \"{name}\" SET client_encoding = 'LATIN1'")
    return {"DIBS_URL": url.replace("postgres@", f"{name}@")}


def of_the_address(url: str) -> dict[str, str]:
    return {"DIBS_URL": url.replace("#", "&client_encoding=SQL_ASCII#")}


def of_its_options(url: str) -> dict[str, str]:
    return {"DIBS_URL": url.replace("#", "&options=-cclient_encoding%3DLATIN1#")}


def of_the_environment(_url: str) -> dict[str, str]:
    return {"PGCLIENTENCODING": "LATIN1"}


@pytest.mark.parametrize("kind", ["postgres"])
@pytest.mark.parametrize("setting", [of_a_role, of_the_address, of_its_options, of_the_environment])
def test_every_letter_is_written_and_read_whatever_encoding_is_set_for_clients(repo, setting):
    around = setting(repo.around["DIBS_URL"])
    repo.ok("add", SNOWMAN, "--as", "ana", **around)
    for verb in (("list",), ("log", "--verify"), ("doctor",), ("board", "backup", "saved.db")):
        output = repo.ok(*verb, **around).out
        assert SNOWMAN in output or verb != ("list",)
    assert SNOWMAN in repo.ok("list").out


@pytest.mark.parametrize("encoding", OTHERS)
def test_no_board_is_made_in_a_database_that_cannot_hold_every_letter(tmp_path, encoding):
    url = server().new_database(encoding=encoding)
    ran = Repo.create(tmp_path / "repo", f"{url}#web").fails(2, "init")
    assert encoding in ran.err
    assert "ENCODING 'UTF8' TEMPLATE template0" in ran.err
    assert not has_schema(url)


@pytest.mark.parametrize("encoding", OTHERS)
def test_no_board_moves_into_a_database_that_cannot_hold_every_letter(tmp_path, encoding):
    url = server().new_database(encoding=encoding)
    repo = Repo.create(tmp_path / "repo")
    repo.ok("init")
    repo.add(SNOWMAN)
    for how in ((), ("--check",)):
        ran = repo.fails(2, "board", "move", "--to", f"{url}#web", "--as", "ana", *how)
        assert encoding in ran.err
    assert not has_schema(url)
    assert SNOWMAN in repo.ok("list").out, "it is where it was"


def has_schema(url: str) -> bool:
    with psycopg.connect(parse(url).url) as connection:
        return connection.execute("SELECT to_regnamespace('dibs') IS NOT NULL").fetchone() == (
            True,
        )
