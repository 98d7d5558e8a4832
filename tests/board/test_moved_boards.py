"""Places where a board was, or is under another name: nobody is led astray, and nothing is taken away."""

from __future__ import annotations

import itertools

import pytest

from dibs.board.identity import Identity
from dibs.board.locate import Place, copier, store_to
from dibs.board.settings import Settings
from dibs.board.transfer import move as moving
from dibs.board.user_config import User
from dibs.opening import open_at
from dibs.storage.errors import BoardMoved
from dibs.storage.transaction import WriteTransaction
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


# Copies that have not arrived.


@pytest.fixture
def cut_short(monkeypatch):
    """A move that ends when the copy is committed, before its source is left."""

    def move(shop, source, to):
        def killed(*_):
            raise RuntimeError

        where = Place(source) if source.startswith("/") else Place("/nowhere", url=source)
        board = open_at(where.but(user=User(str(shop.config))))
        with monkeypatch.context() as patch, pytest.raises(RuntimeError):
            patch.setattr(WriteTransaction, "fence", killed)
            moving.move(board, to, Identity("ana", True, ""))
        board.store.close()

    return move


@pytest.mark.parametrize("server", [True, False])
def test_an_old_record_that_leads_to_a_copy_does_not_wake_it(
    shop, url, tmp_path, cut_short, server
):
    """The board is where it was: whoever comes from further back is led there, by way of the copy."""
    first, last = str(tmp_path / "first"), str(tmp_path / "last")
    middle = f"{url}#middle" if server else str(tmp_path / "middle")
    shop.ok("init", **at(first))
    shop.ok("add", "one", *ANA, **at(first))
    for source, to in ((first, middle), (middle, last)):
        shop.ok("board", "move", "--to", to, *ANA, **at(source))
    cut_short(shop, last, middle)
    shop.ok("claim", "T-1", *CODEX, **at(last))
    for place in (first, middle, last):
        ran = shop.run("claim", "T-1", "--agent", "bob", "--session", "s2", "--json", **at(place))
        assert (ran.code, ran.error["facts"]["holder"]) == (4, "codex"), place
    shop.ok("board", "move", "--to", middle, *ANA, **at(last))
    for place in (first, middle, last):
        assert (
            shop.ok("renew", "T-1", *CODEX, "--json", **at(place)).json["lease"]["token"] == "1.1"
        )


@pytest.mark.parametrize("server", [True, False])
def test_who_was_sent_there_by_an_earlier_move_wakes_no_copy(
    shop, url, tmp_path, cut_short, server
):
    """A packet may be long on its way: the board has come back and set out again meanwhile."""
    here, there = str(tmp_path / "here"), f"{url}#there" if server else str(tmp_path / "there")
    shop.ok("init", **at(here))
    shop.ok("add", "one", *ANA, **at(here))
    shop.ok("board", "move", "--to", there, *ANA, **at(here))
    with pytest.raises(BoardMoved) as sent, open_store(here).read():
        pass
    shop.ok("board", "move", "--to", here, *ANA, **at(there))
    cut_short(shop, here, there)
    late = open_store(there)
    copier(late).activate_copy(late, sent.value.refusal.facts["board"], sent.value.word)
    with pytest.raises(BoardMoved), late.read():
        pass
    late.close()
    shop.ok("claim", "T-1", *CODEX, **at(here))


def open_store(where: str):
    return store_to(where, None, Settings())


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
    code, what, output = refusal(restored)
    assert (code, what) == (1, "in_this_database") and "#live" in output
    shop.ok("renew", "T-2", *CODEX, **live)
    assert [b["name"] for b in shop.ok("board", "list", "--json", **live).json["boards"]] == [
        "live"
    ]


