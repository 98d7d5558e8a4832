"""`sync`, `import` and `export` from the command line: what they say, how they end, what they leave."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import pytest

from dibs.cli.files import POLL_SECONDS
from kit.corpus import TASK
from kit.graphs import node
from kit.repositories import DIBS, Repo, git
from kit.running import as_in_a_terminal, until

GRAPH = ".wg/graph.jsonl"
ITEMS = "_kano/backlog/products/demo/items/task/0000"
ANA = ("--as", "ana")
CODEX = ("--agent", "codex", "--session", "s1")
LONG = 60


def put(repo: Repo, path: str, text: str) -> None:
    where = repo.folder / path
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)


def graph(repo: Repo, *lines: str) -> None:
    put(repo, GRAPH, "".join(f"{line}\n" for line in lines))


def text(repo: Repo) -> str:
    return (repo.folder / GRAPH).read_text()


def fields(repo: Repo, id_: str) -> dict:
    found = [json.loads(line) for line in text(repo).splitlines() if line.startswith("{")]
    return next(one for one in found if one["id"] == id_)


def kano(repo: Repo, number: int, title: str) -> None:
    id_ = f"KABSD-TSK-{number:04}"
    item = TASK.replace("KABSD-TSK-0141", id_).replace("85f4752b9a45", f"85f4752b{number:04}")
    [old] = [line for line in item.splitlines() if line.startswith("title:")]
    put(repo, f"{ITEMS}/{id_}_some-work.md", item.replace(old, f"title: {title}"))


def titles(repo: Repo) -> list[str]:
    tasks = repo.json("list", "--all", "--limit", "1000")["tasks"]
    return sorted(task["title"] for task in tasks)


@pytest.fixture
def shop(tmp_path) -> Repo:
    """A repository without a board yet: it will be a file."""
    return Repo.create(tmp_path / "shop")


# What a sync says.


def test_a_sync_says_what_it_did_in_one_line_and_in_one_object(repo):
    graph(repo, node("a"), node("b", after=["a"]))
    assert (
        repo.ok("sync", *ANA).out == "2 items in 1 file: 2 imported, 0 changed, 0 files written\n"
    )
    graph(repo, node("a", title="other"), node("b", after=["a"]))
    reply = repo.json("sync", *ANA)
    assert (reply["schema"], list(reply)) == (1, ["schema", "sync"])
    assert reply["sync"] == {
        "files": 1, "items": 2, "read": 1, "added": 0, "changed": 1, "written": 0,
        "unwritten": 0, "brought_back": 0, "adopted": [], "healed": [], "problems": [], "proposals": [], "checked": False,
    }  # fmt: skip


def test_a_sync_names_the_claims_that_it_adopts_and_heals(repo):
    """Nobody's work by file changes without a word; a check says what would change."""
    repo.ok("actor", "set", "erik", "--kind", "human", *ANA)
    graph(
        repo,
        node("a", status="in-progress", assigned="erik"),
        node("b", status="in-progress", assigned="agent-9"),
    )
    told = repo.ok("sync", "--check", *ANA).out.splitlines()
    assert "1 claim would be adopted: a (erik)" in told
    assert "1 stale claim would be healed: b (agent-9)" in told
    told = repo.ok("sync", *ANA).out.splitlines()
    assert "1 claim adopted: a (erik)" in told
    assert "1 stale claim healed: b (agent-9)" in told
    told = repo.ok("sync", *ANA).out
    assert "adopted" not in told
    assert "healed" not in told


def test_a_problem_in_json_names_its_file_its_line_and_the_choice(repo):
    graph(repo, node("a"), "{broken")
    [problem] = repo.json("sync", *ANA)["sync"]["problems"]
    assert (problem["path"], problem["line"], problem["warns"]) == (GRAPH, 2, False)
    assert problem["choice"] == "the line is left alone"


def test_a_repository_without_a_backlog_is_reported(repo):
    assert repo.fails(2, "sync", *ANA, "--json").error["code"] == "no_backlog"


