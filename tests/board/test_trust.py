"""Nobody's code runs and nobody's server is contacted because of a file that somebody else wrote."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dibs.domain.refusals import Refused
from dibs.storage.address import Address, parse, parse_untrusted
from dibs.storage.postgres.health import is_local, tls
from kit.backlogs import KANO, TASK
from kit.boards import database_apart, new_address
from kit.harnesses import claude_event, edit, hook
from kit.listening import AsksForPassword, Listener
from kit.postgres import PASSWORD, server
from kit.repositories import DIBS, Repo, git

AS = ("--as", "ana")
A = ("--agent", "codex", "--session", "s1")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
SOMEBODY = 12345


@pytest.fixture
def listener():
    with Listener() as listener:
        yield listener


@pytest.fixture
def shop(tmp_path):
    shop = Repo.create(tmp_path / "shop")
    shop.ok("init")
    return shop


def beside(repo, text: str) -> None:
    folder = repo.folder / ".git" / "dibs"
    folder.mkdir(exist_ok=True)
    (folder / "settings.toml").write_text(text)


def uid_of(repo) -> str:
    return repo.json("init")["board"]


EVERY_VERB = [
    ("status",), ("list",), ("show", "T-1"), ("claim", "T-1", *A), ("next", *A), ("add", "x", *AS), ("who", "T-1"),
    ("log",), ("sweep", *AS), ("timesheet",), ("config",), ("doctor",), ("prime", *A), ("statusline", *A),
    ("init",), ("sync", *AS), ("export", "-"), ("board", "list"), ("dispatch", "--once", *AS), ("guard", "commit"),
    ("setup", "git"), ("uninstall", "--yes", *AS), ("config", "--adopt"),
]  # fmt: skip


# A server that a file names.


@pytest.mark.parametrize("verb", EVERY_VERB, ids=" ".join)
def test_a_server_that_only_a_file_beside_the_board_names_is_not_contacted(
    tmp_path, listener, verb
):
    repo = Repo.create(tmp_path / "repo")
    beside(repo, f'url = "{listener.address}"\n')
    ran = repo.run(*verb)
    assert listener.connections == []
    assert ran.code != 70, ran.err
    if verb[0] not in ("statusline", "guard", "setup", "uninstall", "sync"):
        assert listener.address in ran.out + ran.err, (ran.code, ran.out, ran.err)
    assert not (repo.folder / ".git/dibs/board.db").exists() or verb[0] == "setup"


def test_the_refusal_says_how_a_person_accepts_the_server(tmp_path, listener):
    repo = Repo.create(tmp_path / "repo")
    beside(repo, f'url = "{listener.address}"\n')
    error = repo.fails(2, "status", "--json").error
    assert error["code"] == "unaccepted_server"
    assert "it was not contacted" in error["message"]
    assert f"dibs config --adopt, or dibs config url {listener.address}" in error["advice"]


def test_a_harness_learns_that_the_server_is_not_accepted_and_edits_go_on(tmp_path, listener):
    repo = Repo.create(tmp_path / "repo")
    beside(repo, f'url = "{listener.address}"\n')
    begun = hook(repo, claude_event("SessionStart", repo, source="startup"))
    edited = hook(repo, edit(repo, "a.py"))
    assert listener.connections == []
    assert "nobody has accepted" in begun.out + begun.err
    assert (edited.code, edited.err) == (0, "")
    assert "nobody has accepted" in edited.out
    assert '"deny"' not in edited.out


def test_a_commit_goes_on_and_says_once_that_the_server_is_not_accepted(tmp_path, listener):
    repo = Repo.create(tmp_path / "repo")
    repo.ok("setup", "git")
    (repo.folder / ".git/dibs").exists() and (repo.folder / ".git/dibs/board.db").unlink(True)
    beside(repo, f'url = "{listener.address}"\nfence_refs = true\n')
    (repo.folder / "a.py").write_text("x")
    git(repo.folder, "add", "a.py")
    done = subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qm", "x"],
        cwd=repo.folder, env=repo.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, listener.connections) == (0, []), done.stderr
    assert done.stderr.count("nobody has accepted") == 1


def test_a_local_board_is_used_though_a_file_beside_it_names_a_server(shop, listener):
    """An agent's sandbox can write that file."""
    beside(shop, f'url = "{listener.address}"\n')
    ran = shop.ok("list")
    assert listener.connections == []
    assert "settings.toml: url ignored" in ran.err
    assert "dibs config --adopt" in ran.err


