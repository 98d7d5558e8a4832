"""With the server away: a check says so, a prompt does not wait, and who said how long to wait does."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from kit.postgres_ground import free_port, until
from kit.repositories import Repo
from kit.writers import board_with, opened_by

A = ("--agent", "codex", "--session", "s1")


@pytest.fixture
def away(tmp_path):
    """Nobody listens there."""
    repo = Repo.create(tmp_path / "repo", f"postgresql://ana@127.0.0.1:{free_port()}/team#web")
    set_up(repo)
    return repo


def set_up(repo, settings: str = 'write_wait = "1s"\n') -> None:
    folder = repo.folder / ".git" / "dibs"
    folder.mkdir(exist_ok=True)
    (folder / "settings.toml").write_text(settings)


def database(node) -> str:
    name = f"away{time.monotonic_ns()}"
    with node.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return name


def test_doctor_says_in_its_table_that_the_server_does_not_answer(away):
    ran = away.fails(1, "doctor")
    [server] = [line for line in ran.out.splitlines() if line.startswith("wrong")]
    assert server.split()[1] == "server"
    assert "is unreachable" in server
    assert "Connection refused" in server
    assert "dibs doctor" not in ran.out + ran.err, "that is what was just done"
    assert "git hooks" in ran.out, "what needs no server is looked at all the same"
    reply = away.fails(1, "doctor", "--json").json
    assert reply["ok"] is False
    assert reply["findings"][0]["level"] == "wrong"


def test_doctor_says_in_its_table_that_the_server_did_not_let_somebody_in(away, node):
    away.around["DIBS_URL"] = f"{node.url('nowhere')}#web"
    ran = away.fails(1, "doctor")
    assert "login failed for postgres" in ran.out


def test_a_prompt_does_not_wait_for_a_server_that_is_away(away):
    assert seconds_of_a_prompt(away) < 20


def test_a_prompt_does_not_wait_for_a_server_that_keeps_silent(away):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        away.around["DIBS_URL"] = f"postgresql://ana@127.0.0.1:{port}/team#web"
        assert seconds_of_a_prompt(away) < 20


def seconds_of_a_prompt(repo) -> float:
    set_up(repo, 'write_wait = "50s"\n')
    repo.ok("--version")
    began = time.monotonic()
    assert repo.ok("statusline", *A).out == "dibs?\n"
    return time.monotonic() - began


def test_a_board_is_made_as_soon_as_the_server_is_back(node, proxy, tmp_path):
    repo = Repo.create(tmp_path / "repo", f"{proxy.url(database(node))}#web")
    proxy.refuse()
    back = threading.Timer(0.7, proxy.accept)
    back.start()
    assert "the board was created" in repo.ok("init").out
    back.join()


@pytest.mark.parametrize(
    "verb",
    [
        ("wait", "T-1", "--for", "ready", "--timeout"),
        ("watch", "T-1", "--since", "0", "--count", "1", "--timeout"),
        ("next", *A, "--wait"),
    ],
)
def test_who_says_how_long_to_wait_waits_so_long_for_the_server_too(node, proxy, tmp_path, verb):
    """It is away before the first look, for longer than a command waits."""
    name = database(node)
    board_with(node.url(name), tasks=1)
    repo = Repo.create(tmp_path / "repo", proxy.url(name))
    set_up(repo)
    proxy.refuse()
    back = threading.Timer(2.5, proxy.accept)
    back.start()
    assert "T-1" in repo.ok(*verb, "50s").out
    back.join()


def test_who_waits_is_not_put_off_by_a_server_that_goes_away_meanwhile(node, proxy):
    name = database(node)
    [key] = board_with(node.url(name), tasks=1)
    with node.connect(name) as connection:
        connection.execute("UPDATE dibs.home SET settings = 'write_wait = \"1s\"'")
    with opened_by(proxy.url(name), "ben") as ben, opened_by(node.url(name), "al") as al:
        seen = []
        waiting = threading.Thread(target=lambda: seen.append(ben.wait(key, timeout="50s").state))
        events = ben.watch(key, since=0, timeout="50s")
        assert next(events).verb == "added"
        waiting.start()
        until(lambda: len(proxy.lines) > 2, "a connection of each")
        proxy.refuse()
        al.claim(key)
        al.complete(key)
        back = threading.Timer(2.5, proxy.accept)
        back.start()
        assert next(events).verb == "claimed"
        waiting.join()
        assert seen == ["complete"]
        events.close()


def test_who_waits_for_work_is_not_put_off_by_a_server_that_goes_away_meanwhile(node, proxy):
    name = database(node)
    [key] = board_with(node.url(name), tasks=1)
    with node.connect(name) as connection:
        connection.execute("UPDATE dibs.home SET settings = 'write_wait = \"1s\"'")
    with opened_by(proxy.url(name), "ben") as ben, opened_by(node.url(name), "al") as al:
        al.claim(key)
        found = []
        waiting = threading.Thread(target=lambda: found.append(ben.next(wait="50s").task.key))
        waiting.start()
        until(lambda: proxy.lines, "a connection")
        proxy.refuse()
        al.release(key)
        back = threading.Timer(2.5, proxy.accept)
        back.start()
        waiting.join()
        assert found == [key]


def test_who_waited_long_enough_for_a_server_is_told_that_it_is_away(away):
    began = time.monotonic()
    assert away.fails(75, "wait", "T-1", "--for", "ready", "--timeout", "3s").err
    assert 3 <= time.monotonic() - began < 30