def test_a_check_says_what_would_be_and_changes_nothing(repo):
    """Neither the board, nor a file, nor what is remembered of the files."""
    graph(repo, node("a"))
    repo.ok("sync", *ANA)
    graph(repo, node("a", title="other", assigned="agent-9"), node("b"))
    before, events = text(repo), repo.json("log")["events"]
    beside = sorted(path.name for path in (repo.folder / ".git/dibs").iterdir())
    reply = repo.json("sync", "--check", *ANA)["sync"]
    assert (reply["added"], reply["changed"], reply["written"], reply["checked"]) == (1, 1, 1, True)
    assert reply["healed"] == ["a (agent-9)"]
    output = repo.ok("sync", "--check", *ANA).out
    assert "1 would be imported, 1 would be changed, 1 file would be written" in output
    assert (text(repo), repo.json("log")["events"]) == (before, events)
    assert sorted(path.name for path in (repo.folder / ".git/dibs").iterdir()) == beside
    done = repo.json("sync", *ANA)["sync"]
    assert (done["added"], done["changed"], done["written"]) == (1, 1, 1)


def test_a_check_without_a_board_says_what_would_be_and_makes_nothing(shop):
    graph(shop, node("a"))
    assert "1 would be imported" in shop.ok("sync", "--check").out
    assert not (shop.folder / ".git/dibs").exists()


def test_what_a_sync_makes_beside_the_board_is_its_owners_alone(repo, shop):
    """Also for a board on a server, which has nothing else there."""
    for place, words in ((repo, ("claim", "a", *CODEX)), (shop, ("sync", *ANA))):
        graph(place, node("a"))
        place.ok(*words)
        assert (place.folder / ".git/dibs").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("verb", ["sync", "doctor"])
def test_a_claim_leaves_board_and_files_in_step_and_an_edit_does_not(repo, verb):
    def in_step() -> bool:
        if verb == "doctor":
            return "in step with the board" in repo.run("doctor").out
        return " 0 would be changed, 0 files would be" in repo.ok("sync", "--check", *ANA).out

    graph(repo, node("a"))
    repo.ok("sync", *ANA)
    repo.ok("claim", "a", *CODEX)
    assert in_step()
    put(repo, GRAPH, text(repo).replace("Task a", "Other"))
    assert not in_step()
    repo.ok("sync", *ANA)
    assert in_step()


def test_twenty_problems_are_shown_and_a_report_has_them_all(repo, tmp_path):
    graph(repo, *(f"{{broken {n}" for n in range(30)), node("42"))
    lines = repo.ok("sync", *ANA).out.splitlines()
    assert lines[-1] == "  and 11 more: dibs sync --report FILE lists them all"
    report = tmp_path / "report.txt"
    assert repo.json("sync", *ANA)["sync"]["read"] == 1, (
        "problems are reported until they are solved"
    )
    repo.ok("sync", "--report", str(report), *ANA)
    listed = report.read_text().splitlines()
    assert [line.split(": ")[0] for line in listed] == [f"{GRAPH}:{n}" for n in range(1, 31)]


def test_an_id_that_cannot_be_a_key_is_reported_with_the_key_that_it_got(repo):
    graph(repo, node(".assign-x"), node("42"), node("no spaces please"), node("a" * 200))
    reply = repo.json("sync", *ANA)["sync"]
    assert reply["added"] == 4
    problems = [one["what"] + "; " + one["choice"] for one in reply["problems"]]
    assert "its id '42' cannot be a key; its task is I-42" in problems
    assert len([line for line in problems if "cannot be a key" in line]) == 4
    assert len(titles(repo)) == 4


def test_a_report_that_cannot_be_written_is_reported_and_the_sync_is_done(repo, tmp_path):
    graph(repo, node("a"))
    where = str(tmp_path / "no folder" / "report.txt")
    problem = repo.fails(73, "sync", "--report", where, *ANA, "--json").error
    assert (problem["code"], where in problem["message"]) == ("output_lost", True)
    assert titles(repo) == ["Task a"]


def test_strict_stops_at_a_line_that_cannot_be_read_and_takes_nothing_in(repo):
    graph(repo, node("a"), "{broken", node("b"))
    problem = repo.fails(2, "sync", "--strict", *ANA, "--json").error
    assert f"{GRAPH}:2" in problem["message"]
    assert titles(repo) == []
    assert repo.json("sync", *ANA)["sync"]["added"] == 2


# Watching.