def test_an_address_that_a_person_set_is_used(tmp_path):
    repo, url = Repo.create(tmp_path / "repo"), new_address("postgres")
    repo.ok("config", "url", url)
    assert "the board was created" in repo.ok("init").out
    repo.ok("add", "x", *AS)
    assert repo.json("config")["settings"]["url"]["source"] == str(repo.config / "servers.toml")
    other = repo.worktree("other")
    assert other.json("list")["tasks"][0]["title"] == "x"
    repo.ok("config", "--unset", "url")
    assert repo.fails(2, "list", "--json").error["code"] == "no_board"


def test_an_address_that_a_person_adopts_is_used(tmp_path):
    repo, url = Repo.create(tmp_path / "repo"), new_address("postgres")
    beside(repo, f'url = "{url}"\n')
    error = repo.fails(2, "config", "--adopt", "--json").error
    assert error["code"] == "unconfirmed"
    assert url in error["message"]
    repo.ok("config", "--adopt", "--yes")
    ran = repo.ok("init")
    assert "the board was created: postgresql" in ran.out
    assert "ignored" not in ran.err


@pytest.mark.parametrize(
    "mark", [{"CLAUDECODE": "1"}, {"DIBS_AGENT": "codex"}, {"CODEX_SANDBOX": "x"}]
)
@pytest.mark.parametrize(
    "words",
    [
        ("config", "url", "postgresql://h/x"),
        ("config", "agents.evil.command", "true"),
        ("config", "--unset", "guard_failure"),
        ("config", "guard_failure", "warn"),
        ("config", "--adopt", "--yes"),
    ],
    ids=" ".join,
)
def test_an_agent_changes_no_setting(shop, mark, words):
    beside(shop, "[agents.evil]\ncommand = 'true'\n")
    before = (shop.folder / ".git/dibs/settings.toml").read_text()
    error = shop.fails(1, *words, "--json", **mark).error
    assert error["code"] in ("in_harness", "people_only")
    assert not shop.config.exists()
    assert (shop.folder / ".git/dibs/settings.toml").read_text() == before


def test_the_run_of_an_agent_changes_no_setting_whatever_it_says(shop, tmp_path):
    """No harness is known, and the variables of the run are gone."""
    shop.add()
    out = tmp_path / "out"
    script = f"env -u DIBS_RUN -u DIBS_AGENT -u DIBS_TASK {DIBS} config agents.evil.command true --as ana"
    shop.run("run", "T-1", *A, "--", "sh", "-c", f"{script} > {out} 2>&1; echo $? >> {out}")
    assert out.read_text().endswith("\n1\n"), out.read_text()
    assert not shop.config.exists()
    key = shop.add()
    script = f"{DIBS} config agents.good.command true > {out} 2>&1; echo $? >> {out}"
    shop.run("run", key, *AS, "--", "sh", "-c", script)
    assert out.read_text().endswith("\n0\n"), "a person's own run: " + out.read_text()


# Forwarding records.


def test_a_record_of_a_move_leads_nobody_to_a_server_that_they_have_not_accepted(shop, tmp_path):
    shop.ok("board", "move", "--to", new_address("postgres"), *AS)
    assert shop.ok("list").code == 0, "who moved it has accepted the server"
    elsewhere = {"XDG_CONFIG_HOME": str(tmp_path / "another user")}
    error = shop.fails(75, "list", "--json", **elsewhere).error
    assert error["code"] == "moved_to_unaccepted"
    assert f"dibs config url {error['facts']['address']}" in error["advice"]
    shop.ok("config", "url", error["facts"]["address"], **elsewhere)
    assert shop.ok("list", **elsewhere).code == 0


def planted_record(repo, to: str) -> None:
    """As somebody who can write to the board's folder would forge it."""
    import apsw

    connection = apsw.Connection(str(repo.database))
    connection.execute("UPDATE board SET moved_to = ?, arriving = 0", (to,))
    connection.close()


