"""Places where a board was, or is under another name: nobody is led astray, and nothing is taken away."""

from __future__ import annotations

import pytest

from kit.boards import database_apart
from kit.repositories import Repo

ANA = ("--as", "ana")
CODEX = ("--agent", "codex", "--session", "s1")


@pytest.fixture
def url():
    """A database of one's own."""
    return database_apart()


@pytest.fixture
def shop(tmp_path):
    return Repo.create(tmp_path / "shop")


def at(where: str) -> dict[str, str]:
    """An environment in which the board is there."""
    return {"DIBS_BOARD" if where.startswith("/") else "DIBS_URL": where}


def titles(repo: Repo, where: str) -> list[str]:
    return [task["title"] for task in repo.ok("list", "--json", **at(where)).json["tasks"]]


def refusal(ran) -> tuple[int, str, str]:
    return ran.code, ran.error["code"], ran.error["message"]


# Under another name.


def test_a_backup_does_not_take_away_the_live_board_of_another_name(shop, url, tmp_path):
    live, look = at(f"{url}#live"), at(f"{url}#look")
    saved = str(tmp_path / "live.db")
    shop.ok("init", **live)
    shop.ok("add", "one", *ANA, **live)
    shop.ok("board", "backup", saved, **live)
    shop.ok("add", "two", *ANA, **live)
    shop.ok("claim", "T-2", *CODEX, **live)
    restored = shop.run("board", "restore", saved, "--reason", "look", *ANA, "--json", **look)
    code, what, said = refusal(restored)
    assert (code, what) == (1, "in_this_database") and "#live" in said
    shop.ok("renew", "T-2", *CODEX, **live)
    assert [b["name"] for b in shop.ok("board", "list", "--json", **live).json["boards"]] == [
        "live"
    ]


def test_a_move_within_a_database_is_refused_with_what_to_do_instead(shop, url, tmp_path):
    web = at(f"{url}#web")
    shop.ok("init", **web)
    for check in ((), ("--check",)):
        refused = shop.fails(1, "board", "move", "--to", f"{url}#shop", *check, *ANA, **web)
        assert f"it is in this database already, {url}#web" in refused.err
        assert "move it to a folder and from there" in refused.err
    shop.ok("board", "move", "--to", str(tmp_path / "folder"), *ANA, **web)
    shop.ok("board", "move", "--to", f"{url}#shop", *ANA, **web)
    shop.ok("add", "one", *ANA, **at(f"{url}#shop"))
