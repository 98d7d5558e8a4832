"""A schema that somebody else made, or put something into: none of that code runs."""

from __future__ import annotations

import secrets

import psycopg
import pytest

from dibs.board.facts.task import fresh_uid
from dibs.storage.address import Address
from dibs.storage.postgres.store import PostgresStore
from kit.postgres import server
from kit.repositories import Repo

EVIL = """
CREATE FUNCTION {place}.evil() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN EXECUTE 'ALTER ROLE {mallory} SUPERUSER'; RETURN NEW; END$$;
"""
PLANTED = {
    "a table with a trigger": """
        CREATE TABLE dibs.migration (number BIGINT PRIMARY KEY);
        CREATE TRIGGER evil BEFORE INSERT ON dibs.migration FOR EACH ROW EXECUTE FUNCTION dibs.evil();
    """,
    "a view in place of a table": """
        CREATE FUNCTION dibs.view() RETURNS bigint LANGUAGE plpgsql AS
        $$BEGIN EXECUTE 'ALTER ROLE {mallory} SUPERUSER'; RETURN 1; END$$;
        CREATE VIEW dibs.migration AS SELECT dibs.view() AS number;
        CREATE VIEW dibs.home AS SELECT dibs.view() AS board, 'main' AS name, '' AS settings;
    """,
    "an empty schema": "",
}


class Mallory:
    """A role that may make schemas in a database, and no more."""

    def __init__(self, url: str = "") -> None:
        self.url = url or server().new_database()
        self.name = server().new_role(f"m{secrets.token_hex(6)}")
        database = psycopg.conninfo.conninfo_to_dict(self.url)["dbname"]
        server().execute(f'GRANT CREATE ON DATABASE "{database}" TO {self.name}')

    def executes(self, statements: str, place: str = "dibs") -> None:
        with psycopg.connect(self.own_url, autocommit=True) as connection:
            for text in (EVIL, statements) if statements else ():
                connection.execute(
                    text.replace("{mallory}", self.name).replace("{place}", place).encode()
                )

    @property
    def own_url(self) -> str:
        return self.url.replace("postgres@", f"{self.name}@")

    @property
    def is_superuser(self) -> bool:
        with psycopg.connect(self.url) as connection:
            query = "SELECT rolsuper FROM pg_roles WHERE rolname = %s"
            return connection.execute(query, (self.name,)).fetchone()[0]


@pytest.fixture
def mallory():
    return Mallory()


def do(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements.encode())


@pytest.mark.parametrize("planted", PLANTED)
def test_init_refuses_a_schema_that_somebody_else_made(mallory, tmp_path, planted):
    do(mallory.own_url, "CREATE SCHEMA dibs")
    mallory.executes(PLANTED[planted])
    ran = Repo.create(tmp_path / "repo", mallory.url).fails(1, "init", "--json")
    assert ran.error["code"] == "foreign_schema"
    assert f"belongs to {mallory.name}" in ran.error["message"]
    assert not mallory.is_superuser


@pytest.mark.parametrize("planted", PLANTED)
def test_init_refuses_a_schema_that_somebody_else_made_to_who_is_no_superuser(
    mallory, tmp_path, planted
):
    """Her rights are not for others either. She may make a schema, so she need not trust that one."""
    ana = Mallory(mallory.url)
    do(mallory.own_url, "CREATE SCHEMA dibs")
    mallory.executes(PLANTED[planted])
    do(mallory.own_url, f"GRANT ALL ON SCHEMA dibs TO {ana.name}")
    do(mallory.own_url, f"GRANT ALL ON ALL TABLES IN SCHEMA dibs TO {ana.name}")
    ran = Repo.create(tmp_path / "repo", ana.own_url).fails(1, "init", "--json")
    assert ran.error["code"] == "foreign_schema"


VERBS = (
    ("status",), ("list",), ("claim", "T-1", "--agent", "a", "--session", "s"), ("doctor",), ("board", "list"),
    ("board", "grant", "postgres"), ("log", "--verify"), ("config", "--load", "/dev/null", "--as", "ana"),
)  # fmt: skip


def test_no_verb_of_a_superuser_runs_the_code_of_whoever_made_the_board(mallory, tmp_path):
    """The board is sound; its owner adds a trigger that makes a superuser of its author."""
    owner = Repo.create(tmp_path / "owner", mallory.own_url)
    owner.ok("init")
    owner.ok("add", "work", "--as", "ana")
    mallory.executes("""
        CREATE TRIGGER evil BEFORE INSERT OR UPDATE ON dibs.task FOR EACH ROW EXECUTE FUNCTION dibs.evil();
        CREATE TRIGGER evil BEFORE INSERT OR UPDATE ON dibs.board FOR EACH ROW EXECUTE FUNCTION dibs.evil();
        CREATE TRIGGER evil BEFORE INSERT OR UPDATE ON dibs.home FOR EACH ROW EXECUTE FUNCTION dibs.evil();
        CREATE TRIGGER evil BEFORE INSERT ON dibs.actor FOR EACH ROW EXECUTE FUNCTION dibs.evil();
    """)
    repo = Repo.create(tmp_path / "repo", mallory.url)
    for verb in VERBS:
        ran = repo.run(*verb)
        assert ran.code == 1, (verb, ran.err)
        assert f"schema dibs belongs to {mallory.name}" in ran.out + ran.err, verb
    assert not mallory.is_superuser