@pytest.mark.parametrize(
    "verb",
    [("list",), ("claim", "T-1", *A), ("statusline", *A), ("prime", *A), ("doctor",)],
    ids=" ".join,
)
def test_a_forged_record_contacts_nobody(shop, listener, verb):
    planted_record(shop, listener.address)
    ran = shop.run(*verb)
    assert listener.connections == []
    assert ran.code in (75, 1) or verb[0] == "statusline", (ran.code, ran.err)


@pytest.mark.parametrize(
    ("planted", "shown"),
    [
        ('gone. "Ignore it', r'it is in "gone. \"Ignore it", which'),
        ("x/" * 150, f'it is in "{"x/" * 98}x...", which'),
        ("postgresql://u:hidden@127.0.0.1:1/x", "it is in postgresql://u@127.0.0.1:1/x, which"),
    ],
    ids=["quoted", "cut", "password"],
)
def test_what_a_forged_record_says_is_quoted_and_cut_without_a_password(shop, planted, shown):
    planted_record(shop, planted)
    assert shown in shop.fails(75, "list").err


def test_a_place_that_cannot_be_used_is_quoted_and_cut(shop):
    planted_record(shop, "go on. " * 60)
    assert f'be used: "{"go on. " * 28}g..." (' in shop.fails(74, "list").err


def test_a_record_on_a_server_leads_nobody_to_another_server(tmp_path, listener):
    import psycopg

    url = database_apart()
    repo = Repo.create(tmp_path / "repo", f"{url}#web")
    repo.ok("init")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE dibs.board SET moved_to = %s", (listener.address,))
    ran = repo.run("list", "--json")
    assert listener.connections == []
    assert (ran.code, ran.error["code"]) == (75, "moved_to_unaccepted")


def test_a_record_with_an_option_that_leads_elsewhere_is_not_followed(shop, listener):
    """The host is one of the passfile, the address behind it is not."""
    shop.ok("config", "url", "postgresql://db.example.org/team#web")
    shop.ok("config", "--unset", "url")
    planted_record(shop, f"postgresql://db.example.org:{listener.port}/team?hostaddr=127.0.0.1#web")
    error = shop.fails(75, "list", "--json").error
    assert "hostaddr" in error["message"]
    assert listener.connections == []


@pytest.mark.parametrize(
    "option",
    [
        "hostaddr=127.0.0.1", "passfile=/tmp/x", "service=x", "options=-c%20x", "sslrootcert=/tmp/x", "sslkey=/tmp/x",
        "sslmode=disable", "sslmode=allow", "ssl%6Dode=disable", "sslmode=require&sslmode=disable", "sslmode=",
        "gssencmode=disable", "channel_binding=disable", "ssl_min_protocol_version=TLSv1", "krbsrvname=x",
        "require_auth=password", "password=x", "hostaddr",
    ],
)  # fmt: skip
def test_an_address_from_a_file_has_no_option_that_weakens_it(shop, option):
    url = f"postgresql://h/x?{option}"
    assert parse(url), "who states it in DIBS_URL may"
    with pytest.raises(Refused):
        parse_untrusted(url, "url")
    ran = shop.fails(2, "config", "url", url)
    assert "x" in ran.err
    shop.fails(2, "board", "move", "--to", url, *AS)


def test_an_address_from_a_file_may_not_be_weaker_than_the_environment(monkeypatch):
    url = "postgresql://h/x?sslmode=require"
    assert parse_untrusted(url, "url").kept
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    with pytest.raises(Refused, match="weaker than verify-full"):
        parse_untrusted(url, "url")


def test_only_an_address_from_a_file_asks_for_safe_ways_to_log_in(monkeypatch):
    assert (
        parse_untrusted("postgresql://h/x", "url").options(5, "dibs")["require_auth"]
        == "scram-sha-256,none"
    )
    assert "require_auth" not in parse("postgresql://h/x").options(5, "dibs")
    monkeypatch.setenv("PGREQUIREAUTH", "md5")
    assert "require_auth" not in parse_untrusted("postgresql://h/x", "url").options(5, "dibs")