@pytest.mark.parametrize("server", [True, False])
def test_a_board_to_which_a_former_name_leads_is_not_restored_under_another(
    shop, url, tmp_path, server
):
    """It would be there twice, with two holders of one task."""
    web, saved = at(f"{url}#web"), str(tmp_path / "saved.db")
    shop.ok("init", **web)
    shop.ok("add", "one", *ANA, **web)
    shop.ok("board", "backup", saved, **web)
    folder = tmp_path / "folder"
    place = f"{database_apart()}#web" if server else str(folder)
    shop.ok("board", "move", "--to", place, *ANA, **web)
    shop.ok("claim", "T-1", *CODEX, **web)
    restore = ("board", "restore", saved, "--reason", "look", *ANA)
    refused = shop.fails(1, *restore, "--json", **at(f"{url}#look"))
    assert refused.error["code"] == "in_this_database"
    shop.ok("renew", "T-1", *CODEX, **web)
    if not server:
        folder.rename(tmp_path / "lost")  # then it may begin again
        shop.ok(*restore, **at(f"{url}#look"))
        assert titles(shop, f"{url}#web") == ["one"]


def test_a_move_within_a_database_is_refused_with_what_to_do_instead(shop, url, tmp_path):
    web = at(f"{url}#web")
    shop.ok("init", **web)
    for check in ((), ("--check",)):
        refused = shop.fails(1, "board", "move", "--to", f"{url}#shop", *check, *ANA, **web)
        assert f"it is in this database already, {url}#web" in refused.err
        assert "move it to a folder, then back" in refused.err
    shop.ok("board", "move", "--to", str(tmp_path / "folder"), *ANA, **web)
    shop.ok("board", "move", "--to", f"{url}#shop", *ANA, **web)
    shop.ok("add", "one", *ANA, **at(f"{url}#shop"))


# A place to which the board went, and where it is not.


@pytest.fixture
def away(shop, url, tmp_path):
    """A board that was moved from a database into a folder, with somebody at work: both places."""
    here, there = f"{url}#web", str(tmp_path / "away")
    shop.ok("init", **at(here))
    shop.ok("add", "one", *ANA, **at(here))
    shop.ok("claim", "T-1", *CODEX, **at(here))
    shop.ok("board", "move", "--to", there, *ANA, **at(here))
    return here, there


LINES = (("renew", "T-1", *CODEX), ("list",), ("add", "two", *ANA), ("init",))


def test_another_board_where_the_board_went_is_not_taken_for_it(shop, away, tmp_path):
    here, there = away
    other = tmp_path / "other"
    shop.ok("init", **at(str(other)))
    shop.ok("add", "another's", *ANA, **at(str(other)))
    (tmp_path / "away").rename(tmp_path / "lost")
    other.rename(tmp_path / "away")
    for line in LINES:
        code, what, ran = refusal(shop.run(*line, "--json", **at(here)))
        assert (code, what) == (75, "board_moved") and f"another board is in {there}" in ran, line
    assert titles(shop, there) == ["another's"]


def test_where_the_board_went_is_told_to_a_machine_that_lacks_the_place(shop, away, tmp_path):
    here, there = away
    (tmp_path / "away").rename(tmp_path / "elsewhere")
    for line in LINES:
        code, what, ran = refusal(shop.run(*line, "--json", **at(here)))
        assert (code, what) == (75, "board_moved") and there in ran, line
    [known] = shop.ok("board", "list", "--json", **at(here)).json["boards"]
    assert known["state"] == f"moved to {there}"


def test_a_copy_that_has_not_arrived_says_where_the_board_still_is(shop, url, tmp_path):
    import psycopg

    shop.ok("init")
    web = at(f"{url}#web")
    shop.ok("board", "move", "--to", web["DIBS_URL"], *ANA)
    with psycopg.connect(url, autocommit=True) as connection:  # as a move leaves it that is killed
        connection.execute("UPDATE dibs.board SET arriving = 1")
    shop.folder.rename(tmp_path / "on-another-machine")
    far = Repo(tmp_path)
    for line in LINES:
        code, what, ran = refusal(far.run(*line, "--json", **web))
        assert (code, what) == (75, "board_moved") and str(shop.folder) in ran


# Every former place.


