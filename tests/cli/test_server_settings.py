"""A board on a server: where it is said to be, and how its settings are loaded and told."""

from __future__ import annotations

import pytest

from dibs.domain.refusals import Refused
from dibs.storage.address import Address, parse
from kit.boards import new_address
from kit.repositories import Repo


@pytest.fixture
def far(tmp_path):
    repo = Repo.create(tmp_path / "repo", new_address("postgres"))
    repo.ok("init")
    return repo


def shown(url: str) -> str:
    return str(parse(url))


def url_of(repo) -> dict[str, str]:
    return repo.json("config")["settings"]["url"]


def test_config_shows_the_address_that_is_in_force_and_who_says_it(far):
    url = far.around["DIBS_URL"]
    assert url_of(far) == {"value": shown(url), "source": "DIBS_URL"}
    far.around.clear()
    far.ok("config", "url", url)
    assert url_of(far) == {"value": shown(url), "source": str(far.config / "servers.toml")}
    far.around["DIBS_URL"] = f"{url}x"  # no board is there
    assert url_of(far) == {"value": f"{shown(url)}x", "source": "DIBS_URL"}


def test_a_bad_address_is_told_where_it_stands(far):
    assert "url: it is not an address" in far.fails(2, "config", "url", "nonsense").err
    far.around.clear()
    far.ok("config", "url", "postgresql://h/x")
    servers = far.config / "servers.toml"
    servers.write_text(servers.read_text().replace("postgresql", "nonsense"))
    assert "servers.toml: the url is not an address" in far.run("list").err
    far.around["DIBS_URL"] = "nonsense"
    assert "DIBS_URL is not an address" in far.run("list").err


def test_config_shows_the_address_that_a_board_moved_to(tmp_path):
    repo, url = Repo.create(tmp_path / "repo"), new_address("postgres")
    repo.ok("init")
    assert url_of(repo) == {"value": "none", "source": "default"}
    repo.ok("board", "move", "--to", url, "--as", "ana")
    assert url_of(repo) == {"value": shown(url), "source": "moved"}


@pytest.mark.parametrize(
    "text",
    [
        'ttl_agent = "soon"',
        "no_such = 1",
        "dispatch = 1",
        "areas = 1",
        "[agents.x]\nno = 1",
        "x = ",
        'url = ""',
    ],
)
def test_what_is_wrong_with_a_file_that_is_loaded_is_told_of_that_file(far, text):
    (far.folder / "board.toml").write_text(text)
    message = far.fails(2, "config", "--load", "board.toml", "--as", "ana").err
    assert "dibs: board.toml" in message
    assert "postgresql" not in message


NAMES = {
    "..": "begins with a letter or a digit",
    "-x": "begins with a letter or a digit",
    "a" * 80: "has at most 63 characters",
    "a b": "is letters, digits",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_board_is_refused_with_the_rule_that_it_breaks(name):
    with pytest.raises(Refused) as problem:
        parse(f"postgresql://h/x#{name}")
    assert NAMES[name] in problem.value.refusal.message


@pytest.mark.parametrize("name", ["a", "0", "a" * 63, "a.b_c-D"])
def test_a_name_of_a_board_that_keeps_the_rules_is_taken(name):
    assert parse(f"postgresql://h/x#{name}") == Address("postgresql://h/x", name)


@pytest.mark.parametrize(
    ("url", "user"),
    [
        ("postgresql://ana:geheim@h/x", "ana"),
        ("postgresql://a%40b@h/x", "a@b"),
        ("postgresql://h/x", ""),
        ("postgresql:///?service=team", ""),
    ],
)
def test_whom_an_address_names(url, user):
    assert Address(url).user == user