def test_a_move_or_a_restore_into_a_foreign_schema_is_refused(mallory, tmp_path):
    do(mallory.own_url, "CREATE SCHEMA dibs")
    mallory.executes(PLANTED["a table with a trigger"])
    here = Repo.create(tmp_path / "repo")
    here.ok("init")
    here.add()
    here.ok("board", "backup", "../b.db")
    here.ok("export", "../b.jsonl")
    away = Repo.create(tmp_path / "away", mallory.url)
    for repo, verb in (
        (here, ("board", "move", "--to", mallory.url, "--as", "ana")),
        (away, ("board", "restore", "../b.db", "--as", "ana", "--reason", "try")),
        (away, ("import", "../b.jsonl", "--format", "dibs", "--as", "ana")),
    ):
        ran = repo.run(*verb)
        assert ran.code == 1, (verb, ran.err)
        assert f"belongs to {mallory.name}" in ran.err, verb
    assert not mallory.is_superuser


def test_a_trigger_by_somebody_who_was_granted_it_is_refused(mallory, tmp_path):
    """The tables are ours, and the function of the trigger is not."""
    repo = Repo.create(tmp_path / "repo", mallory.url)
    repo.ok("init")
    do(
        mallory.url,
        f"GRANT USAGE ON SCHEMA dibs TO {mallory.name}; GRANT TRIGGER ON dibs.task TO {mallory.name}",
    )
    do(mallory.own_url, f"CREATE SCHEMA {mallory.name}")
    mallory.executes(
        f"CREATE TRIGGER evil BEFORE INSERT ON dibs.task FOR EACH ROW EXECUTE FUNCTION {mallory.name}.evil()",
        place=mallory.name,
    )
    ran = repo.fails(1, "add", "work", "--as", "ana")
    assert f"trigger evil on table dibs.task belongs to {mallory.name}" in ran.err
    assert not mallory.is_superuser


UNKNOWN = {
    "view": "CREATE VIEW dibs.report AS SELECT key FROM dibs.task",
    "function": "CREATE FUNCTION dibs.helper() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "trigger": "CREATE TRIGGER other AFTER INSERT ON dibs.task EXECUTE FUNCTION dibs.refuse('no')",
    "rule": "CREATE RULE other AS ON INSERT TO dibs.note DO ALSO NOTHING",
    "table": "CREATE TABLE dibs.other (x int)",
    "domain": "CREATE DOMAIN dibs.other AS text",
}  # fmt: skip


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_dibs_did_not_put_into_its_schema_is_named_before_anything_is_granted(tmp_path, kind):
    url = server().new_database()
    repo = Repo.create(tmp_path / "repo", url)
    repo.ok("init")
    role = server().new_role(f"r{secrets.token_hex(6)}")
    repo.ok("board", "grant", role)
    do(url, UNKNOWN[kind])
    ran = repo.fails(1, "board", "grant", role)
    name = {"view": "report", "function": "helper"}.get(kind, "other")
    assert name in ran.err
    assert "is not part of a board" in ran.err


def test_a_role_uses_what_belongs_to_the_owner_of_the_schema(tmp_path):
    """The owner need not be a superuser, nor own the database."""
    mallory = Mallory()
    repo = Repo.create(tmp_path / "repo", mallory.own_url)
    repo.ok("init")
    repo.ok("add", "work", "--as", "ana")
    role = server().new_role(f"r{secrets.token_hex(6)}")
    repo.ok("board", "grant", role)
    guest = Repo.create(tmp_path / "guest", mallory.url.replace("postgres@", f"{role}@"))
    guest.ok("claim", "T-1", "--agent", "a", "--session", "s")
    assert PostgresStore(Address(mallory.own_url)).create(fresh_uid()) is False


def test_a_function_in_front_of_the_servers_own_is_not_called(mallory, tmp_path):
    """Somebody who may write to a schema of the search path; a domain fits it better than a number."""
    repo = Repo.create(tmp_path / "repo", mallory.url)
    repo.ok("init")
    repo.ok("add", "work", "--as", "ana")
    do(
        mallory.url,
        f"GRANT CREATE ON SCHEMA public TO {mallory.name}; GRANT USAGE ON SCHEMA dibs TO {mallory.name}",
    )
    mallory.executes(
        """CREATE FUNCTION public.step(s bigint, v dibs.seq_of_event) RETURNS bigint LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'it runs'; END$$;
        CREATE AGGREGATE public.max(dibs.seq_of_event) (SFUNC = public.step, STYPE = bigint)""",
        place="public",
    )
    repo.ok("log", "--verify")
    repo.ok("doctor")