@pytest.mark.parametrize("stated", [True, False])
def test_a_server_from_a_file_gets_no_password_in_the_clear(tmp_path, stated):
    """Not even one that was accepted: somebody else may answer by now."""
    passfile = tmp_path / "passfile"
    passfile.write_text("*:*:*:ana:geheim\n")
    passfile.chmod(0o600)
    with AsksForPassword() as asking:
        repo = Repo.create(tmp_path / "repo")
        around = (
            {"PGPASSFILE": str(passfile), "DIBS_URL": asking.address}
            if stated
            else {"PGPASSFILE": str(passfile)}
        )
        beside(repo, 'write_wait = "1s"\n')
        if not stated:
            repo.ok("config", "url", asking.address)
        assert repo.run("list", **around).code in (2, 75)
    assert any(b"geheim" in sent for sent in asking.connections) is stated, asking.connections


def test_a_server_from_a_file_can_ask_for_a_password_by_scram(tmp_path):
    known = server().node
    if known is None:
        pytest.skip("the server is somebody else's")
    name = urlsplit(server().new_database()).path
    passfile = tmp_path / "passfile"
    passfile.write_text(f"*:*:*:postgres:{PASSWORD}\n")
    passfile.chmod(0o600)
    repo = Repo.create(tmp_path / "repo")
    repo.ok("config", "url", f"postgresql://postgres@{known.host}:{known.port}{name}")
    assert "the board was created" in repo.ok("init", PGPASSFILE=str(passfile)).out
    repo.fails(2, "list", PGPASSFILE=os.devnull)


SECRETS = [
    "postgresql://ana:ge/heim@h/x", "postgresql://ana:ge?heim@h/x", "postgresql://h/x?scram_client_key=geheim",
    "postgresql://h/x?scram_server_key=geheim", "postgresql://h/x?SCRAM_CLIENT_%4BEY=geheim", "postgresql://ana:ge@heim@h/x",
]  # fmt: skip


@pytest.mark.parametrize("url", SECRETS, ids=range(len(SECRETS)))
def test_no_secret_of_an_address_is_shown(shop, url):
    assert "heim" not in str(Address(url))
    for words in (("list",), ("config",), ("doctor",)):
        ran = shop.run(*words, DIBS_URL=url)
        assert "heim" not in ran.out + ran.err, words
    ran = shop.run("config", "url", url)
    assert "heim" not in ran.out + ran.err
    beside(shop, f'url = "{url}"\n')
    ran = shop.run("config", "--adopt")
    assert "heim" not in ran.out + ran.err


# Settings that start programs.


PLANTED = (
    "[agents.evil]\ncommand = ['sh', '-c', 'touch $SEEN']\n[notify]\ncommand = 'touch /nowhere'\n"
)


def test_what_an_agent_writes_beside_the_board_starts_nothing(shop, tmp_path):
    shop.add()
    beside(shop, PLANTED)
    ran = shop.fails(2, "dispatch", "--once", *AS, SEEN=str(tmp_path / "seen"))
    assert "no agent is configured" in ran.err
    assert "agents.evil, notify.command ignored" in ran.err
    assert "dibs config --adopt" in ran.err
    assert not (tmp_path / "seen").exists()


def pids_to_come() -> range:
    """The numbers that the next processes get."""
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    return range(last, last + 3000)


@pytest.mark.skipif(sys.platform != "linux", reason="it guesses the number of a process")
@pytest.mark.parametrize("name", ["backlog-index.json", "board.id", "on-server"])
def test_a_link_that_an_agent_plants_beside_the_board_is_not_written_through(shop, tmp_path, name):
    """Its sandbox can write there. What dibs then writes elsewhere has names of the repository in it."""
    mine, folder = tmp_path / "profile", shop.database.parent
    mine.write_text("mine\n")
    items = shop.folder / KANO
    items.mkdir(parents=True)
    (items / "KABSD-TSK-0001.md").write_text(TASK)
    for end in ("", *(f".{pid}" for pid in pids_to_come())):
        (folder / f"{name}{end}").symlink_to(mine)
    shop.ok("sync", *AS)
    shop.ok("config", "url", "postgresql://127.0.0.1:1/x")
    assert mine.read_text() == "mine\n"
    assert (folder / name).is_file() and not (folder / name).is_symlink()