def lead_on(shop: Repo, *places: str) -> None:
    for place in places:
        shop.ok("renew", "T-1", *CODEX, **at(place))


def test_every_former_place_leads_to_the_board_however_often_it_moved(shop, url, tmp_path):
    home, folder = str(shop.folder / ".git/dibs"), str(tmp_path / "folder")
    shop.ok("init")
    shop.ok("add", "one", *ANA)
    shop.ok("claim", "T-1", *CODEX)
    route = [home, f"{url}#ch", folder, f"{url}#ch2", folder, f"{url}#ch", folder, f"{url}#ch3"]
    for stage, (source, target) in enumerate(itertools.pairwise(route)):
        shop.ok("board", "move", "--to", target, *ANA, **at(source))
        lead_on(shop, *route[: stage + 2])
    assert shop.ok("log", "--verify", "--json", **at(home)).json["ok"]


def test_former_places_lead_on_where_a_move_was_given_up_for_another(shop, url, tmp_path):
    """A copy that never arrived goes; who was led to it is led to the next one."""
    import psycopg

    folder = str(tmp_path / "folder")
    shop.ok("init", **at(f"{url}#ch"))
    shop.ok("add", "one", *ANA, **at(f"{url}#ch"))
    shop.ok("claim", "T-1", *CODEX, **at(f"{url}#ch"))
    shop.ok("board", "move", "--to", folder, *ANA, **at(f"{url}#ch"))
    shop.ok("board", "move", "--to", f"{url}#ch2", *ANA, **at(folder))
    with psycopg.connect(
        url, autocommit=True
    ) as connection:  # as a kill before the fence leaves it
        connection.execute("UPDATE dibs.board SET arriving = 1 WHERE arriving = 2")
    unfence(folder)
    lead_on(shop, f"{url}#ch", f"{url}#ch2", folder)
    shop.ok("board", "move", "--to", f"{url}#ch3", *ANA, **at(folder))
    lead_on(shop, f"{url}#ch", folder, f"{url}#ch3")
    (tmp_path / "folder").rename(tmp_path / "on-another-machine")
    lead_on(shop, f"{url}#ch")


def unfence(folder: str) -> None:
    import apsw

    connection = apsw.Connection(f"{folder}/board.db")
    connection.execute("UPDATE board SET moved_to = '', arriving = 0")
    connection.close()


def test_a_backup_of_a_board_that_moved_away_is_led_to_from_its_former_name(shop, url, tmp_path):
    folder, saved = tmp_path / "folder", str(tmp_path / "saved.db")
    web, new = at(f"{url}#web"), at(f"{url}#new")
    shop.ok("init", **web)
    shop.ok("add", "one", *ANA, **web)
    shop.ok("board", "backup", saved, **web)
    shop.ok("board", "move", "--to", str(folder), *ANA, **web)
    folder.rename(tmp_path / "lost")
    shop.ok("board", "restore", saved, "--reason", "the disk", *ANA, **new)
    shop.ok("add", "two", *ANA, **new)
    assert len(titles(shop, f"{url}#web")) == 2


# What was replaced.


@pytest.fixture
def replaced(shop, url, tmp_path):
    """A board in a database, brought back from a backup after more was done: the name of what it was."""
    web, saved = at(f"{url}#web"), str(tmp_path / "saved.db")
    shop.ok("init", **web)
    shop.ok("add", "one", *ANA, **web)
    shop.ok("board", "backup", saved, **web)
    shop.ok("add", "two", *ANA, **web)
    shop.ok("claim", "T-2", *CODEX, **web)
    shop.ok("board", "restore", saved, "--reason", "a mistake", *ANA, **web)
    names = [b["name"] for b in shop.ok("board", "list", "--json", **web).json["boards"]]
    [kept] = [name for name in names if name != "web"]
    return f"{url}#{kept}"


