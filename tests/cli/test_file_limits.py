"""Files of a repository are read within limits: a bad one is reported, and the others are read."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from dibs import safe_files
from dibs.backlogs.index import VERSION, Index
from kit.harnesses import context, denial, edit, hook
from kit.repositories import DIBS

ANA = ("--as", "ana")
CODEX = ("--agent", "codex", "--session", "s9")
SECONDS = 30
"""What a command may take that meets a pipe without a writer, or a device without an end."""


@pytest.fixture
def kind():
    """What is read does not depend on the store."""
    return "sqlite"


@pytest.fixture
def repo(repo):
    repo.ok("add", "Fix login", "--scope", "src/auth/**", *ANA)
    repo.ok("add", "Write docs", "--scope", "@docs", *ANA)
    repo.ok("claim", "T-1", *CODEX)
    return repo


def ended(repo, *arguments: str, fed: str = "") -> subprocess.CompletedProcess[str]:
    """A real process, with little memory, that has to end by itself and is no bug."""
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", DIBS, *arguments],
        cwd=repo.folder, env=repo.environment(), input=fed, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode != 70, done.stderr
    return done


def link(path, to) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def large(path) -> None:
    with path.open("wb") as file:
        file.truncate(safe_files.LIMIT + 1)


DEEP = "it is nested too deeply"
WRONG = {
    "dotted keys": (lambda path: path.write_text("areas" + ".a" * 990 + " = 1\n"), DEEP),
    "quoted keys": (lambda path: path.write_text("areas" + '."a"' * 900 + " = 1\n"), DEEP),
    "keys with escaped quotes": (
        lambda path: path.write_text("areas" + '."\\""' * 200_000 + " = 1\n"),
        DEEP,
    ),
    "many long keys": (
        lambda path: path.write_text("".join(f"k{n}{'.a' * 9_000} = 1\n" for n in range(50))),
        DEEP,
    ),
    "lists": (lambda path: path.write_text(f"areas.web = {'[' * 400}{']' * 400}\n"), DEEP),
    "tables": (lambda path: path.write_text("x = " + "{a=" * 90 + "1" + "}" * 90), DEEP),
    "open lists": (lambda path: path.write_text(f"areas.web = {'[' * 5000}"), DEEP),
    "a pipe": (os.mkfifo, "it is not a file"),
    "a folder": (lambda path: path.mkdir(), "it is not a file"),
    "a device": (lambda path: link(path, "/dev/zero"), "it is a link that leads out"),
    "another's": (lambda path: link(path, "/etc/hostname"), "it is a link that leads out"),
    "nothing": (lambda path: link(path, "gone"), "no such file"),
    "too large": (large, "bytes; at most"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe"), "can't decode"),
    "a conflict": (lambda path: path.write_text("<<<<<<< HEAD\n"), "Invalid"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_bad_dibs_toml_is_reported_and_opens_no_guard(repo, name):
    make, why = WRONG[name]
    make(repo.folder / "dibs.toml")
    assert ended(repo, "list").returncode == 0
    assert why in ended(repo, "config").stderr + ended(repo, "doctor").stdout
    held = ended(repo, "hook", "claude", fed=json.dumps(edit(repo, "src/auth/a.py")))
    assert (
        "is held by codex"
        in json.loads(held.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
    )
    assert denial(hook(repo, edit(repo, "README.md"))) == ""
    assert ended(repo, "claim", "T-1", "--agent", "claude", "--session", "c1").returncode == 4


def test_nobody_knows_what_an_area_means_that_cannot_be_read(repo):
    """Whoever edits gets a warning; or a denial, if the setting says so."""
    (repo.folder / "dibs.toml").write_text('[areas]\ndocs = ["docs/**"]\n')
    repo.ok("claim", "T-2", "--agent", "gemini", "--session", "g1")
    assert "is held by gemini" in denial(hook(repo, edit(repo, "docs/a.md")))
    (repo.folder / "dibs.toml").write_text("areas" + ".a" * 990 + " = 1\n")
    message = context(hook(repo, edit(repo, "docs/a.md")))
    assert 'cannot resolve "@docs"' in message
    assert DEEP in message
    repo.ok("add", "Docs too", "--scope", "docs/**", *ANA)
    ran = repo.fails(4, "claim", "T-3", "--agent", "claude", "--session", "c1")
    assert 'cannot resolve "@docs", so they count as overlapping' in ran.err
    (repo.folder / ".git/dibs/settings.toml").write_text('guard_failure = "refuse"\n')
    assert 'cannot resolve "@docs"' in denial(hook(repo, edit(repo, "docs/a.md")))


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: link(path, "/dev/zero")], ids=["pipe", "device"]
)
@pytest.mark.parametrize(
    "name",
    [
        ".wg/service/registry.json", "backlog/config.yml", ".claude/session-state.yaml",
        ".git/commondir", ".git/dibs/board.id", ".git/dibs/backlog-index.json",
        "_kano/backlog/items/A-1-x.md", ".wg/graph.jsonl",
    ],
)  # fmt: skip
def test_a_pipe_or_a_device_in_place_of_a_file_stops_nobody(repo, name, make):
    for folder in (".wg/service", "backlog/tasks", ".claude/work-queue", "_kano/backlog/items"):
        (repo.folder / folder).mkdir(parents=True, exist_ok=True)
    (repo.folder / ".wg/graph.jsonl").write_text('{"kind":"task","id":"b","title":"x"}\n')
    (repo.folder / "backlog/config.yml").write_text("statuses: [To Do, Done]\n")
    path = repo.folder / name
    path.unlink(missing_ok=True)
    make(path)
    verbs = ["sync", "list", "doctor"]
    if "commondir" in name:  # git itself waits for a pipe
        verbs.remove("doctor")
    for verb in verbs:
        ended(repo, verb, *ANA)
    held = ended(repo, "hook", "claude", fed=json.dumps(edit(repo, "src/auth/a.py")))
    if "commondir" not in name:
        assert "is held by codex" in held.stdout
        assert ended(repo, "claim", "b", *CODEX).returncode == (0 if "graph" not in name else 2)


def test_what_is_wrong_with_the_registry_is_reported(repo):
    (repo.folder / ".wg").mkdir()
    (repo.folder / ".wg/graph.jsonl").write_text('{"kind":"task","id":"b","title":"x"}\n')
    link(repo.folder / ".wg/service/registry.json", "/dev/zero")
    assert "it is a link that leads out of the repository" in ended(repo, "sync", *ANA).stdout


NESTED = "[" * 900 + "]" * 900
LINES = {
    "a deep value of our own": f'{{"kind":"task","id":"a","log":{NESTED}}}',
    "a deep value": f'{{"kind":"task","id":"a","x":{NESTED}}}',
    "deeper than can be read": f'{{"kind":"task","id":"a","x":{"[" * 100_000}}}',
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_that_is_nested_too_deeply_is_left_alone_and_the_rest_goes_on(repo, line):
    (repo.folder / ".wg").mkdir()
    (repo.folder / ".wg/graph.jsonl").write_text(
        f'{line}\n{{"kind":"task","id":"b","title":"x"}}\n'
    )
    assert "nested too deeply" in ended(repo, "sync", *ANA).stdout
    assert ended(repo, "claim", "b", *CODEX).returncode == 0
    assert (repo.folder / ".wg/graph.jsonl").read_text().startswith(line)


@pytest.mark.parametrize(
    "scope",
    [
        "[" + "&a " * 5_000 + "x]",
        "\n" + "".join(f"{' ' * n}-\n" for n in range(1, 1_300)),
        "[" * 900,
    ],
    ids=["anchors", "lists below lists", "brackets"],
)
def test_an_item_file_that_is_nested_too_deeply_is_reported_and_the_rest_goes_on(repo, scope):
    folder = repo.folder / "_kano/backlog/items"
    folder.mkdir(parents=True)
    for number, one in ((1, scope), (2, "[src]")):
        text = f"---\nid: A-{number}\ntitle: x\nstate: Ready\nscope: {one}\n---\n"
        (folder / f"A-{number}-x.md").write_text(text)
    done = ended(repo, "sync", *ANA)
    assert "A-1-x.md" in done.stdout + done.stderr
    assert ended(repo, "show", "A-2").returncode == 0


@pytest.mark.parametrize(
    "text", ['{"of": 1}', "[]", NESTED, '{"of": OF, "seq": 0, "files": []}', "\0" * 100]
)
def test_an_index_of_no_use_is_made_anew(repo, text):
    (repo.folder / ".wg").mkdir()
    (repo.folder / ".wg/graph.jsonl").write_text('{"kind":"task","id":"b","title":"x"}\n')
    ended(repo, "sync", *ANA)
    index = repo.folder / ".git/dibs/backlog-index.json"
    of = json.dumps(json.loads(index.read_text())["of"])
    index.write_text(text.replace("OF", of))
    assert ended(repo, "sync", *ANA).returncode == 0
    assert json.loads(index.read_text())["files"]


ITEM = ["workgraph", "b", "b", ["c"], False, False, "", False, ""]


@pytest.mark.parametrize("place", [0, 1, 2, 3, 6, 8])
def test_an_index_with_something_else_than_texts_is_not_read(tmp_path, place):
    """An agent's sandbox can write it."""

    def read(item, seq):
        stored = {
            "of": [VERSION, "board", "root"],
            "seq": seq,
            "files": {"f": [[1], 1, [item], False]},
        }
        (tmp_path / "backlog-index.json").write_text(json.dumps(stored))
        return Index(str(tmp_path), "board", "root").files

    assert list(read(ITEM, 7)) == ["f"]
    assert read([*ITEM[:place], [["x"]], *ITEM[place + 1 :]], 7) == {}
    assert read(ITEM, "x") == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: link(path, "/dev/zero")])
