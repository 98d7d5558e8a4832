"""A database whose letters are compared by the rules of some language: a board's are not."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from dibs.storage import queries
from kit.postgres import QUICK, Node, Server
from kit.repositories import Repo

LOCALE = "tr_TR.UTF-8"


@pytest.fixture(scope="module")
def turkish(tmp_path_factory):
    """A database in which the small letter of I is not i, on a server that knows that language."""
    if not shutil.which("localedef"):
        pytest.skip("localedef is not installed")
    node = Node(QUICK)
    made = subprocess.run(
        ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(node.folder / LOCALE)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not (node.folder / LOCALE).is_dir():
        pytest.skip(f"the language is not here: {made.stderr}")
    with pytest.MonkeyPatch.context() as around:
        around.setenv("LOCPATH", str(node.folder))
        node.init().start()
    with node.connect() as connection:
        connection.execute(
            f"CREATE DATABASE turkish TEMPLATE template0 ENCODING 'UTF8' LOCALE '{LOCALE}'".encode()
        )
    assert node.query("SELECT lower('WRK-I')", "turkish") == "wrk-\N{LATIN SMALL LETTER DOTLESS I}"
    yield Server(node.url(), node).url_of("turkish")
    node.remove()


def test_a_key_with_an_i_is_found_in_a_turkish_database(turkish, tmp_path):
    repo = Repo.create(tmp_path / "repo", turkish)
    repo.ok("init")
    repo.ok("add", "work", "--key", "WRK-I", "--as", "ana")
    assert "WRK-I is yours" in repo.ok("claim", "WRK-I", "--agent", "a", "--session", "s").out
    for written in ("WRK-I", "wrk-i", "Wrk-i"):
        assert repo.json("show", written)["task"]["key"] == "WRK-I"
        repo.ok("renew", written, "--agent", "a", "--session", "s")
        assert repo.fails(1, "add", "again", "--key", written, "--as", "ana").err
    repo.ok("add", "after", "--key", "II-1", "--after", "wrk-i", "--as", "ana")
    repo.ok("complete", "wrk-i", "--agent", "a", "--session", "s")
    repo.ok("log", "--verify")
    repo.ok("claim", "ii-1", "--agent", "IRIS", "--session", "s")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_database_folds_what_a_client_says(kind):
    """Each database has its own rules for letters; the collation of a column is known, that of a value is not."""
    texts = [*queries.load(kind).all().values(), *sum(queries.migrations(kind).values(), ())]
    for text in texts:
        assert not re.search(r"\b(lower|upper|initcap)\s*\((?!key\))", text, re.IGNORECASE), text