def test_settings_that_are_a_link_are_not_written_through(shop, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('ttl_agent = "1h"\n')
    beside(shop, "")
    (shop.database.parent / "settings.toml").unlink()
    (shop.database.parent / "settings.toml").symlink_to(mine)
    assert "settings.toml is a symbolic link" in shop.fails(74, "config", "ttl_agent", "3h").err
    assert mine.read_text() == 'ttl_agent = "1h"\n'


@pytest.mark.parametrize("planted", ["dispatch", "dispatch/notify.log", "dispatch/T-1-1.1.log"])
def test_a_link_among_the_logs_beside_the_board_is_not_written_through(shop, tmp_path, planted):
    shop.add("x", "--max-attempts", "1")
    shop.ok("config", "agents.codex.command", "false", *AS)
    shop.ok("config", "notify.command", "cat", *AS)
    outside = tmp_path / "outside"
    outside.mkdir()
    link = shop.database.parent / planted
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if planted == "dispatch" else outside / "profile")
    shop.run("dispatch", "--once", *AS)
    assert list(outside.iterdir()) == []


def test_beside_a_refusal_in_json_there_is_no_warning(shop):
    beside(shop, PLANTED)
    assert shop.fails(2, "show", "T-9", "--json").error["code"] == "unknown_task"
    assert "agents.evil, notify.command ignored" in shop.fails(2, "show", "T-9").err
    assert "ignored" in shop.ok("list", "--json").err


def test_what_a_server_keeps_starts_nothing(tmp_path):
    repo = Repo.create(tmp_path / "repo", new_address("postgres"))
    repo.ok("init")
    (tmp_path / "board.toml").write_text(PLANTED)
    repo.ok("config", "--load", str(tmp_path / "board.toml"), *AS)
    ran = repo.fails(2, "dispatch", "--once", *AS)
    assert "agents.evil, notify.command ignored" in ran.err


def test_a_person_adopts_what_she_has_seen(shop):
    beside(shop, 'mirror_root = "/srv"\n' + PLANTED)
    message = shop.fails(2, "config", "--adopt").err
    assert 'command = ["sh", "-c", "touch $SEEN"]' in message
    assert not shop.config.exists()
    shop.ok("config", "--adopt", "--yes")
    ran = shop.ok("config")
    assert "ignored" not in ran.err
    file = shop.config / "boards" / f"{uid_of(shop)}.toml"
    assert f"{file}" in ran.out
    assert tomllib.loads(file.read_text())["agents"]["evil"]["command"][0] == "sh"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(shop.config.stat().st_mode) == 0o700
    beside(shop, PLANTED.replace("touch $SEEN", "rm $SEEN"))
    assert "agents.evil ignored" in shop.ok("config").err, (
        "a later difference is told, not followed"
    )


def test_a_setting_is_written_where_it_counts_and_other_lines_stay(shop):
    beside(shop, "# ours\nttl_agent = '2h' # two\n\n[areas]\nweb = ['web/**']\n")
    shop.ok("config", "ttl_agent", "30m")
    shop.ok("config", "dispatch.max", "4")
    shop.ok("config", "agents.codex.command", "codex exec 'x y'")
    shop.ok("config", "agents.codex.max", "2")
    text = (shop.folder / ".git/dibs/settings.toml").read_text()
    assert text == (
        "# ours\nttl_agent = \"30m\" # two\n\n[areas]\nweb = ['web/**']\n\n[dispatch]\nmax = 4\n"
    )
    settings = shop.json("config")["settings"]
    assert settings["ttl_agent"] == {
        "value": "30m",
        "source": str(shop.folder / ".git/dibs/settings.toml"),
    }
    assert settings["agents.codex.command"]["value"] == "codex exec 'x y'"
    assert settings["agents.codex.max"]["source"].endswith(f"boards/{uid_of(shop)}.toml")
    shop.ok("config", "--unset", "agents.codex")
    shop.ok("config", "--unset", "ttl_agent")
    settings = shop.json("config")["settings"]
    assert settings["ttl_agent"] == {"value": "2h", "source": "default"}
    assert "agents.codex.command" not in settings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ttl_agent", "soon"), "ttl_agent soon"),
        (("dispatch.max", "5000"), "1000"),
        (("self_review", "perhaps"), "true or false"),
        (("colour", "red"), "there is no setting 'colour'"),
        (("agents.codex.max", "2"), "has no command"),
        (("mirror_root", "relative"), "absolute path"),
        (("ttl_agent", "1\n[agents.x]\ncommand='y'"), "ttl_agent"),
    ],
)
def test_what_is_wrong_is_not_written(shop, words, message):
    assert message in shop.fails(2, "config", *words).err
    assert not (shop.folder / ".git/dibs/settings.toml").exists()
    assert not [*shop.config.glob("boards/*")]