def test_what_was_replaced_in_a_database_can_be_read(shop, url, replaced, tmp_path):
    assert titles(shop, replaced) == ["one", "two"]
    assert titles(shop, f"{url}#web") == ["one"]
    shown = shop.ok("show", "T-2", "--json", **at(replaced)).json["task"]
    assert (shown["holder"]["name"], shown["token"]) == ("codex", "1.1")
    verbs = [e["verb"] for e in shop.ok("log", "--json", **at(replaced)).json["events"]]
    assert "claimed" in verbs and "epoch_raised" not in verbs
    assert shop.ok("log", "--verify", "--json", **at(replaced)).json["ok"]
    exported = shop.ok("export", str(tmp_path / "kept.jsonl"), "--json", **at(replaced)).json
    assert exported["tasks"] == 2


READS = (
    "status", "why T-2", "who T-2", "doctor", "config", "actor list", "stint list", "timesheet",
    "wait T-1 --for free", "log --head", "export --events", "board list", "init",
)  # fmt: skip


def test_every_question_about_what_was_replaced_is_answered(shop, url, replaced):
    before = shop.ok("log", "--json", **at(f"{url}#web")).json["events"]
    for line in READS:
        shop.ok(*line.split(), **at(replaced))
    assert titles(shop, replaced) == ["one", "two"]
    assert shop.ok("log", "--json", **at(f"{url}#web")).json["events"] == before


WRITES = (
    ("add", "three", *ANA), ("renew", "T-2", *CODEX), ("claim", "T-1", *CODEX), ("next", *CODEX),
    ("board", "restore", "--in-place", "--reason", "r", *ANA), ("board", "move", "--to", "../x", *ANA),
    ("config", "--load", "../settings.toml", *ANA),
)  # fmt: skip


def test_what_was_replaced_takes_no_changes_and_passes_none_on(shop, url, replaced):
    (shop.folder / "../settings.toml").write_text("")
    before = shop.ok("log", "--json", **at(f"{url}#web")).json["events"]
    for line in WRITES:
        code, what, ran = refusal(shop.run(*line, "--json", **at(replaced)))
        assert (code, what) == (75, "board_moved") and f"{url}#web" in ran, line
    assert shop.ok("log", "--json", **at(f"{url}#web")).json["events"] == before


def test_a_restore_on_a_server_can_be_undone(shop, url, replaced, tmp_path):
    web, saved = at(f"{url}#web"), str(tmp_path / "undone.db")
    shop.ok("add", "in between", *ANA, **web)
    shop.ok("board", "backup", saved, **at(replaced))
    shop.ok("board", "restore", saved, "--reason", "undone", *ANA, **web)
    assert titles(shop, f"{url}#web") == ["one", "two"]
    assert titles(shop, replaced) == ["one", "two"]
    assert len(shop.ok("board", "list", "--json", **web).json["boards"]) == 3
    shop.fails(5, "renew", "T-2", *CODEX, **web)
    shop.ok("claim", "T-2", *CODEX, **web)
    assert shop.ok("log", "--verify", "--json", **web).json["ok"]


def test_what_was_exported_of_a_replaced_board_is_a_board_again(shop, replaced, tmp_path):
    file, folder = str(tmp_path / "kept.jsonl"), str(tmp_path / "folder")
    shop.ok("export", file, **at(replaced))
    shop.ok("import", file, *ANA, **at(folder))
    assert titles(shop, folder) == ["one", "two"]
    shop.ok("claim", "T-2", *CODEX, **at(folder))


def test_whoever_had_the_replaced_board_open_goes_on_in_the_new_one(url, tmp_path):
    import dibs

    shop = Repo.create(tmp_path / "shop", f"{url}#web")
    saved = str(tmp_path / "saved.db")
    shop.ok("init")
    shop.add("one")
    shop.ok("board", "backup", saved)
    with dibs.open_board(str(shop.folder), person="ana", environment=shop.around) as board:
        board.add("two")
        shop.ok("board", "restore", saved, "--reason", "a mistake", *ANA)
        assert [task.title for task in board.list()] == ["one"]
        board.add("three")
    assert titles(shop, f"{url}#web") == ["one", "three"]