class Watch:
    """`dibs sync --watch`; what it says goes to a file."""

    def __init__(self, repo: Repo, *options: str) -> None:
        self.file = repo.folder.parent / "watched"
        with self.file.open("wb") as output:
            self.process = subprocess.Popen(
                [DIBS, "sync", "--watch", *ANA, *options], cwd=repo.folder, stdout=output,
                env=repo.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                preexec_fn=as_in_a_terminal,  # noqa: PLW1509
            )  # fmt: skip

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def prints(self, words: str) -> None:
        until(lambda: words in self.file.read_text(), f"it does not say {words}")

    def ends(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, output = self.process.communicate(timeout=LONG)
        return self.process.returncode, output.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watch_takes_in_what_changes_and_ends_with_a_signal_without_a_traceback(repo, number):
    graph(repo, node("a"))
    with Watch(repo) as watch:
        watch.prints("1 item in 1 file: 1 imported")
        graph(repo, node("a"), node("b"))
        watch.prints("2 items in 1 file: 1 imported")
        until(lambda: titles(repo) == ["Task a", "Task b"])
        time.sleep(3 * POLL_SECONDS)  # it looks twice at least, and has nothing to tell
        assert len(watch.file.read_text().splitlines()) == 2
        code, output = watch.ends(number)
    assert "Traceback" not in output
    assert code in (0, 128 + number, -number), output


def test_a_watch_writes_what_somebody_without_the_file_changed(repo):
    """As when the file was read-only, or the main work tree not mounted."""
    graph(repo, node("a"))
    with Watch(repo) as watch:
        watch.prints("1 imported")
        hidden = (repo.folder / ".wg").rename(repo.folder / ".elsewhere")
        repo.ok("claim", "a", *CODEX)
        hidden.rename(repo.folder / ".wg")
        watch.prints("1 file written")
    assert fields(repo, "a")["assigned"] == "codex"


def test_a_watch_whose_reader_has_gone_ends(repo):
    graph(repo, node("a"))
    process = repo.start("sync", "--watch", *ANA)
    try:
        assert "1 imported" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(LONG) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


# A board that was lost.


def held(shop: Repo) -> str:
    """A task that is held, another that was; the id of the board."""
    graph(shop, node("a"), node("b"), node("c"))
    shop.ok("sync", *ANA)
    shop.ok("claim", "a", *CODEX)
    shop.ok("claim", "b", *CODEX)
    shop.ok("release", "b", *CODEX)
    return fields(shop, "a")["dibs"].split()[0]


def test_a_lost_database_is_not_replaced_by_an_empty_one_and_a_sync_brings_leases_back(shop):
    uid = held(shop)
    for file in shop.database.parent.glob("board.db*"):
        file.unlink()
    assert shop.fails(1, "init", "--json").error["code"] == "board_lost"
    assert not shop.database.exists()
    assert shop.json("sync", *ANA)["sync"]["brought_back"] == 1
    board, token, *holder = fields(shop, "a")["dibs"].split()
    assert (board, holder) == (uid, ["codex", "s1", "2h"])
    assert int(token.split(".")[0]) > 1, "no token is given twice"
    assert shop.fails(4, "claim", "a", "--agent", "other", "--session", "o1").out == ""
    assert shop.fails(5, "renew", "a", "--token", "1.1", *CODEX).out == ""
    assert shop.json("claim", "b", *CODEX)["lease"]["token"].split(".")[0] == token.split(".")[0]
    shop.ok("complete", "a", *CODEX)
    assert shop.json("log", "--verify")["ok"]
    shop.ok("init")


def test_a_board_whose_whole_folder_is_gone_is_built_anew_by_its_id(shop):
    from shutil import rmtree

    uid = held(shop)
    rmtree(shop.database.parent)
    reply = shop.json("sync", "--board", uid, *ANA)
    assert (reply["sync"]["added"], reply["sync"]["brought_back"]) == (3, 1)
    assert shop.json("show", "a")["task"]["session"] == "s1"
    again = shop.fails(2, "sync", "--board", uid, *ANA)
    assert "there is one here" in again.err


@pytest.mark.parametrize("words", [("sync", *ANA), ("init",)])
def test_a_board_that_files_name_with_live_leases_is_not_replaced_without_a_message(shop, words):
    """Who had an item would lose it, and nobody would know."""
    from shutil import rmtree

    uid = held(shop)
    rmtree(shop.database.parent)
    ran = shop.fails(1, *words)
    assert uid in ran.err
    assert f"dibs sync --board {uid}" in ran.err
    assert not shop.database.exists()
    assert shop.json("sync", "--board", uid, *ANA)["sync"]["brought_back"] == 1


@pytest.mark.parametrize("words", [("--check",), ("--report", "x")])
def test_a_watch_goes_on_by_itself(shop, words):
    graph(shop, node("a"))
    shop.fails(2, "sync", "--watch", *words, *ANA)
    assert not shop.database.exists()


def test_an_export_may_go_to_standard_output(shop):
    graph(shop, node("a"))
    shop.ok("sync", *ANA)
    first = shop.ok("export", "-").out.splitlines()[0]
    assert '"format"' in first
    assert not (shop.folder / "-").exists()


def test_an_export_of_another_tool_is_distinguished(shop):
    put(shop, "beads.jsonl", '{"id": "bd-1", "title": "x", "status": "open"}\n')
    assert "use --format beads" in shop.fails(2, "import", "beads.jsonl", *ANA).err


def test_in_another_clone_a_board_of_its_own_follows_no_lease_of_the_first(shop):
    from shutil import rmtree

    uid = held(shop)
    rmtree(shop.database.parent)
    shop.ok("init", "--new")
    reply = shop.json("sync", *ANA)["sync"]
    assert reply["brought_back"] == 0
    assert any(f"it names another board, {uid}" in one["what"] for one in reply["problems"])
    assert shop.json("show", "a")["task"]["holder"] is None


def test_a_claim_of_what_another_clone_holds_says_so(shop):
    """The file came with a commit: it names a live lease of a board that is not here."""
    from shutil import rmtree

    uid = held(shop)
    rmtree(shop.database.parent)
    shop.ok("init", "--new")
    ran = shop.ok("claim", "a", "--agent", "claude", "--session", "s9")
    assert f"it names another board, {uid}, where codex holds it until" in ran.err
    assert "healed" not in ran.err
    assert shop.json("show", "a")["task"]["holder"]["name"] == "claude"


def test_a_lease_that_neither_board_nor_file_knows_any_more_is_asked_about(shop):
    """`wg` has dropped the pointer from the line, and the database is gone."""
    held(shop)
    put(shop, GRAPH, re.sub(r', ?"(dibs|lease_expires_at)": ?"[^"]*"', "", text(shop)))
    for file in shop.database.parent.glob("board.db*"):
        file.unlink()
    reply = shop.json("sync", *ANA)["sync"]
    assert (reply["brought_back"], reply["adopted"], reply["healed"]) == (0, [], [])
    assert "is codex at work on it?" in reply["problems"][0]["what"]
    token = shop.json("claim", "a", *CODEX)["lease"]["token"]
    assert int(token.split(".")[0]) > 1, "nor is its token given again"


@pytest.mark.parametrize("id_", ["", "x", "0198c2a4-7000-7000-8000-00000000000", "../../etc"])
def test_an_id_that_is_no_boards_is_refused_and_makes_nothing(shop, id_):
    graph(shop, node("a"))
    shop.fails(2, "sync", "--board", id_, *ANA)
    assert not shop.database.exists()


def test_a_token_that_only_the_file_knows_is_never_given_again(repo):
    """As after a copy of the disk was put back: the file is newer than the board."""
    graph(repo, node("a"))
    repo.ok("sync", *ANA)
    repo.ok("claim", "a", *CODEX)
    repo.ok("release", "a", *CODEX)
    put(repo, GRAPH, text(repo).replace(" 1.1", " 1.7"))
    repo.ok("sync", *ANA)
    token = repo.json("claim", "a", *CODEX)["lease"]["token"]
    assert int(token.split(".")[0]) > 1


# A bar.


def on_a_terminal(repo: Repo, *words: str) -> str:
    """What a command writes to a terminal beside its answer."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [DIBS, *words], cwd=repo.folder, env=repo.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    output = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # its last writer is gone
            break
        if not more:
            break
        output += more
    os.close(ours)
    assert process.wait(LONG) == 0
    return output.decode()


def beads(count: int) -> str:
    issues = [{"id": f"bd-{n}", "title": f"Issue {n}", "status": "open"} for n in range(count)]
    return "".join(f"{json.dumps(issue)}\n" for issue in issues)


def test_a_bar_grows_on_a_terminal_where_there_are_many_items_and_nowhere_else(repo, tmp_path):
    graph(repo, *(node(f"t{n}") for n in range(150)))
    assert on_a_terminal(repo, "sync", *ANA) == ""
    graph(repo, *(node(f"u{n}") for n in range(250)))
    assert "250 of 250 items" in on_a_terminal(repo, "sync", *ANA)
    graph(repo, *(node(f"v{n}") for n in range(250)))
    assert repo.ok("sync", *ANA).err == ""
    file = tmp_path / "beads.jsonl"
    file.write_text(beads(250))
    shown = on_a_terminal(repo, "import", str(file), "--format", "beads", *ANA)
    assert "200 of 250 items" in shown
    assert shown.endswith("\r\x1b[K"), "it is gone when it is done"


# Import.


GITHUB = json.dumps(
    [{"number": 7, "title": "Crash", "state": "OPEN", "url": "https://x/o/r/issues/7"}]
)
TASKWARRIOR = json.dumps(
    [{"uuid": "8d8d7ba0-1c41-4f6c-9b5b-5d8b7a0c1f11", "description": "Order", "status": "pending"}]
)


def fed(repo: Repo, data: str, *words: str):
    return subprocess.run(
        [DIBS, "import", "-", *ANA, *words], cwd=repo.folder, env=repo.environment(),
        input=data, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data"), [("beads", beads(1)), ("github", GITHUB), ("taskwarrior", TASKWARRIOR)]
)
def test_every_format_is_read_from_standard_input_and_a_second_time_changes_nothing(
    repo, name, data
):
    check = fed(repo, data, "--format", name, "--check")
    assert check.stdout == "1 item: 1 would be imported, 0 already known\n"
    assert titles(repo) == []
    first = fed(repo, data, "--format", name)
    assert (first.returncode, first.stdout) == (0, "1 item: 1 imported, 0 already known\n")
    events = repo.json("log")["events"]
    again = json.loads(fed(repo, data, "--format", name, "--json").stdout)
    assert again == {
        "schema": 1,
        "imported": {"items": 1, "added": 0, "known": 1, "problems": [], "checked": False},
    }
    assert repo.json("log")["events"] == events


def test_two_hundred_and_fifty_items_are_so_many_tasks_after_two_imports_too(repo):
    for added, known in ((250, 0), (0, 250)):
        done = json.loads(fed(repo, beads(250), "--format", "beads", "--json").stdout)
        assert (done["imported"]["added"], done["imported"]["known"]) == (added, known)
    assert titles(repo) == sorted(f"Issue {n}" for n in range(250))


def test_a_difference_is_reported_and_the_task_stays_as_it_is(repo):
    fed(repo, beads(1), "--format", "beads")
    done = fed(repo, beads(1).replace("Issue 0", "Other"), "--format", "beads")
    assert "bd-0 is there already, with another title; the task stays as it is" in done.stdout
    assert titles(repo) == ["Issue 0"]


@pytest.mark.parametrize(
    ("words", "data", "why"),
    [
        (("--format", "jira"), "", "it is one of dibs, beads, github, taskwarrior"),
        (("--format", "github"), "{", "it is not JSON"),
        (("--format", "beads"), GITHUB, "cannot be read as beads"),
        (("--format", "taskwarrior"), "\0\0", "cannot be read as taskwarrior"),
        (("--format", "beads", "--reason", "x"), beads(1), "--reason requires --format dibs"),
        (("--check",), "", "--check does not combine with --format dibs"),
    ],
)
def test_what_cannot_be_imported_is_a_usage_error_and_leaves_nothing(repo, words, data, why):
    done = fed(repo, data, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert titles(repo) == []


def test_a_file_that_is_not_there_is_a_usage_error(repo):
    for words in (("--format", "beads"), ()):
        repo.fails(2, "import", "nowhere.jsonl", *words, *ANA)


# Export.


def test_an_export_is_a_board_again_in_a_place_that_has_none(repo, shop, tmp_path):
    key = repo.add("Fix login")
    repo.ok("claim", key, *CODEX)
    file = tmp_path / "all.jsonl"
    reply = repo.json("export", str(file))
    assert (reply["schema"], reply["file"], reply["tasks"]) == (1, str(file), 1)
    assert file.stat().st_mode & 0o777 == 0o600
    assert repo.fails(2, "export", str(file)).out == ""
    assert repo.fails(2, "export", str(tmp_path / "none" / "x")).out == ""
    assert repo.fails(1, "import", str(file), *ANA, "--json").error["code"] == "board_exists"
    assert "every lease has ended" in shop.ok("import", str(file), *ANA).out
    task = shop.json("show", key)["task"]
    assert (task["title"], task["state"], task["holder"]) == ("Fix login", "open", None)
    assert shop.json("log", "--verify")["ok"]


def test_an_export_is_read_from_standard_input_too(repo, shop):
    """As a person copies a board: dibs export - | ssh elsewhere dibs import -"""
    key = repo.add("Fix login")
    lines = repo.ok("export", "-").out
    for words in ((), ("--format", "dibs")):
        for cut in ("", "{}\n", lines[: len(lines) // 2], lines.replace("Fix", "Mix")):
            refused = shop.run("import", "-", *words, *ANA, "--json", fed=cut)
            assert (refused.code, refused.error["code"]) == (2, "bad_argument"), cut
            assert "standard input is not an export" in refused.error["message"]
        assert shop.run("show", key).code == 2
    done = shop.run("import", "-", "--format", "dibs", *ANA, "--json", fed=lines)
    assert done.code == 0, done.err
    assert done.json["source"] == "standard input"
    assert shop.json("show", key)["task"]["title"] == "Fix login"
    assert shop.json("log", "--verify")["ok"]
    again = shop.run("import", "-", "--format", "dibs", *ANA, "--json", fed=lines)
    assert (again.code, again.error["code"]) == (1, "board_exists")


# At the same moment.


def test_two_syncs_at_once_make_each_item_one_task(shop):
    """The first two make the board, too."""
    for turn in range(10):
        for number in range(40):
            kano(shop, 40 * turn + number, f"work {40 * turn + number}")
        both = [shop.start("sync", *ANA) for _ in range(2)]
        outputs = [process.communicate(timeout=LONG) for process in both]
        codes = {process.returncode for process in both}
        assert codes <= {0, 75}, outputs
        assert 0 in codes, outputs
        assert "Traceback" not in str(outputs)
        assert titles(shop) == sorted(f"work {n}" for n in range(40 * (turn + 1)))
    assert shop.json("log", "--verify")["ok"]


def test_a_sync_beside_checkouts_takes_in_whole_items_and_drops_none(shop):
    count, branches = 60, ("main", "other")
    for branch in branches:
        if branch != "main":
            git(shop.folder, "checkout", "-q", "-b", branch)
        for number in range(count):
            kano(shop, number, f"{branch} {number}")
        git(shop.folder, "add", ".")
        git(shop.folder, "commit", "-q", "-m", branch)
    shop.ok("sync", *ANA)
    output = shop.folder.parent / "synced"
    with output.open("wb") as file:
        loop = subprocess.Popen(
            ["sh", "-c", f"while kill -0 $PPID; do {DIBS} sync --as ana || echo exit $?; done"],
            cwd=shop.folder, env=shop.environment(), stdin=subprocess.DEVNULL,
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    turn = 0
    try:
        while turn < 20 or turn % 2 or output.read_text().count(" imported") < 10:
            git(shop.folder, "checkout", "-q", branches[turn % 2])
            turn += 1
    finally:
        os.killpg(loop.pid, signal.SIGKILL)
        loop.wait(LONG)
    printed = output.read_text()
    assert "Traceback" not in printed
    assert {line for line in printed.splitlines() if line.startswith("exit")} <= {"exit 75"}, (
        printed
    )
    shop.ok("sync", *ANA)
    assert titles(shop) == sorted(f"other {n}" for n in range(count))
    assert "in step with the board" in shop.ok("doctor").out
    known = {f"{branch} {n}" for branch in branches for n in range(count)}
    events = shop.json("log", "--limit", "100000")["events"]
    seen = {event["facts"]["terms"]["title"] for event in events if "terms" in event["facts"]}
    assert len(seen) > count, "it saw both branches"
    assert seen <= known
    assert {event["verb"] for event in events} <= {"added", "synced", "actor_registered"}
    assert git(shop.folder, "status", "--short") == ""


def test_a_sync_waits_for_git_but_not_for_what_a_killed_git_left(repo):
    graph(repo, node("a"))
    lock = repo.folder / ".git" / "index.lock"
    lock.touch()
    assert repo.fails(75, "sync", *ANA, "--json").error["code"] == "busy"
    assert titles(repo) == []
    long_ago = lock.stat().st_mtime - 3600
    os.utime(lock, (long_ago, long_ago))
    assert repo.json("sync", *ANA)["sync"]["added"] == 1


def test_a_claim_in_a_linked_work_tree_writes_the_main_work_trees_copy_only(repo):
    graph(repo, node("a"))
    git(repo.folder, "add", ".")
    git(repo.folder, "commit", "-q", "-m", "graph")
    linked = repo.worktree("linked")
    linked.ok("sync", *ANA)
    linked.ok("claim", "a", *CODEX)
    assert fields(repo, "a")["assigned"] == "codex"
    assert git(linked.folder, "status", "--short") == ""
    assert sorted(path.name for path in (linked.folder / ".wg").iterdir()) == ["graph.jsonl"]
    linked.ok("complete", "a", *CODEX)
    assert fields(repo, "a")["status"] == "done"
    assert git(linked.folder, "status", "--short") == ""