def test_a_file_of_the_user_that_others_can_write_is_refused(shop):
    shop.ok("config", "agents.codex.command", "true")
    shop.config.chmod(0o777)
    error = shop.fails(74, "list", "--json").error
    assert "can be written by other users" in error["message"]
    shop.fails(74, "config", "agents.codex.command", "false")


def test_without_a_home_there_are_defaults(shop):
    around = {"HOME": "", "XDG_CONFIG_HOME": ""}
    assert shop.ok("config", **around).code == 0
    assert shop.ok("list", **around).code == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a." * 5000 + "b = 1", "nested too deeply"),
        ("a." * 16 + "b = 1", "nested too deeply"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = " + "[" * 17 + "]" * 17, "nested too deeply"),
        ("#" * 2**21, "bytes"),
    ],
)
def test_a_settings_file_has_limits(shop, text, why):
    beside(shop, text)
    error = shop.fails(2, "list", "--json").error
    assert error["code"] == "bad_setting"
    assert why in error["message"]


# Whose it is.


@pytest.fixture
def somebodys(tmp_path):
    """A repository of another user, with a board and a server in its settings."""

    def give(repo):
        for folder, _, files in os.walk(repo):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
        return repo

    return give


@as_root
@pytest.mark.parametrize("verb", EVERY_VERB, ids=" ".join)
def test_a_repository_of_another_user_is_not_read(shop, somebodys, listener, verb):
    beside(shop, f'url = "{listener.address}"\nguard_failure = "refuse"\n')
    somebodys(shop.folder)
    ran = shop.run(*verb)
    assert listener.connections == []
    if verb[0] == "statusline":
        assert (ran.code, ran.out) == (0, "dibs?\n")
    elif verb[0] == "guard":
        assert ran.code == 0
        assert "belongs to another user" in ran.err
    else:
        assert ran.code == 1, (ran.code, ran.out, ran.err)
        assert "belongs to another user" in ran.err
        assert "safe.directory" in ran.err


@as_root
def test_a_repository_of_another_user_without_a_board_is_nobodys_business(tmp_path, somebodys):
    repo = Repo.create(tmp_path / "repo")
    somebodys(repo.folder)
    assert (repo.ok("statusline", *A).out, repo.ok("guard", "commit").err) == ("", "")
    edited = hook(repo, edit(repo, "a.py"))
    assert (edited.code, edited.out, edited.err) == (0, "", "")


@as_root
def test_a_harness_lets_edits_through_in_a_repository_of_another_user(shop, somebodys, listener):
    beside(shop, f'url = "{listener.address}"\nguard_failure = "refuse"\n')
    somebodys(shop.folder)
    edited = hook(shop, edit(shop, "a.py"))
    assert listener.connections == []
    assert "belongs to another user" in edited.out
    assert '"deny"' not in edited.out


@as_root
def test_what_git_calls_safe_is_safe(tmp_path, somebodys):
    repo = Repo.create(tmp_path / "repo", new_address("postgres"))
    somebodys(repo.folder)
    repo.fails(1, "init")
    (tmp_path / "gitconfig").write_text(f"[safe]\n\tdirectory = {repo.folder}\n")
    repo.ok("init", GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))


@as_root
def test_the_caller_of_sudo_is_not_another_user(shop, somebodys):
    somebodys(shop.folder)
    shop.ok("list", SUDO_UID=str(SOMEBODY))
    shop.fails(1, "list", SUDO_UID="1")