def test_only_a_regular_file_is_read(tmp_path, make):
    make(tmp_path / "file")
    with pytest.raises(safe_files.Unreadable, match="it is not a file"):
        safe_files.read(str(tmp_path / "file"))
    assert safe_files.lines(str(tmp_path / "file")) == []
    assert safe_files.lines("a\0b") == []


def dotted(part: str, count: int) -> str:
    return ".".join([part] * count)


LONG = safe_files.DEPTH + 1


@pytest.mark.parametrize("part", ["a", '"a"', "'a'", '"\\""', "' . '", '"."', "a-b_c"])
def test_a_key_of_too_many_parts_is_found_before_the_file_is_parsed(part):
    assert safe_files.has_long_key(f"{dotted(part, LONG)} = 1")
    assert safe_files.has_long_key(f"x = 1\n[{dotted(part, LONG)}]")
    assert safe_files.has_long_key(f"{dotted(part, LONG).replace('.', ' . ')} = 1")
    assert not safe_files.has_long_key(f"{dotted(part, LONG - 1)} = 1")


@pytest.mark.parametrize("quotes", ['"', "'", '"""', "'''"])
def test_dots_inside_of_a_text_or_a_comment_are_no_key(quotes):
    text = f"x = {quotes}{dotted('a', 99)}{quotes}"
    assert not safe_files.has_long_key(text)
    assert not safe_files.has_long_key(f"x = 1 # {dotted('a', 99)}")
    assert safe_files.has_long_key(f"{text}\n{dotted('a', LONG)} = 1")


def test_settings_beside_the_board_have_the_same_limit(repo):
    """An agent's sandbox may write there."""
    with (repo.folder / ".git/dibs/settings.toml").open("a") as file:
        file.write(dotted('"\\""', 200_000) + " = 1\n")
    ran = ended(repo, "list")
    assert ran.returncode == 2
    assert DEEP in ran.stderr
