"""Names, numbers, messages and items that nobody should have to be taken in by."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from decimal import Decimal

import pytest

from dibs.domain import checks
from dibs.domain.model import folded_name
from dibs.domain.refusals import Refused
from dibs.intake import email
from kit.boards import of_a_file
from kit.repositories import DIBS

ANA = ("--as", "ana")
CODEX = ("--agent", "codex", "--session", "s1")

# Names.

CYRILLIC, FULL_WIDTH = "an\u0430", "\uff41\uff4e\uff41"


def test_a_name_that_mixes_scripts_is_refused_and_says_so(repo):
    repo.ok("add", "x", *ANA)
    ran = repo.fails(2, "claim", "T-1", "--as", CYRILLIC)
    assert "'an\\u0430' mixes scripts (Cyrillic, Latin)" in ran.err
    for verb in (["actor", "set", CYRILLIC], ["assign", "T-1", "--to", CYRILLIC]):
        assert "mixes scripts" in repo.fails(2, *verb, *ANA).err
    assert [one["name"] for one in repo.ok("actor", "list", "--json").json["actors"]] == ["ana"]


def test_a_name_in_full_width_letters_is_the_same_person(repo):
    repo.ok("add", "x", *ANA)
    repo.ok("claim", "T-1", "--as", FULL_WIDTH)
    assert "is yours" in repo.ok("claim", "T-1", *ANA).out
    assert [one["name"] for one in repo.ok("actor", "list", "--json").json["actors"]] == ["ana"]


@pytest.mark.parametrize(
    "name",
    [
        "\u0430\u043d\u043d\u0430",
        "Jos\u00e9",
        "\u7530\u4e2d",
        "\u30bf\u30ed\u30fc",
        "T\u7530\u3055\u3093",
        "\uae40\u6c11",
        "a1",
    ],
)
def test_a_name_of_one_script_is_a_name(name):
    assert checks.actor_name(name) == name


@pytest.mark.parametrize(
    "name", ["\u0430na", "\u03bf\u006f", "\u0391\u0410", "\u7530\u0430", "\uff41n\u0430"]
)
def test_scripts_that_look_alike_are_not_mixed_in_one_name(name):
    with pytest.raises(Refused, match="mixes scripts"):
        checks.actor_name(name)


def test_names_are_compared_in_one_form():
    assert folded_name("ANA") == folded_name("\uff21\uff2e\uff21") == folded_name("ana")
    assert folded_name("Stra\u00dfe") == folded_name("STRASSE")
    assert folded_name("\u00c9") == folded_name("e\u0301")


# Numbers.

BAD_AMOUNTS = [
    "1e999999999", "1e5", "1E+2", "NaN", "sNaN", "Infinity", "-1", "+1", "1_0", "\u0661", "1.2.3", "",
    ".", " 1", "1.1234567", "1000000001", "9" * 60, "0x10", "1e-999999999",
]  # fmt: skip


@of_a_file
@pytest.mark.parametrize("amount", BAD_AMOUNTS)
def test_an_amount_is_written_plainly(repo, amount):
    repo.ok("add", "x", *ANA)
    repo.ok("claim", "T-1", *ANA)
    repo.ok("stop", "T-1", *ANA)
    ran = repo.fails(2, "stint", "usage", "1", f"--cost={amount}", *ANA)
    assert "write an amount like 1.25" in ran.err or "the most is" in ran.err


@pytest.mark.parametrize(
    ("amount", "millionths"),
    [
        ("1.25", 1_250_000), ("0", 0), ("1000000000", 10**15), (".5", 500_000), ("1.", 1_000_000),
        ("0.000001", 1), ("1.2500000000", 1_250_000), (Decimal("1E+2"), 10**8), (3, 3_000_000),
        (Decimal("0.5"), 500_000),
    ],
)  # fmt: skip
def test_a_plain_amount_is_exact(amount, millionths):
    assert checks.millionths(amount) == millionths


@pytest.mark.parametrize(
    "amount", [Decimal("1E+999999"), Decimal("NaN"), Decimal("1E-999999"), 1e300, 10**500]
)
def test_a_program_gives_no_huge_amount(amount):
    with pytest.raises(Refused):
        checks.millionths(amount)


NUMBERS = [
    "1e999999999",
    "NaN",
    "Infinity",
    "1_0",
    "\u0661",
    "-1",
    "9" * 5000,
    "",
    " 1",
    "0x1",
    "1.0",
]
OPTIONS = {
    "--priority": "add x", "--tier": "add x", "--max-attempts": "add x", "--limit": "list", "--tokens": "stint usage 1",
    "--ttl": "claim T-1", "--since": "export --events -",
}  # fmt: skip


@of_a_file
@pytest.mark.parametrize("option", OPTIONS)
def test_no_number_is_a_bug(repo, option):
    repo.ok("add", "x", *ANA)
    for number in NUMBERS:
        ran = repo.run(*OPTIONS[option].split(), f"{option}={number}", *ANA)
        assert ran.code == 2, (option, number[:20], ran.code, ran.err[:200])


# Items and requests.


BAD = {
    "half a character": "\\ud800",
    "a NUL": "a\\u0000b",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize(
    "field",
    [
        '"after":["%s"]',
        '"blocked_by":["%s"]',
        '"assigned":"%s"',
        '"title":"%s"',
        '"status":"%s"',
        '"dibs":"%s"',
    ],
)
def test_a_line_of_a_graph_that_is_no_text_stops_no_other(repo, bad, field):
    (repo.folder / ".wg").mkdir()
    line = f'{{"kind":"task","id":"a",{field % bad}}}'
    (repo.folder / ".wg/graph.jsonl").write_text(
        f'{line}\n{{"kind":"task","id":"b","title":"x"}}\n'
    )
    ran = repo.ok("sync", *ANA)
    assert "b" in repo.ok("list", *ANA).out
    if "after" in field or "blocked_by" in field:
        assert "not text" in ran.out
    assert repo.ok("next", *CODEX).code == 0
    repo.ok("claim", "b", *CODEX)


@pytest.mark.parametrize("bad", ['"\\ud800"', '"a\\0b"', '"\\ud83d"'])
@pytest.mark.parametrize("dialect", ["kano", "wrk", "backlog"])
def test_an_item_file_that_is_no_text_stops_no_other(repo, dialect, bad):
    folder, names = {
        "kano": ("_kano/backlog/items", ("blocked_by", "owner", "title", "scope")),
        "wrk": (".claude/work-queue", ("blocked_by", "locked_by", "title", "scope")),
        "backlog": ("backlog/tasks", ("dependencies", "assignee", "title", "labels")),
    }[dialect]
    (repo.folder / folder).mkdir(parents=True)
    if dialect == "backlog":
        (repo.folder / "backlog/config.yml").write_text("statuses: [To Do, Done]\n")
    lists = ("blocked_by", "scope", "dependencies", "assignee", "labels")
    for number, name in enumerate(names, 1):
        value = f"[{bad}]" if name in lists else bad
        title = "" if name == "title" else "title: x\n"
        text = f"---\nid: WRK-{number}\n{title}status: To Do\nstate: Ready\n{name}: {value}\n---\n"
        (repo.folder / folder / f"WRK-{number} - x.md").write_text(text)
    good = "---\nid: WRK-9\ntitle: good\nstatus: To Do\nstate: Ready\n---\n"
    (repo.folder / folder / "WRK-9 - x.md").write_text(good)
    repo.ok("sync", *ANA)
    assert "good" in repo.ok("list", *ANA, "--json").out
    assert repo.run("claim", "WRK-9", *CODEX).code in (0, 3)


def test_a_bad_line_of_a_bulk_intake_or_an_import_stops_no_other(repo):
    lines = [
        {"channel": "mail", "ref": "\ud800", "title": "bad"},
        {"channel": "mail", "ref": "a\0b", "title": "bad"},
        {"channel": "mail", "ref": "r1", "title": "good\ud800"},
        {"channel": "mail", "ref": "r2", "title": "good"},
    ]
    (repo.folder / "asks.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    ran = repo.run("intake", "--from", "asks.jsonl", *ANA)
    assert ran.code in (0, 1), ran.err
    assert "good" in repo.ok("list", *ANA).out
    issues = [
        {"number": 1, "title": "\ud800", "state": "OPEN", "url": "https://github.com/a/b/issues/1"},
        {
            "number": 2,
            "title": "fine",
            "state": "OPEN",
            "url": "https://github.com/a/b/issues/2",
            "labels": [{"name": "\ud800"}],
        },
        {"number": 3, "title": "best", "state": "OPEN", "url": "https://github.com/a/b/issues/3"},
    ]
    (repo.folder / "issues.json").write_text(json.dumps(issues))
    ran = repo.run("import", "issues.json", "--format", "github", *ANA)
    assert ran.code in (0, 1), ran.err
    assert "best" in repo.ok("list", *ANA).out


# Messages.


def message(size: int, end: str = "") -> str:
    head = "Message-ID: <1@example.org>\nSubject: Fix login\nFrom: a@example.org\n\n"
    return head + "x" * (size - len(head) - len(end)) + end


@of_a_file
def test_a_message_is_read_whole_or_refused(repo):
    repo.ok("intake", "--email", *ANA, fed=message(3_000_000, "a"))
    ran = repo.ok("intake", "--email", *ANA, "--json", fed=message(3_000_000, "b"))
    assert ran.json["differences"] == ["payload"], "it differs in its last byte"
    ran = repo.fails(2, "intake", "--email", *ANA, fed=message(email.MESSAGE_MAX + 1))
    assert f"more than {email.MESSAGE_MAX}" in ran.err or str(email.MESSAGE_MAX) in ran.err


# A whole board on a terminal.


def on_terminal(repo, *arguments: str) -> bytes:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [DIBS, *arguments], cwd=repo.folder, env=repo.environment(), stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    found = b""
    try:
        while piece := os.read(ours, 65536):
            found += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return found


@of_a_file
def test_an_export_to_a_terminal_is_the_same_json_without_what_a_terminal_obeys(repo):
    repo.ok("add", "a\x9b2J\u202e\ufe00\U000e0101 \u00e9", *ANA)
    shown = on_terminal(repo, "export", "-").decode().replace("\r\n", "\n")
    assert all(one == "\n" or one.isprintable() for one in shown)
    assert "\u00e9" in shown
    assert not {"\x9b", "\u202e", "\ufe00", "\U000e0101"} & set(shown)
    piped = subprocess.run(
        [DIBS, "export", "-"],
        cwd=repo.folder,
        env=repo.environment(),
        capture_output=True,
        check=True,
    ).stdout
    assert "\u202e" in piped.decode()
    one, other = (
        [json.loads(line) for line in text.splitlines()]
        for text in (shown, piped.decode().replace("\u2028", ""))
    )
    assert [line for line in one if "title" in str(line)] == [
        line for line in other if "title" in str(line)
    ]