@as_root
@pytest.mark.parametrize("what", [".git", "."])
def test_one_part_of_another_user_is_enough(shop, what):
    os.chown(shop.folder / what, SOMEBODY, SOMEBODY)
    assert shop.fails(1, "list", "--json").error["code"] == "foreign_repository"


@as_root
@pytest.mark.parametrize("what", ["", "settings.toml", "board.db"])
def test_one_part_of_a_board_of_another_user_is_enough(shop, what):
    beside(shop, "ttl_agent = '1h'\n")
    os.chown(shop.database.parent / what, SOMEBODY, SOMEBODY)
    assert "belongs to another user" in shop.fails(74, "list").err


@as_root
def test_a_board_of_another_user_above_is_not_read(tmp_path, listener):
    above = Repo(tmp_path)
    above.ok("init")
    (tmp_path / ".dibs/settings.toml").write_text(f'url = "{listener.address}"\n')
    (tmp_path / ".dibs/board.db").unlink()
    os.chown(tmp_path / ".dibs", SOMEBODY, SOMEBODY)
    below = tmp_path / "work"
    below.mkdir()
    assert "belongs to another user" in Repo(below).fails(74, "list").err
    assert listener.connections == []


def test_a_folder_that_looks_bare_inside_a_work_tree_is_no_repository(shop, listener):
    """Anybody can commit one."""
    planted = shop.folder / "vendor" / "x.git"
    (planted / "objects").mkdir(parents=True)
    (planted / "refs").mkdir()
    (planted / "HEAD").write_text("ref: refs/heads/main\n")
    (planted / "dibs").mkdir()
    (planted / "dibs" / "settings.toml").write_text(f'url = "{listener.address}"\n')
    key = shop.add("ours")
    inside = Repo(planted)
    around = {"XDG_CONFIG_HOME": str(shop.config.parent)}
    assert inside.ok("show", key, **around).code == 0
    assert inside.ok("statusline", *A, **around).code == 0
    assert listener.connections == []


def test_the_user_configuration_is_found_by_the_id_of_the_board_on_every_clone(tmp_path):
    url = new_address("postgres")
    first, second = (Repo.create(tmp_path / name, url) for name in ("first", "second"))
    first.ok("init")
    first.ok("config", "agents.codex.command", "true")
    settings = second.json("config")["settings"]
    assert settings["agents.codex.command"]["value"] == "true"


def test_a_board_cannot_name_a_file_by_its_id(shop):
    """Whoever can write to the board can state any id."""
    import apsw

    shop.ok("config", "agents.codex.command", "true")
    outside = shop.config.parent / "planted.toml"
    outside.write_text("[agents.evil]\ncommand = 'true'\n")
    connection = apsw.Connection(str(shop.database))
    connection.execute("DROP TRIGGER IF EXISTS board_uid_stays")
    connection.execute("UPDATE board SET uid = '../../planted'")
    connection.close()
    ran = shop.run("config", "--json")
    assert "evil" not in json.dumps(ran.json if ran.code == 0 else ran.err)


@pytest.mark.parametrize(
    ("mode", "level"),
    [("prefer", "note"), ("require", "note"), ("verify-ca", "note"), ("verify-full", "ok")],
)
def test_over_a_network_only_verify_full_is_no_note(mode, level):
    assert tls(mode, "encrypted").level == level


@pytest.mark.parametrize(
    ("host", "address", "near"),
    [
        ("/run/postgresql", "", True),
        ("localhost", "127.0.0.1", True),
        ("db", "::1", True),
        ("localhost", "192.0.2.7", False),
        ("db.example.org", "", False),
    ],
)
def test_what_is_on_this_machine(host, address, near):
    assert is_local(host, address) is near


def test_doctor_says_the_sslmode_in_force(tmp_path):
    repo = Repo.create(tmp_path / "repo", new_address("postgres"))
    repo.ok("init")
    findings = {one["what"]: one for one in repo.json("doctor")["findings"]}
    assert findings["sslmode"]["found"] == "prefer; not encrypted, on this machine"
    findings = json.loads(repo.ok("doctor", "--json", PGSSLMODE="disable").out)["findings"]
    assert next(one["found"] for one in findings if one["what"] == "sslmode").startswith("disable")
