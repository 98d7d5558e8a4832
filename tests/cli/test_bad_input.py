"""Bad input: the right exit code, one clear message, nothing changed, and never a traceback.

The table runs `dibs` in this process, on one board that no case may change. A few cases that need
a process of their own (bytes, closed streams, time zones) run the real command.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from shlex import split
from typing import NamedTuple

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs.board.settings import SETTINGS
from dibs.cli import verbs
from dibs.cli.main import main
from dibs.output.error_map import ERROR_MAP, EXITS
from kit import soak
from kit.repositories import DIBS, Ran, Repo, clean_environment, git

HUGE = "\ue000"
"""Stands in a line of the table for a word of 100000 characters."""
HUGE_WORD = "x" * 100_000
LONGEST_MESSAGE = 500
"""A message is for people: whatever was typed, it fits on a screen."""

DESTRUCTIVE = re.compile(
    r"\b(rm|delete|drop|reset|force|takeover|kill|uninstall|restore|redact|wipe|truncate)\b"
)
AGENT, PERSON = "--agent codex --session s1", "--as ana"

# The command, in this process.


class Here:
    """A repository with a board, `dibs` run in it in this process, and what its board holds."""

    def __init__(self, repo: Repo) -> None:
        self.repo, self.folder = repo, repo.folder
        self._reader: apsw.Connection | None = None

    def run(self, *arguments: str, stdin: io.TextIOBase | None = None, **environment: str) -> Ran:
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
        wanted = self.repo.environment(**environment)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name in set(os.environ) - set(wanted):
                patch.delenv(name)
            for name, value in wanted.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", stdin)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = exit_of(arguments)
        return Ran(code, printed(out), printed(err))

    def ok(self, line: str) -> Ran:
        ran = self.run(*split(line))
        assert ran.code == 0, (line, ran.err)
        return ran

    def snapshot(self) -> dict[str, list[object]]:
        """Everything that is stored but the log of refusals."""
        if self._reader is None:
            self._reader = apsw.Connection(str(self.repo.database), apsw.SQLITE_OPEN_READONLY)
        tables = self._reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        names = [name for (name,) in tables.fetchall() if name != "refusal"]
        return {name: self._reader.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def exit_of(arguments: tuple[str, ...]) -> int:
    try:
        return main(list(arguments))
    except SystemExit as end:  # --help
        return int(end.code or 0)


def printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]


BOARD = f"""
    init
    add free --as ana
    add held --as ana
    add in-review --as ana
    add complete --as ana
    add blocked --as ana
    add failed --as ana
    add dropped --as ana
    add parked --as ana
    add assigned --as ana
    add people --for human --as ana
    add expert --tier 9 --as ana
    add rust --needs rust --as ana
    add careful --allow edit --as ana
    add lost --as ana
    add reserved-by-a-person --as ben
    claim T-2 {AGENT}
    claim T-3 {AGENT}
    submit T-3 {AGENT}
    claim T-4 {AGENT}
    complete T-4 {AGENT}
    block T-5 --reason waits --as ana
    claim T-6 {AGENT}
    fail T-6 --reason tried {AGENT}
    drop T-7 --as ana
    park T-8 --as ana
    assign T-9 --to ana --as ben
    claim T-13 {AGENT}
    claim T-14 {AGENT}
    takeover T-14 --force --reason urgent --as ana
    claim T-15 --reserve --as ben
    note T-1 once --request-id r1 --as ana
    claim T-2 --agent claude --session s0 || 4
"""


def made(folder, board: str = BOARD) -> Here:
    here = Here(Repo.create(folder))
    for line in board.strip().splitlines():
        words, _, code = line.partition("||")
        ran = here.run(*split(words))
        assert ran.code == int(code or 0), (line, ran.err)
    return here


@pytest.fixture(scope="session")
def board(tmp_path_factory):
    """A board with a task in every state. No case changes it."""
    here = made(tmp_path_factory.mktemp("bad") / "repo")
    yield here
    here.close()


@pytest.fixture(scope="session")
def playground(tmp_path_factory):
    """A board that Hypothesis may fill."""
    here = made(tmp_path_factory.mktemp("play") / "repo")
    yield here
    here.close()


@pytest.fixture
def fresh(tmp_path):
    """A board for one test."""
    here = made(tmp_path / "repo", "init\nadd one --as ana")
    yield here
    here.close()


# The table.


class Case(NamedTuple):
    """What is typed, and how it is refused: exit code, refusal code, a part of the message."""

    arguments: tuple[str, ...]
    exit: int
    code: str
    expected: str
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        words = [*(f"{name}={value}" for name, value in self.environment), *self.arguments]
        short = (word if len(word) < 40 else word[:20] + "..." for word in words)
        return ascii(" ".join([*short, self.code]))[1:-1]


def refused(line: str, exit_code: int, code: str, expected: str, **environment: str) -> Case:
    words = tuple(word.replace(HUGE, HUGE_WORD) for word in split(line))
    return Case(words, exit_code, code, expected, tuple(environment.items()))


def bad(line: str, expected: str, **environment: str) -> Case:
    """Exit 2; but for what a harness calls, to which that would be a denial."""
    return refused(
        line, 1 if line.startswith("hook") else 2, "bad_argument", expected, **environment
    )


WITH_KEY = {
    "edit": f"edit KEY --title new {PERSON}",
    "show": "show KEY",
    "scope": f"scope KEY --add src {PERSON}",
    "note": f"note KEY text {PERSON}",
    "claim": f"claim KEY {AGENT}",
    "start": f"start KEY {AGENT}",
    "stop": f"stop KEY {AGENT}",
    "renew": f"renew KEY {AGENT}",
    "release": f"release KEY {AGENT}",
    "handoff": f"handoff KEY --to ben {AGENT}",
    "takeover": f"takeover KEY {AGENT}",
    "assign": f"assign KEY --to ben {PERSON}",
    "unassign": f"unassign KEY {PERSON}",
    "park": f"park KEY {PERSON}",
    "unpark": f"unpark KEY {PERSON}",
    "block": f"block KEY --reason why {PERSON}",
    "unblock": f"unblock KEY {PERSON}",
    "submit": f"submit KEY {AGENT}",
    "accept": f"accept KEY {PERSON}",
    "reject": f"reject KEY --reason why {PERSON}",
    "complete": f"complete KEY {AGENT}",
    "fail": f"fail KEY --reason why {AGENT}",
    "drop": f"drop KEY {PERSON}",
    "depend": f"depend KEY --on T-2 {PERSON}",
    "why": "why KEY",
    "retry": f"retry KEY {PERSON}",
    "reset": f"reset KEY {PERSON}",
    "run": f"run KEY {AGENT} -- true",
    "log": "log KEY",
    "watch": "watch KEY --timeout 1s",
    "wait": "wait KEY --for free --timeout 1s",
}
WITHOUT_KEY = {
    "add": f"add title {PERSON}",
    "intake": f"intake --channel mail --ref r-9 {PERSON}",
    "list": "list",
    "next": f"next {AGENT}",
    "sweep": f"sweep {PERSON}",
    "sync": f"sync {PERSON}",
    "timesheet": "timesheet",
    "day": "day ana",
    "approve": f"approve ana --week 2026-W40 {PERSON}",
    "reopen": f"reopen ana --week 2026-W40 --reason why {PERSON}",
    "stint": "stint list",
    "shellenv": "shellenv",
    "import": f"import nowhere.jsonl {PERSON}",
    "export": f"export nowhere/x.jsonl {PERSON}",
    "dispatch": f"dispatch --once {PERSON}",
    "status": "status",
    "who": "who T-1",
    "init": "init",
    "config": "config",
    "actor": "actor list",
    "doctor": "doctor",
    "board": "board list",
    "guard": "guard commit",
    "demo": "demo",
    "setup": "setup --check",
    "uninstall": "uninstall --dry-run",
    "hook": "hook claude",
    "prime": f"prime {AGENT}",
    "statusline": "statusline",
}
KEY_IS_OPTIONAL = ("renew", "log", "watch", "run")
KEYS_MAY_BE_MANY = ("reset",)
SILENT = ("setup", "uninstall", "hook", "statusline")
"""They have nothing to say against a place without a board."""

NOT_A_KEY = "is not the key of a task; one looks like T-42"


def every_key() -> list[Case]:
    """Each verb that names a task, with a key that is missing, malformed, huge or unknown."""
    cases = []
    for verb, line in WITH_KEY.items():
        if verb not in KEY_IS_OPTIONAL:
            without = line.replace("KEY ", "").replace(" KEY", "").replace(" text", "")
            cases.append(bad(without, "arguments are required: KEY"))
        cases += [
            bad(line.replace("KEY", key), NOT_A_KEY)
            for key in ("''", "../x", f"'{HUGE}'", "'T-\0'", "'T-1\x1b[2J'")
        ]
        cases += [
            refused(line.replace("KEY", "T-999"), 2, "unknown_task", "there is no task T-999"),
            bad(line.replace("KEY", "T-1 --nonsense"), "unrecognized arguments: --nonsense"),
        ]
        if verb not in KEYS_MAY_BE_MANY:
            surplus = line.replace("KEY", "T-1 surplus")
            cases.append(bad(surplus, "unrecognized arguments: "))
    return cases


MALFORMED_KEYS = [
    bad(f"claim '{key}' {AGENT}", NOT_A_KEY)
    for key in (
        " ", "-", "T 1", " T-1", "T-1 ", "T-1\n", "T-1\t", "1", "42-T", "_", "_.-", ".T", "@T-1",
        "T/1", "T:1", "T-1;ls", "T-$(id)", "T-1,T-2", "T-\uff11", "T-\u0661", "\u00c4-1", "\u0422-1",
        "T-1\u202e", "T-\ud800", "T" * 65, "*", "%", "\x7f",
    )
]  # fmt: skip
UNKNOWN_KEYS = [
    refused(f"show {key}", 2, "unknown_task", f"there is no task {key}")
    for key in ("T1", "T-01", "T-0", "T-1.0", "nosuch", "X" * 64)
]


def every_verb() -> list[Case]:
    """Each verb without a key, with something that it does not take."""
    cases = []
    for verb, line in WITHOUT_KEY.items():
        if verb != "next":
            cases.append(bad(f"{line} --ttl 5m", "unrecognized arguments: --ttl"))
        cases += [
            bad(f"{line} --nonsense", "unrecognized arguments: --nonsense"),
            bad(f"{line} --agent", "--agent: expected one argument"),
            bad(f"{line} --session", "--session: expected one argument"),
            bad(f"{line} --json=yes", "--json: ignored explicit argument 'yes'"),
        ]
    return cases


VERBS = [
    bad("clam T-1", "there is no verb 'clam'; did you mean claim?"),
    bad("Claim T-1", "did you mean claim?"),
    bad("relase T-1", "did you mean release?"),
    bad("finished T-1", "there is no verb 'finished'"),
    bad("xyzzy", "there is no verb 'xyzzy'"),
    bad("T-1 claim", "there is no verb 'T-1'"),
    bad("T-1", "there is no verb 'T-1'"),
    bad("'claim T-1'", "there is no verb 'claim T-1'"),
    bad("'cl\x1b[31maim'", "there is no verb"),
    bad("'\0'", "there is no verb"),
    bad("'\ud800'", "there is no verb"),
    bad(HUGE, "there is no verb"),
    bad("''", "there is no verb ''"),
    bad("'' T-1", "there is no verb ''"),
    bad("help xyzzy", "there is no verb 'xyzzy'"),
    bad("--as ana", "verb"),
    bad("--agent", "--agent"),
    bad("--nonsense", "--nonsense"),
    bad("--ttl 5m claim T-1", "there is no verb '5m'"),
    bad("--nonsense list", "unrecognized arguments: --nonsense"),
    bad("--as claim T-1", "there is no verb 'T-1'"),
    bad(f"list '{HUGE}'", "unrecognized arguments: xxx"),
    bad(f"list --{HUGE}", "unrecognized arguments: --xxx"),
    bad("list 'a\nb'", "unrecognized arguments: a"),
    bad("list --fre", "unrecognized arguments: --fre"),
    bad("claim T-1 --res --as ana", "unrecognized arguments: --res"),
    bad("claim T-1 T-2 --as ana", "unrecognized arguments: T-2"),
    bad("claim --reserve=yes T-1 --as ana", "--reserve: ignored explicit argument"),
    bad("add one two --as ana", "unrecognized arguments: two"),
    bad("note T-1 --as ana", "arguments are required: TEXT"),
    bad("note T-1 hello --reason why --as ana", "--reason requires --redact"),
    bad("note T-1 hello --redact 3 --reason why --as ana", "TEXT does not combine with --redact"),
    bad("note T-1 --redact '' --reason why --as ana", "the number of the event is ''"),
    bad("note T-1 --redact 0 --reason why --as ana", "the number of the event is 0"),
    bad("note T-1 --redact note --reason why --as ana", "the number of the event is 'note'"),
    bad(f"note T-1 --redact '{HUGE}' --reason why --as ana", "the number of the event is"),
    refused(
        "note T-1 --redact 1 --as ana", 2, "reason_missing", "note --redact T-1 needs a reason"
    ),
    refused(
        "note T-1 --redact 999 --reason why --as ana",
        2,
        "unknown_note",
        "event 999 added no note",
    ),
    refused(f"note T-1 --redact 1 --reason why {AGENT}", 1, "people_only", "only a person"),
    bad("add --as ana", "arguments are required: TITLE"),
    bad("intake --as ana", "arguments are required: --channel, --ref"),
    bad("intake --channel mail --as ana", "arguments are required: --ref"),
    bad("handoff T-2 --agent codex --session s1", "arguments are required: --to"),
    bad("assign T-1 --as ana", "arguments are required: --to"),
    bad("assign T-1 ben --as ana", "required: --to"),
    bad("actor", "arguments are required"),
    bad("guard", "arguments are required: WHAT (dibs guard --help)"),
    bad("actor remove codex --as ana", "'remove': use list, or set NAME"),
    bad("actor codex set --as ana", "'codex': use list, or set NAME"),
    bad("actor '' --as ana", "'': use list, or set NAME"),
    bad("actor set --as ana", "needs NAME"),
    bad("actor list codex", "takes no other arguments"),
    bad(f"edit T-1 {PERSON}", "no changes given"),
    bad(f"edit T-1 --token 1.1 {PERSON}", "no changes given"),
    bad(f"renew --token 1.1 {AGENT}", "--token requires KEY"),
    bad(f"edit T-1 --title {PERSON}", "--title: expected one argument"),
    bad(f"claim T-1 --ttl {AGENT}", "--ttl: expected one argument"),
]

LIKE_90S = "write it like 90s, 30m, 2h or 7d"
TTL_RANGE = "it must be between 1 s and 30 d"
TIMES = [
    *(
        bad(f"claim T-1 --ttl '{ttl}' {AGENT}", expected)
        for ttl, expected in {
            "": LIKE_90S, " ": LIKE_90S, "abc": LIKE_90S, "5": LIKE_90S, "m": LIKE_90S,
            "5 m": LIKE_90S, "5M": LIKE_90S, "5min": LIKE_90S, "1.5h": LIKE_90S, "1h30m": LIKE_90S,
            "1w": LIKE_90S, "+5m": LIKE_90S, "0x5m": LIKE_90S, "1e3s": LIKE_90S,
            "\uff15m": LIKE_90S, "\u0665m": LIKE_90S, "5\uff4d": LIKE_90S, "5m\n": LIKE_90S,
            "5m\0": LIKE_90S, "\ud800m": LIKE_90S, "9999999999999d": LIKE_90S, HUGE: LIKE_90S,
            "9" * 5000 + "s": LIKE_90S, "inf": LIKE_90S, "nan": LIKE_90S,
            "0s": TTL_RANGE, "0d": TTL_RANGE, "31d": TTL_RANGE, "721h": TTL_RANGE,
            "999999999d": TTL_RANGE,
        }.items()
    ),
    bad(f"claim T-1 --ttl -5m {AGENT}", "--ttl: expected one argument"),
    bad(f"claim T-1 --ttl=-5m {AGENT}", LIKE_90S),
    bad(f"start T-1 --ttl 0s {AGENT}", TTL_RANGE),
    bad(f"renew T-2 --ttl 31d {AGENT}", TTL_RANGE),
    bad(f"renew --ttl 31d {AGENT}", TTL_RANGE),
    bad("renew --ttl 31d --agent nothing-held --session s1", TTL_RANGE),
    bad(f"handoff T-2 --to ben --ttl 1.5h {AGENT}", LIKE_90S),
    bad(f"takeover T-1 --ttl abc {AGENT}", LIKE_90S),
    bad("takeover T-2 --force --reason r --ttl '' --as ana", LIKE_90S),
    bad("assign T-1 --to ben --ttl 0s --as ana", TTL_RANGE),
]  # fmt: skip

WRITE_IT = "write it like 2026-11-15T14:30:00Z"
INSTANTS = [
    *(
        bad(f"who T-1 --at='{when}'", WRITE_IT)
        for when in (
            "", " ", "yesterday", "now", "soon", "25:00", "12:60", "12:", ":", "2026-13-01",
            "2026-02-30", "2026-11-15T25:00:00Z", "2026-11-15T14:30:00Zulu", "15/11/2026", "1.5h",
            "-5m", "5w", "1794700000000000000000", "10000-01-01", "2026-11-15\n", "2026-11-15\0",
            "\ud800", "2026-11-15T14:30:00+99:00", HUGE,
        )
    ),
    bad("who T-1 --at '\uff15m'", "--at is"),
    bad("who T-1 --at 9999999999d", "--at is"),
    bad("who T-1 --at 999999999d", "--at is"),
    bad("log --since 999999999d", "--since is"),
    bad("log --until 999999999d", "--until is"),
    bad("log --since yesterday", "--since is 'yesterday'"),
    bad("log --until ''", "--until is ''"),
    bad("log T-1 --until 24:61", "--until is '24:61'"),
    bad("log --refused --since later", "--since is 'later'"),
    bad("log --forced --until 2026-99-99", "--until is '2026-99-99'"),
    bad("log --verify --since garbage", "takes no other options"),
    bad("log 'no key' --verify", "takes no other options"),
    bad("log T-999 --verify", "takes no other options"),
    bad("log --forced --refused", "does not combine"),
    bad("log --head --verify", "takes no other options"),
    bad("log T-1 --head", "takes no other options"),
    bad("log --head --against x", "takes no other options"),
    bad("log --against 1:abc", "--against requires --verify"),
    bad("log --verify --against 1:abc", "neither a head like 42:9f86"),
    bad("log --verify --against nowhere.txt", "nor a file that can be read (No such file"),
    bad("log --verify --against 'a\0b'", "nor a file that can be read (its name is not a path)"),
    bad(f"log --verify --against '{HUGE}'", "nor a file that can be read"),
    bad("log --verify --against /", "nor a file that can be read (Is a directory)"),
    bad("log --verify --against /dev/null", "there is no kept head in it"),
    bad("log --verify --against -", "there is no kept head in it"),
    bad("export", "arguments are required: FILE"),
    bad("export x.jsonl --since 3", "--since and --task require --events"),
    bad("export x.jsonl --task T-1", "--since and --task require --events"),
    bad("export --events --since=-1", "--since is '-1'"),
    bad("export --events --since many", "--since is 'many'; it is a number from 0"),
    bad(f"export --events --since '{HUGE}'", "--since is"),
    bad("export --events --task ../x", NOT_A_KEY),
    refused("export --events --task T-999", 2, "unknown_task", "there is no task T-999"),
    bad("export --events no/such/folder/x", "there is no folder"),
    bad("list --free --held", "--free does not combine"),
    bad("doctor --reason why", "--reason requires --set-clock"),
    bad("board", "the following arguments are required"),
    bad("setup everything", "cannot be set up; there are git"),
    bad("setup git --check --remove", "one at a time"),
    bad("guard", "arguments are required: WHAT"),
    bad("guard everything", "is not a guard; there are commit"),
    bad("guard commit more", "usage: dibs guard commit"),
    bad("guard message", "usage: dibs guard message FILE"),
    bad("guard message nowhere", "is not a message file"),
    bad("guard refs", "usage: dibs guard refs STATE"),
    bad("guard receive more", "usage: dibs guard receive"),
    bad("guard range", "usage: dibs guard range A..B"),
    bad("guard range main..nowhere", "git does not know"),
    bad("guard range -- --output=x", "is no range of commits"),
    bad("board copy", "use one of list, move, backup, restore, grant"),
    bad("board list more", "takes no more arguments"),
    bad("board list --to /x", "--to is for board move"),
    bad(f"board move --to elsewhere more {PERSON}", "'more': dibs board move takes no more"),
    bad(f"board move --to elsewhere --reason r {PERSON}", "--reason is for board restore"),
    bad("board backup x.db --to /x", "--to is for board move"),
    bad("board backup x.db --in-place", "--in-place is for board restore"),
    bad(f"board restore x.db --reason r --check {PERSON}", "--check is for board move"),
    bad(f"board restore x.db --reason r --request-id R1 {PERSON}", "this verb is not idempotent"),
    bad(f"board restore --in-place --reason r --request-id R1 {PERSON}", "this verb is not idempotent"),
    bad(f"config --load x.toml --request-id R1 {PERSON}", "this verb is not idempotent"),
    bad(f"board move {PERSON}", "dibs board move needs --to"),
    bad(f"board move --to mysql://db/x {PERSON}", "one looks like postgresql://"),
    bad(f"board move --to postgresql://ana:geheim@db/x {PERSON}", "the address holds a password"),
    refused(f"board move --to /nowhere/at/all {AGENT}", 1, "people_only", "only a person"),
    bad("board backup", "needs FILE"),
    bad("board backup ''", "needs FILE"),
    bad("board backup /no/such/folder/x.db", "there is no folder"),
    bad("board backup /", "is there already"),
    bad(f"board restore {PERSON}", "dibs board restore FILE"),
    bad(f"board restore x.db --in-place {PERSON}", "dibs board restore FILE"),
    bad(f"board restore nothing.db --reason r {PERSON}", "there is no file"),
    refused(f"board restore --in-place --reason r {AGENT}", 1, "people_only", "only a person"),
    refused(f"board restore --in-place {PERSON}", 2, "reason_missing", "needs a reason"),
    bad("board grant", "needs ROLE"),
    bad("board grant ''", "needs ROLE"),
    bad("board grant agents", "this is for boards on a server"),
    bad(f"config --load nothing.toml {PERSON}", "cannot be read"),
    bad("who T-1 --at 9999-12-30", "is in the future"),
    bad("who T-1 --at 0001-01-02", "out of range"),
    bad(f"block T-1 --reason r --on nobody-here {PERSON}", "neither a task nor an actor"),
    refused(f"actor set ana --kind agent {PERSON}", 1, "kind_is_fixed", "a person cannot become an agent"),
]  # fmt: skip

NO_TOKEN = "is not a token; one looks like 1.7"
TOKENS = [
    *(
        bad(f"renew T-2 --token '{token}' {AGENT}", NO_TOKEN)
        for token in (
            "", " ", "1", "1.", ".1", ".", "a.b", "1.b", "1.2.3", "1,2", "1 .2", "+1.2", "1.2 ",
            "1.0x2", "\uff11.\uff12", "\u00b9.\u00b2", "1.2\0", "1.2\n", "\ud800.1", "9" * 19 + ".1",
            "1." + "9" * 5000, HUGE,
        )
    ),
    bad(f"renew T-2 --token=-1.2 {AGENT}", NO_TOKEN),
    bad(f"renew T-2 --token -1.2 {AGENT}", NO_TOKEN),
    bad(f"edit T-1 --title t --token x {PERSON}", NO_TOKEN),
    bad(f"scope T-1 --add a --token x {PERSON}", NO_TOKEN),
    bad("scope T-1 --token x", "--token requires --add or --remove"),
    bad(f"stop T-2 --token x {AGENT}", NO_TOKEN),
    bad(f"release T-2 --token x {AGENT}", NO_TOKEN),
    bad(f"handoff T-2 --to ben --token x {AGENT}", NO_TOKEN),
    bad(f"block T-2 --reason r --token x {AGENT}", NO_TOKEN),
    bad(f"submit T-2 --token x {AGENT}", NO_TOKEN),
    bad(f"complete T-2 --token x {AGENT}", NO_TOKEN),
    bad(f"done T-2 --token x {AGENT}", NO_TOKEN),
    bad(f"fail T-2 --reason r --token x {AGENT}", NO_TOKEN),
    bad(f"drop T-2 --token x {AGENT}", NO_TOKEN),
    refused(f"renew T-2 --token 0.0 {AGENT}", 5, "lease_lost", "the lease 0.0 of T-2 has ended"),
    refused(f"renew T-2 --token 1.2 {AGENT}", 5, "token_ahead", "ahead of the board's"),
    refused(
        f"renew T-2 --token {'9' * 18}.{'9' * 18} {AGENT}", 5, "token_ahead", "the board has lost"
    ),
    refused(f"complete T-1 --token 1.1 {AGENT}", 5, "token_ahead", "token 1.1 of T-1 is ahead"),
]  # fmt: skip

TITLE_EMPTY = "the title is empty"
NOT_TEXT = "holds characters that are not text"
TEXTS = [
    bad(f"add '' {PERSON}", TITLE_EMPTY),
    bad(f"add '   ' {PERSON}", TITLE_EMPTY),
    bad(f"add '\n\t\x1f' {PERSON}", TITLE_EMPTY),
    bad(f"add '\u3000\u00a0' {PERSON}", TITLE_EMPTY),
    bad(f"add {'t' * 201} {PERSON}", "the title has 201 characters; the most is 200"),
    bad(f"add {HUGE} {PERSON}", "the title has 100000 characters; the most is 200"),
    bad(f"add 'a\0b' {PERSON}", f"the title {NOT_TEXT}"),
    bad(f"add 'a\ud800b' {PERSON}", f"the title {NOT_TEXT}"),
    bad(f"edit T-1 --title '' {PERSON}", TITLE_EMPTY),
    bad(f"edit T-1 --title ' ' {PERSON}", TITLE_EMPTY),
    bad(f"edit T-1 --title {'t' * 201} {PERSON}", "the title has 201 characters"),
    bad(f"edit T-1 --title '\0' {PERSON}", f"the title {NOT_TEXT}"),
    bad(f"intake --channel mail --ref r --title {'t' * 201} {PERSON}", "the title has 201"),
    bad(f"intake --channel mail --ref r --title ' ' {PERSON}", TITLE_EMPTY),
    bad(f"intake --channel mail --ref r --title '\ud800' {PERSON}", f"the title {NOT_TEXT}"),
    bad(f"intake --channel mail --ref '' {PERSON}", "the ref is empty"),
    bad(f"intake --channel mail --ref ' ' {PERSON}", "the ref is empty"),
    bad(f"intake --channel mail --ref {'r' * 1001} {PERSON}", "the ref has 1001"),
    bad(f"intake --channel mail --ref 'a\0' {PERSON}", "the ref contains characters"),
    bad(f"intake --channel '' --ref r {PERSON}", "is empty"),
    bad(f"intake --channel 'a b' --ref r {PERSON}", "'a b' cannot be"),
    bad(f"intake --channel {'c' * 65} --ref r {PERSON}", "has 65 characters; the most is 64"),
    bad(f"note T-1 '' {PERSON}", "the note is empty"),
    bad(f"note T-1 ' \n' {PERSON}", "the note is empty"),
    bad(f"note T-1 {'n' * 20_001} {PERSON}", "the note has 20001 characters; the most is 20000"),
    bad(f"note T-1 'a\0' {PERSON}", f"the note {NOT_TEXT}"),
    bad(f"note T-1 'a\ud800' {PERSON}", f"the note {NOT_TEXT}"),
    *(
        bad(f"{verb} --note {'n' * 20_001} {AGENT}", "the note has 20001 characters")
        for verb in (
            "release T-2", "submit T-2", "complete T-2", "done T-2", "unblock T-5", "accept T-3",
        )
    ),
    *(
        bad(f"{verb} --reason {'r' * 2001} {PERSON}", "the reason has 2001 characters")
        for verb in (
            "claim T-1", "handoff T-2 --to ben", "takeover T-1", "takeover T-2 --force",
            "assign T-1 --to ben", "unassign T-9", "park T-1", "block T-1", "reject T-3", "fail T-2",
            "drop T-1", "doctor --set-clock",
        )
    ),
    bad(f"complete T-2 --note 'a\0' {AGENT}", f"the note {NOT_TEXT}"),
    bad(f"fail T-2 --reason 'a\0' {AGENT}", f"the reason {NOT_TEXT}"),
    bad(f"park T-1 --reason '\ud800' {PERSON}", f"the reason {NOT_TEXT}"),
    bad(f"block T-1 --reason r --on {'o' * 65} {PERSON}", "the cause has 65 characters"),
    bad(f"block T-1 --reason r --on '\0' {PERSON}", f"the cause {NOT_TEXT}"),
]  # fmt: skip

REASONS = [
    refused(f"fail T-2 {AGENT}", 2, "reason_missing", "fail T-2 needs a reason"),
    refused(f"fail T-2 --reason '' {AGENT}", 2, "reason_missing", "needs a reason"),
    refused(f"fail T-2 --reason ' ' {AGENT}", 2, "reason_missing", "needs a reason"),
    refused(f"block T-1 {PERSON}", 2, "reason_missing", "block T-1 needs a reason"),
    refused(f"block T-2 --reason '\n' {AGENT}", 2, "reason_missing", "needs a reason"),
    refused(f"block T-2 --on T-1 {AGENT}", 2, "reason_missing", "needs a reason"),
    refused(f"reject T-3 {PERSON}", 2, "reason_missing", "reject T-3 needs a reason"),
    refused(f"reject T-3 --reason ' ' {PERSON}", 2, "reason_missing", "needs a reason"),
    refused(f"takeover T-2 --force {PERSON}", 2, "reason_missing", "T-2 needs a reason"),
    refused(f"takeover T-1 --force --reason ' ' {PERSON}", 2, "reason_missing", "needs a reason"),
    refused(f"drop T-2 {PERSON}", 2, "reason_missing", "drop T-2 needs a reason"),
    refused("unassign T-9 --as ben", 2, "reason_missing", "unassign T-9 needs a reason"),
    refused(f"doctor --set-clock {PERSON}", 2, "reason_missing", "needs a reason"),
    refused(f"doctor --set-clock --reason ' ' {PERSON}", 2, "reason_missing", "needs a reason"),
    refused(f"takeover T-2 --force {AGENT}", 1, "people_only", "only a person may do this"),
    refused(f"doctor --set-clock {AGENT}", 1, "people_only", "only a person may do this"),
    refused(f"actor set codex --tier 2 {AGENT}", 1, "people_only", "only a person may do this"),
]

NUMBERS = [
    *(
        bad(f"{line}={value} {PERSON}", expected)
        for line, expected in {
            "add t --priority": "the priority is",
            "add t --tier": "the tier is",
            "add t --max-attempts": "the number of attempts is",
            "edit T-1 --priority": "the priority is",
            "edit T-1 --tier": "the tier is",
            "edit T-1 --max-attempts": "the number of attempts is",
            "intake --channel mail --ref r --priority": "the priority is",
            "actor set codex --tier": "the tier is",
            "list --limit": "the limit is",
            "log --limit": "the limit is",
            "log --refused --limit": "the limit is",
        }.items()
        for value in ("''", "abc", "-1", "1.5", "'\uff12'", "'1\0'", "100001", "9" * 5000)
    ),
    bad(f"add t --priority 5 {PERSON}", "the priority is '5'; it is a number from 0 to 4"),
    bad(f"add t --priority -1 {PERSON}", "the priority is '-1'"),
    bad(f"add t --priority P {PERSON}", "the priority is 'P'"),
    bad(f"add t --priority P5 {PERSON}", "the priority is 'P5'"),
    bad(f"add t --priority PP1 {PERSON}", "the priority is 'PP1'"),
    bad(f"add t --priority high {PERSON}", "the priority is 'high'"),
    bad(f"add t --priority 0x1 {PERSON}", "the priority is '0x1'"),
    bad(f"add t --priority 1_0 {PERSON}", "the priority is '1_0'"),
    bad(f"add t --tier 10 {PERSON}", "the tier is 10; it must be between 0 and 9"),
    bad(f"add t --max-attempts 0 {PERSON}", "is 0; it must be between 1 and 1000"),
    bad(f"add t --max-attempts 1001 {PERSON}", "is 1001; it must be between 1 and 1000"),
    bad("list --limit 0", "the limit is 0; it must be between 1 and 100000"),
    bad("list --limit ' 5'", "the limit is ' 5'"),
    bad("log --limit 0", "the limit is 0"),
]

CHOICES = [
    bad(f"add t --for everyone {PERSON}", "the audience (--for) is 'everyone'; it is one of"),
    bad(f"add t --for '' {PERSON}", "the audience (--for) is ''"),
    bad(f"add t --for Human {PERSON}", "the audience (--for) is 'Human'"),
    bad(f"add t --for {HUGE} {PERSON}", "the audience (--for) is 'xxx"),
    bad(f"edit T-1 --for robots {PERSON}", "the audience (--for) is 'robots'"),
    bad(f"intake --channel mail --ref r --for '\0' {PERSON}", "the audience (--for) is"),
    bad(f"add t --allow fly {PERSON}", "a constraint is 'fly'; it is one of edit, commit"),
    bad(f"add t --allow edit --allow edit,push {PERSON}", "a constraint is 'edit,push'"),
    bad(f"edit T-1 --allow EDIT {PERSON}", "a constraint is 'EDIT'"),
    bad(f"add t --needs 'a b' {PERSON}", "'a b' cannot be a capability"),
    bad(f"add t --needs 'a\0' {PERSON}", "cannot be a capability"),
    bad(f"add t --needs {'c' * 65} {PERSON}", "a capability has 65 characters"),
    bad(
        f"add t {' '.join(f'--needs c{number}' for number in range(33))} {PERSON}",
        "33 capabilities are given; the most is 32",
    ),
    bad("list --state closed", "'closed' is not a state; the states are open, in_progress"),
    bad("list --state ''", "'' is not a state"),
    bad("list --state OPEN", "'OPEN' is not a state"),
    bad("list --state open,blocked", "'open,blocked' is not a state"),
    bad("list --state open --state nope", "'nope' is not a state"),
    bad("list --state '\x1b]0;x\x07'", "is not a state"),
    bad(f"list --state {HUGE}", "is not a state"),
    bad("actor set codex --kind robot --as ana", "the kind is 'robot'; it is one of human"),
    bad("actor set codex --kind '' --as ana", "the kind is ''"),
    bad("actor set codex --capability 'a b' --as ana", "'a b' cannot be a capability"),
    bad("actor set codex --capability '\ud800' --as ana", "cannot be a capability"),
    *(
        bad(f"actor set codex --zone '{zone}' --as ana", "is not a time zone that is known here; one looks like")
        for zone in (
            "", " ", "Mars/Olympus", "Europe", "europe/berlin", "UTC+2", "../UTC", "/etc/localtime",
            "../../../etc/passwd", "Europe/Berlin\n", "UTC\0", "\ud800", ".", "zone.tab", HUGE,
        )
    ),
]  # fmt: skip

BAD_NAMES = {
    "": "is empty", " ": "is empty", "\n": "is empty", "agent": "is a placeholder",
    "AGENT": "is a placeholder", "user": "is a placeholder", "me": "is a placeholder",
    "<name>": "is a placeholder", "{agent}": "is a placeholder", "$USER": "is a placeholder",
    "%USERNAME%": "is a placeholder", "your-name": "is a placeholder", "auto": "is a placeholder", "Auto": "is a placeholder",
    "unknown": "is a placeholder", "none": "is a placeholder", "null": "is a placeholder",
    "a b": "cannot be", "-x": "cannot be", ".x": "cannot be", "@x": "cannot be", "a\tb": "cannot be",
    "a\0b": "cannot be", "a\x1b[31m": "cannot be", "a\u202eb": "cannot be", "a\ud800": "cannot be",
    "a;b": "cannot be", "a,b": "cannot be", "a'\"'\"'b": "cannot be", "\u2603": "cannot be",
    "$DIBS_AGENT": "cannot be", HUGE: "has 100000 characters",
}  # fmt: skip
NAMES = [
    *(
        bad(line.replace("=NAME", f"='{name}'"), expected)
        for line in (
            "claim T-1 --agent=NAME --session s1",
            "claim T-1 --as=NAME",
            "claim T-1 --agent codex --session=NAME",
        )
        for name, expected in BAD_NAMES.items()
    ),
    *(
        bad(line.replace("=NAME", f"='{name}'"), expected)
        for line in (
            "claim T-1 --as ana --session=NAME",
            "assign T-1 --to=NAME --as ana",
            f"handoff T-2 --to=NAME {AGENT}",
            "actor set codex --rename=NAME --as ana",
            "actor set codex --alias=NAME --as ana",
            f"note T-1 hi --request-id=NAME {AGENT}",
            "log --actor=NAME",
            "list --mine --as=NAME",
            "renew --as=NAME",
        )
        for name, expected in BAD_NAMES.items()
        if name in ("", "agent", "<name>", "a b", "a\0b", "a\ud800", HUGE)
    ),
    bad("actor set '' --tier 1 --as ana", "a name is empty"),
    bad("actor set '<name>' --tier 1 --as ana", "is a placeholder"),
    bad("actor set 'a b' --tier 1 --as ana", "cannot be a name"),
    bad(f"actor set {'n' * 65} --tier 1 --as ana", "a name has 65 characters; the most is 64"),
    bad(f"claim T-1 --agent {'n' * 65} --session s1", "a name has 65 characters"),
    bad(f"claim T-1 --agent codex --session {'s' * 129}", "a session has 129 characters"),
    bad(f"note T-1 hi --request-id {'r' * 129} {PERSON}", "a request id has 129 characters"),
    *(
        bad(f"claim T-1 --agent codex --session {session}", "cannot be a session")
        for session in ("s1/", "s1//a2", "/s1", ":s1")
    ),
    bad("claim T-1 --agent codex --as ana", "use either --agent or --as, not both"),
    bad("renew --agent codex --as ana", "use either --agent or --as"),
    bad("list --mine --agent codex --as ana", "use either --agent or --as"),
    bad(f"actor set codex --tier 2 --request-id '' {PERSON}", "a request id is empty"),
    bad(f"doctor --set-clock --reason r --request-id '' {PERSON}", "a request id is empty"),
    refused(
        f"note T-1 twice --request-id r1 {PERSON}", 1, "request_reused", "was used for another"
    ),
    *(
        refused(line, 2, "no_identity", "no identity given")
        for line in (
            "claim T-1", "add t", "renew", "list --mine", "note T-1 hi", "actor set codex --tier 2",
            "claim T-1 --session s1", "doctor --set-clock --reason r", "accept T-3",
        )
    ),
    *(
        refused(f"{line} --agent codex", 2, "no_session", "no session given for codex")
        for line in ("claim T-1", "renew", "list --mine", "add t", "complete T-2")
    ),
    *(
        refused(f"{line} --as codex", 2, "wrong_kind_of_name", "codex is registered as an agent")
        for line in (
            "claim T-1", "add t", "note T-1 hi", "accept T-3", "renew", "list --mine",
            "actor set ben --tier 2", "doctor --set-clock --reason r", "claim T-1 --session s1",
        )
    ),
    *(
        refused(
            f"{line} --agent ana --session s1", 2, "wrong_kind_of_name", "registered as a person"
        )
        for line in ("claim T-1", "add t", "renew T-2", "renew", "list --mine", "actor set ben")
    ),
    refused("claim T-1 --agent ANA --session s1", 2, "wrong_kind_of_name", "a person"),
    refused("actor set codex --rename ana --as ana", 2, "name_taken", "is a name of ana"),
    refused("actor set codex --rename ANA --as ana", 2, "name_taken", "is a name of ana"),
    refused("actor set codex --alias ben --as ana", 2, "name_taken", "ben is a name of ben"),
    refused(
        "actor set brandnew --kind agent --alias ben --as ana", 2, "name_taken", "ben is a name of ben"
    ),
    refused("actor set brandnew --tier 2 --as ana", 2, "unknown_actor", "nobody named brandnew"),
    refused("assign T-1 --to stranger --as ana", 2, "unknown_actor", "nobody named stranger"),
    refused(f"handoff T-2 --to stranger {AGENT}", 2, "unknown_actor", "nobody named stranger"),
    refused("log --actor stranger", 2, "unknown_actor", "nobody named stranger"),
]  # fmt: skip

OUTSIDE = "leads out of the repository"
NOT_PLAIN = "is not a plain path or glob"
BAD_SCOPES = {
    "": "a scope is empty", " ": "a scope is empty", "..": OUTSIDE, "../x": OUTSIDE,
    "a/../b": OUTSIDE, "a/..": OUTSIDE, "/": OUTSIDE, "/etc": OUTSIDE, "//host/x": OUTSIDE,
    "~": OUTSIDE, "~x": OUTSIDE, "~/x": OUTSIDE, "a\\b": OUTSIDE, "C:/x": OUTSIDE,
    "file://x": OUTSIDE, "@": NOT_PLAIN, "a//b": NOT_PLAIN, "./a": NOT_PLAIN, ".": NOT_PLAIN, "a/./b": NOT_PLAIN,
    "a\nb": "holds control characters", "a\x1b[31m": "holds control characters",
    "a\x7f": "holds control characters", "a\0b": NOT_TEXT, "a\ud800": NOT_TEXT,
    "**/" * 17 + "a": "has more than 16 times **", "s" * 257: "a scope has 257 characters; the most is 256", HUGE: "a scope has 100000",
}  # fmt: skip
SCOPES = [
    *(bad(f"add t --scope='{scope}' {PERSON}", expected) for scope, expected in BAD_SCOPES.items()),
    *(
        bad(f"{line}='{scope}' {PERSON}", BAD_SCOPES[scope])
        for line in ("scope T-1 --add", "intake --channel mail --ref r --scope")
        for scope in ("", "..", "/etc", "a\nb", "a\0b", "s" * 257)
    ),
    bad(
        f"add t {' '.join(f'--scope p{number}' for number in range(65))} {PERSON}",
        "65 scopes are given; the most is 64",
    ),
    bad(f"scope T-1 --add src --add ../x {PERSON}", OUTSIDE),
    bad(f"scope T-1 --remove 'a\ud800' {PERSON}", "not text"),
]

KEYS_OF_ONES_OWN = [
    *(
        bad(f"add t --key '{key}' {PERSON}", NOT_A_KEY)
        for key in ("", " ", "../x", "42", "a b", "T-\uff11", "T-1\0", "K" * 65, HUGE)
    ),
    refused(f"add t --key T-1 {PERSON}", 1, "key_taken", "the key T-1 is taken"),
    refused(f"add t --key T-7 {PERSON}", 1, "key_taken", "keys are never reused"),
]

WRONG_KIND_OR_STATE = [
    refused(f"claim T-2 {PERSON}", 4, "held", "T-2 is held by codex (session s1)"),
    refused("claim T-2 --agent codex --session s2", 4, "held", "T-2 is held by codex"),
    refused(f"claim T-4 {AGENT}", 1, "final", "T-4 is complete; that is final"),
    refused(f"claim T-7 {AGENT}", 1, "final", "T-7 is dropped; that is final"),
    refused(f"claim T-5 {AGENT}", 1, "wrong_state", "T-5 is blocked: claim is not possible"),
    refused(f"claim T-10 {AGENT}", 3, "wrong_kind", "T-10 is for people"),
    refused(f"claim T-11 {AGENT}", 3, "tier_too_low", "T-11 needs tier 9"),
    refused(f"claim T-12 {AGENT}", 3, "capability_missing", "T-12 needs rust"),
    refused(f"claim T-8 {AGENT}", 3, "parked", "T-8 was parked by ana"),
    refused(f"assign T-10 --to codex {PERSON}", 3, "wrong_kind", "T-10 is for people"),
    refused(f"complete T-13 {AGENT}", 3, "not_allowed", "allow edit, not complete"),
    refused(f"complete T-14 {AGENT}", 5, "lease_lost", "your lease of T-14 has ended"),
    refused(f"renew T-14 {AGENT}", 5, "lease_lost", "ana holds it now"),
    refused(f"renew T-1 {PERSON}", 1, "not_held", "nobody holds T-1"),
    refused(f"complete T-9 {PERSON}", 1, "not_bound", "no session has taken it up"),
    refused(f"unassign T-2 {PERSON}", 1, "bound", "has already taken up T-2"),
    refused(f"unassign T-1 {PERSON}", 1, "not_assigned", "T-1 is assigned to nobody"),
    refused(f"unpark T-8 {AGENT}", 1, "not_yours_to_unpark", "T-8 was parked by ana"),
    refused(f"accept T-3 {AGENT}", 1, "own_review", "somebody else must review it"),
    refused(f"accept T-1 {PERSON}", 1, "wrong_state", "accept is not possible"),
    refused(f"unblock T-1 {PERSON}", 1, "wrong_state", "unblock is not possible"),
    refused("stop T-15 --as ben", 1, "wrong_state", "stop is not possible"),
    refused("stop T-2 --agent codex --session s1/a2", 1, "parent_only", "s1/a2 is a subagent"),
    refused("edit T-2 --title new --agent claude --session s0", 4, "held", "T-2 is held by"),
    refused("scope T-2 --add src --agent claude --session s0", 4, "held", "T-2 is held by"),
    refused(f"start T-2 {PERSON}", 4, "held", "T-2 is held by"),
    refused(f"takeover T-2 {PERSON}", 4, "held", "T-2 is held by"),
    refused(f"release T-2 {PERSON}", 4, "held", "T-2 is held by"),
    refused(f"park T-4 {PERSON}", 1, "final", "that is final"),
]

IN_A_HARNESS = "cannot act here: CLAUDECODE says"
ENVIRONMENTS = [
    *(
        bad(line, "DIBS_BOARD is 'here/dibs'; it is an absolute path", DIBS_BOARD="here/dibs")
        for line in ("list", "init", "config", f"claim T-1 {AGENT}")
    ),
    bad("list", "it is an absolute path", DIBS_BOARD="~/dibs"),
    bad("list", "it is an absolute path", DIBS_BOARD=HUGE_WORD),
    *(
        bad(line, "one looks like postgresql://host/database#board", DIBS_URL="mysql://ana:geheim@db/x")
        for line in ("list", "init", "config", f"claim T-1 {AGENT}")
    ),
    bad("list", "is not a board name", DIBS_URL="postgresql://db/x#a b"),
    bad("list", "its port is not a number", DIBS_URL="postgresql://db:port/x"),
    bad("claim T-1", "a name is empty", DIBS_AGENT="", DIBS_SESSION="s1"),
    bad("claim T-1", "is a placeholder", DIBS_AGENT="<name>", DIBS_SESSION="s1"),
    bad("claim T-1", "cannot be a name", DIBS_AGENT="a b", DIBS_SESSION="s1"),
    bad("claim T-1", "cannot be a name", DIBS_AGENT="\udcff", DIBS_SESSION="s1"),
    bad("claim T-1", "a name has 100000", DIBS_AGENT=HUGE_WORD, DIBS_SESSION="s1"),
    bad("claim T-1", "a session is empty", DIBS_AGENT="codex", DIBS_SESSION=""),
    bad("claim T-1", "is a placeholder", DIBS_AGENT="codex", DIBS_SESSION="default"),
    bad("claim T-1", "cannot be a session", DIBS_AGENT="codex", DIBS_SESSION="a b"),
    bad("claim T-1", "a session has 129", DIBS_AGENT="codex", DIBS_SESSION="s" * 129),
    bad("claim T-1", "cannot be a session", DIBS_AGENT="codex", CLAUDE_CODE_SESSION_ID="a b"),
    refused("claim T-1", 2, "no_session", "no session given for codex", DIBS_AGENT="codex"),
    refused("claim T-1", 2, "no_identity", "no identity given", DIBS_SESSION="s1"),
    refused("claim T-1 --as ana", 1, "in_harness", f"ana {IN_A_HARNESS}", CLAUDECODE="1"),
    refused("renew --as ana", 1, "in_harness", f"ana {IN_A_HARNESS}", CLAUDECODE="1"),
    refused("claim T-1 --as ana", 1, "in_harness", "GEMINI_CLI says", GEMINI_CLI="1"),
    refused(
        f"takeover T-2 --force --reason r {AGENT}", 1, "people_only", "inside a harness",
        CLAUDECODE="1",
    ),
]  # fmt: skip

SET_UP = [
    bad("setup emacs", "'emacs' cannot be set up; there are"),
    bad("setup claude --check --remove", "one at a time"),
    bad("setup claude --user --project", "--user and --project: one at a time"),
    bad("setup --remove", "dibs uninstall removes everything"),
    bad("hook", "arguments are required: NAME"),
    bad("statusline emacs", "'emacs' is not a known harness"),
    refused("uninstall", 2, "no_identity", "no identity given"),
    refused(f"uninstall {AGENT}", 1, "people_only", "only a person may delete a board"),
    refused(f"uninstall --yes {AGENT}", 1, "people_only", "only a person may delete a board"),
    refused("uninstall --as ana", 2, "unconfirmed", "use --yes, or --keep-board"),
    refused("uninstall --yes --as ana", 1, "in_harness", "CLAUDECODE says", CLAUDECODE="1"),
]

MANY_TASKS = [
    bad(f"run {AGENT} -- true", "use either KEY or --next"),
    bad(f"run T-1 --next {AGENT} -- true", "use either KEY or --next"),
    bad(f"run T-1 --wait 5m {AGENT} -- true", "--wait and --most require --next"),
    bad(f"depend T-1 {PERSON}", "add --on KEY or --not-on KEY"),
    bad(f"depend T-1 --on ../x {PERSON}", NOT_A_KEY),
    refused(f"depend T-1 --on T-999 {PERSON}", 2, "unknown_task", "there is no task T-999"),
    refused(f"depend T-1 --on t-1 {PERSON}", 1, "cycle", "T-1 waits for T-1"),
    refused(f"add title --after T-999 {PERSON}", 2, "unknown_task", "there is no task T-999"),
    bad(f"add title --not-before soon {PERSON}", "--not-before is 'soon'"),
    bad(f"reset {PERSON}", "arguments are required: KEY"),
    bad(f"reset T-1 --mine --park {PERSON}", "--mine and --park do not combine"),
    bad(f"reset T-1 --only --downstream {PERSON}", "--only does not combine with --downstream"),
    refused(f"reset T-1 T-999 {PERSON}", 2, "unknown_task", "there is no task T-999"),
    refused(f"reset T-1 --assign nobody-here {PERSON}", 2, "unknown_actor", "nobody-here"),
    bad(f"next --most 0 {AGENT}", "the most is 0"),
    bad(f"next --wait soon {AGENT}", "the wait is 'soon'"),
    bad(f"sweep --grace soon {PERSON}", "the grace is 'soon'"),
    bad(f"sweep --limit 0 {PERSON}", "the limit is 0"),
    bad("list --ready --held", "--ready does not combine"),
]

WHEN = "--from '2026-01-05 09:00' --to '2026-01-05 10:00'"
STINTS = [
    bad(f"add title --billable --not-billable {PERSON}", "--billable does not combine with --not-billable"),
    bad(f"edit T-1 --charge-code {HUGE} {PERSON}", "the charge code has 100000 characters"),
    refused(f"add title --charge-code X-1 {PERSON}", 2, "bad_charge_code", "X-1 is not a charge code of this board"),
    refused(f"edit T-1 --charge-code X-1 {PERSON}", 2, "bad_charge_code", "it has none"),
    refused(
        f"intake --channel mail --ref r-9 --title t --charge-code X-1 {PERSON}", 2, "bad_charge_code", "it has none",
    ),
    refused("timesheet --charge-code X-1", 2, "bad_charge_code", "X-1 is not a charge code of this board: it has none"),
    bad(f"timesheet --charge-code {HUGE}", "the charge code has 100000 characters"),
    bad("timesheet --billable --not-billable", "--billable does not combine with --not-billable"),
    bad("stint", "arguments are required: ACTION"),
    bad("stint total", "use list, add, amend or usage"),
    bad("stint list T-1", "stint list takes no KEY"),
    bad(f"stint add {WHEN} --reason r {PERSON}", NOT_A_KEY),
    bad(f"stint add T-1 --from 09:00 --reason r {PERSON}", "stint add needs --from and --to"),
    bad(f"stint add T-1 --from morning --to 10:00 --reason r {PERSON}", "--from is 'morning'"),
    bad(f"stint add T-1 --from 2026-01-05 --to 10:00 --reason r {PERSON}", "--from is '2026-01-05'"),
    bad(f"stint add T-1 --from 25:00 --to 26:00 --reason r {PERSON}", "--from is '25:00'"),
    bad(f"stint add T-1 {WHEN} --tz Mars --reason r {PERSON}", "is not a time zone"),
    refused(f"stint add T-999 {WHEN} --reason r {PERSON}", 2, "unknown_task", "there is no task T-999"),
    refused(f"stint add T-1 {WHEN} --actor nobody-here --reason r {PERSON}", 2, "unknown_actor", "nobody-here"),
    refused(f"stint add T-1 {WHEN} {PERSON}", 2, "reason_missing", "stint add"),
    refused(f"stint add T-1 {WHEN} --reason r {PERSON}", 2, "bad_period", "before T-1 existed"),
    refused(f"stint add T-1 {WHEN} --backdated --reason r {PERSON}", 2, "unconfirmed", "write it with --yes"),
    refused(f"stint add T-1 {WHEN} --reason r --yes {AGENT}", 1, "people_only", "stint add"),
    refused(f"stint add T-1 --from 10:00 --to 9999-01-01T00:00Z --reason r {PERSON}", 2, "bad_period", "it would end"),
    refused(
        f"stint add T-1 --from '2025-10-26 02:30' --to 10:00 --tz Europe/Berlin --reason r {PERSON}", 2,
        "ambiguous_time", "comes twice in Europe/Berlin",
    ),
    bad(f"stint amend --reason r {PERSON}", "give the stint's number"),
    bad(f"stint amend T-1 --reason r {PERSON}", "the number of the stint"),
    refused(f"stint amend 99999 --from 1h --reason r {PERSON}", 2, "unknown_stint", "no stint has the number 99999"),
    refused(f"stint amend 1 --from 1h --reason r {PERSON}", 2, "unknown_stint", "no stint has the number 1"),
    bad(f"stint usage 1 --source actual {AGENT}", "add --tokens, --cost, or both"),
    bad(f"stint usage 1 --tokens 1 --source guessed {AGENT}", "the source is 'guessed'; it is one of actual, estimated, unknown"),
    bad(f"stint usage 1 --tokens -1 {AGENT}", "tokens is '-1'"),
    bad(f"stint usage 1 --cost 1e9999 {AGENT}", "write an amount like 1.25"),
    bad(f"stint usage 1 --cost 0.1234567 {AGENT}", "write an amount like 1.25"),
    bad(f"stint usage 1 --cost nan {AGENT}", "write an amount like 1.25"),
    bad(f"stint usage 1 --cost {HUGE} {AGENT}", "write an amount like 1.25"),
    refused(f"stint usage 1 --tokens 1 {AGENT}", 2, "unknown_stint", "no stint has the number 1"),
]  # fmt: skip

OF_STINTS = {
    "--from 09:00": "list add amend", "--to 10:00": "list add amend", "--tz UTC": "list add amend",
    "--week 2026-W47": "list", "--month 2026-11": "list", "--actor ana": "list add",
    "--reason r": "add amend", "--yes": "add amend",
    "--tokens 1": "usage", "--cost 1": "usage", "--source unknown": "usage",
}  # fmt: skip
PAYLOADS = {
    "said": "--channel c --ref r",
    "github": "--github",
    "email": "--email",
    "map": "--map ref=id",
    "from": "--from x",
}
OF_INTAKE = {
    "--channel c": "said map from", "--ref r": "said", "--url https://example.org": "said",
    "--title t": "said github email map", "--delivery d": "said github email map",
    "--request-id i": "said github email map",
    "--event issues": "github", "--signature s": "github", "--secret-file f": "github",
}  # fmt: skip


def strangers() -> list[Case]:
    """Each option with each action, or kind of payload, that does not take it."""
    stints = [
        bad(f"stint {action} {option} {PERSON}", f"{option.split()[0]} is for stint ")
        for option, homes in OF_STINTS.items()
        for action in ("list", "add", "amend", "usage")
        if action not in homes.split()
    ]
    return stints + [
        bad(f"intake {given} {option} {PERSON}", f"{option.split()[0]} is for ")
        for option, homes in OF_INTAKE.items()
        for kind, given in PAYLOADS.items()
        if kind not in homes.split()
    ]


STRANGERS = [
    *strangers(),
    bad(f"stint amend 1 --actor ana {PERSON}", "--actor is for stint list or stint add, not for stint amend"),
    bad(f"stint usage 1 --yes {PERSON}", "--yes is for stint add or stint amend, not for stint usage"),
    bad(f"intake --email --ref r {PERSON}", "--ref is for a single request, not for --email"),
    bad(f"intake --from x --url u {PERSON}", "--url is for a single request, not for --from"),
    bad(f"intake --from '' --channel c --ref r {PERSON}", "--ref is for a single request, not for --from"),
    bad(f"intake --github --from x {PERSON}", "--github and --from do not combine"),
]  # fmt: skip

TABLE = [
    *STINTS, *STRANGERS, *every_key(), *SET_UP, *MANY_TASKS, *MALFORMED_KEYS, *UNKNOWN_KEYS, *every_verb(), *VERBS, *TIMES, *INSTANTS, *TOKENS,
    *TEXTS, *REASONS, *NUMBERS, *CHOICES, *NAMES, *SCOPES, *KEYS_OF_ONES_OWN, *WRONG_KIND_OR_STATE,
    *ENVIRONMENTS,
]  # fmt: skip


def check_text(case: Case, ran: Ran) -> None:
    """Two lines for people: what is wrong, and what to do next."""
    assert (ran.code, ran.out) == (case.exit, ""), ran.err[:LONGEST_MESSAGE]
    assert "Traceback" not in ran.err
    assert re.fullmatch(r"dibs: [^\n]+\n  next: [^\n]+\n", ran.err), ran.err[:LONGEST_MESSAGE]
    assert ran.err.replace("\n", "").isprintable()
    message, advice = ran.err.splitlines()
    assert case.expected in message
    assert len(message) <= LONGEST_MESSAGE
    assert not DESTRUCTIVE.search(advice)


def check_json(case: Case, ran: Ran) -> None:
    """One object with stable keys, and the same code."""
    assert (ran.code, ran.out) == (case.exit, ""), ran.err[:LONGEST_MESSAGE]
    assert ran.err.count("\n") == 1
    reply = json.loads(ran.err)
    assert set(reply) == {"schema", "error"}
    assert reply["schema"] == 1
    error = reply["error"]
    assert set(error) == {"code", "message", "advice", "facts"}
    assert error["code"] == case.code
    assert case.expected in error["message"]
    assert not DESTRUCTIVE.search(error["advice"])


@pytest.mark.parametrize("case", TABLE, ids=[case.name for case in TABLE])
def test_bad_input_is_refused_clearly_and_changes_nothing(board, case):
    """The exit code, one message and its advice, the same in JSON; the board stays as it was."""
    before = board.snapshot()
    environment = dict(case.environment)
    check_text(case, board.run(*case.arguments, **environment))
    check_json(case, board.run("--json", *case.arguments, **environment))
    assert board.snapshot() == before


def test_the_table_covers_every_verb_there_is():
    """A new verb needs cases of its own, and every code's exit is the one in the table of exits."""
    assert {**WITH_KEY, **WITHOUT_KEY}.keys() == verbs.MODULES.keys()
    tried = {case.arguments[0] for case in TABLE if case.arguments}
    assert verbs.MODULES.keys() <= tried
    assert all(
        ERROR_MAP[case.code].exit == case.exit for case in TABLE if case.arguments[:1] != ("hook",)
    )
    assert len(TABLE) >= 150


# Without a board, or with one that cannot be used.


@pytest.mark.parametrize(
    "line",
    [
        line.replace("KEY", "T-1")
        for verb, line in {**WITH_KEY, **WITHOUT_KEY}.items()
        if verb
        not in ("init", "config", "demo", "sync", "import", "export", "shellenv", "guard", *SILENT)
    ]
    + [f"renew {AGENT}", "list --mine --as ana", "actor set codex --tier 2 --as ana"],
)
def test_without_a_board_every_verb_says_so_and_makes_none(tmp_path, line):
    """`no_board`, exit 2, and nothing appears in the folder."""
    here = Here(Repo(tmp_path))
    case = refused(line, 2, "no_board", f"there is no board in {tmp_path}")
    check_text(case, here.run(*case.arguments))
    check_json(case, here.run("--json", *case.arguments))
    assert list(tmp_path.iterdir()) == []


def test_a_stated_board_that_is_not_there_is_named(fresh, tmp_path):
    """`DIBS_BOARD` leads to no board: the message names the folder that was stated."""
    nowhere = tmp_path / "nowhere" / "dibs"
    case = refused("list", 2, "no_board", str(tmp_path / "nowhere"))
    check_text(case, fresh.run("list", DIBS_BOARD=str(nowhere)))
    assert not nowhere.parent.exists()


@pytest.mark.parametrize("line", ["list", f"claim T-1 {AGENT}"])
def test_a_stated_board_that_is_a_file_is_no_folder(fresh, tmp_path, line):
    """Storage that is no folder is exit 74, and is not blamed on the settings."""
    file = tmp_path / "file"
    file.write_text("mine")
    case = refused(line, 74, "unsafe_storage", "is not a folder")
    check_text(case, fresh.run(*case.arguments, DIBS_BOARD=str(file)))
    assert file.read_text() == "mine"


def test_a_stated_board_whose_name_is_too_long_is_not_blamed_on_the_settings(fresh):
    """No such folder can exist: storage failed, exit 74."""
    case = refused("list", 74, "storage_failed", "the board cannot be used")
    check_text(case, fresh.run("list", DIBS_BOARD="/" + "d" * 300))


def test_a_board_in_a_folder_whose_name_is_not_utf8_is_made_or_refused(fresh, tmp_path):
    """Never a bug, and if refused, nothing is left behind."""
    folder = tmp_path / "caf\udce9"
    ran = fresh.run("init", DIBS_BOARD=str(folder))
    assert ran.code in (0, 2, 74), ran.err
    assert folder.exists() == (ran.code == 0)


@pytest.mark.parametrize("line", ["status", "init", f"add t {PERSON}", f"claim T-1 {AGENT}"])
def test_a_board_that_was_emptied_is_damaged_and_not_made_anew(fresh, line):
    """A truncated file is no missing board: a new one would hide the loss."""
    fresh.ok(f"add work {PERSON}")
    os.truncate(fresh.repo.database, 0)
    for _ in range(2):
        ran = fresh.run(*split(line))
        assert (ran.code, ran.out) == (74, "")
        assert "the board's file is damaged" in ran.err
        assert "go back to a backup" in ran.err
    assert fresh.repo.database.stat().st_size == 0


def test_a_board_that_was_emptied_right_after_it_was_made_is_damaged(fresh):
    os.truncate(fresh.repo.database, 0)
    assert fresh.run("init").code == 74


def test_an_empty_file_that_an_interrupted_init_left_becomes_a_board(fresh):
    """The lock file says what was going on when the process was killed."""
    os.truncate(fresh.repo.database, 0)
    (fresh.repo.database.parent / "write.lock").write_text("123 init".ljust(100))
    check_text(refused("status", 2, "no_board", "there is no board"), fresh.run("status"))
    assert "was created" in fresh.ok("init").out
    fresh.ok("status")


@pytest.mark.parametrize(
    ("line", "code", "message", "advice"),
    [
        ("config ttl_agent 3h", 1, "only people may change settings", "ask a person to do it"),
        ("claim T-1", 2, "no identity given", "use --agent NAME, or export DIBS_AGENT=NAME"),
        ("claim T-1 --as ana", 1, "ana cannot act here", "act as an agent: --agent NAME"),
    ],
)
def test_inside_a_harness_no_advice_leads_to_the_next_refusal(fresh, line, code, message, advice):
    ran = fresh.run(*split(line), CLAUDECODE="1")
    first, second = ran.err.splitlines()
    assert (ran.code, message in first, advice in second) == (code, True, True), ran.err
    assert "--as NAME" not in second
    assert ("--agent" in second) == ("config" not in line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("config ttl_agent banana", "ttl_agent banana: the ttl is 'banana'; write it like 90s"),
        ("config agents.sh1.frob 2", "an agent has no setting 'frob'; it has command"),
        ("config frob 2", "there is no setting 'frob'"),
    ],
)
def test_a_setting_that_is_typed_wrongly_is_no_matter_of_a_file(fresh, line, expected):
    ran = fresh.run(*split(line), "--as", "ana")
    first, second = ran.err.splitlines()
    assert (ran.code, expected in first) == (2, True), ran.err
    assert "dibs config lists every setting" in second
    assert "file" not in second


@pytest.mark.parametrize("content", [b"", b"root:x:0:0\n", None])
def test_a_file_that_is_no_backup_is_not_called_a_damaged_board(fresh, tmp_path, content):
    file = tmp_path / "file"
    if content is None:
        apsw.Connection(str(file)).execute("CREATE TABLE other (x)")
    else:
        file.write_bytes(content)
    ran = fresh.run("board", "restore", str(file), "--reason", "lost", "--as", "ana")
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"dibs: {file} is not a dibs backup")


def test_a_folder_that_is_gone_is_no_board(fresh, tmp_path):
    """The current directory was removed under the caller: exit 2."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'rmdir "{gone}" && exec "{DIBS}" list'
    done = subprocess.run(
        ["sh", "-c", script], cwd=gone, env=clean_environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    check_text(refused("list", 2, "no_board", ""), Ran(done.returncode, done.stdout, done.stderr))


@pytest.mark.parametrize("pointer", ["gitdir: /nowhere/at/all", "", "\0", "rubbish"])
def test_a_worktree_that_points_nowhere_is_refused(tmp_path, pointer):
    """A broken `.git` file is named; no board is made beside it."""
    (tmp_path / ".git").write_text(pointer)
    here = Here(Repo(tmp_path))
    for line in ("list", "init"):
        ran = here.run(line)
        assert ran.code == 2, ran.err
        check_text(bad(line, f"{tmp_path}"), ran)
    assert [path.name for path in tmp_path.iterdir()] == [".git"]


def test_a_worktree_whose_name_is_not_utf8_can_be_worked_in(fresh):
    """A path is any bytes: who works in such a folder can claim all the same."""
    ran = Here(fresh.repo.worktree("caf\udce9")).run("claim", "T-1", "--as", "ana")
    assert ran.code == 0, ran.err


# The settings.

BAD_SETTINGS = [
    ("not toml", "bad_setting", "cannot be read"),
    ("identity", "bad_setting", "cannot be read"),
    ("identity = strict", "bad_setting", "cannot be read"),
    ("identity = 'normal'\nidentity = 'strict'", "bad_setting", "cannot be read"),
    (b"\xff\xfe", "bad_setting", "cannot be read"),
    (b"key_prefix = 'a\x00b'", "bad_setting", "cannot be read"),
    ("max_attempts = " + "[" * 20_000, "bad_setting", "cannot be read"),
    ("max_attempts = " + "9" * 5000, "bad_setting", "settings.toml"),
    ("max_attempts = " + "9" * 4000, "bad_setting", "max_attempts is"),
    ("max_attempts = 0x" + "f" * 5000, "bad_setting", "max_attempts is"),
    ("colour = 'red'", "unknown_setting", "there is no setting 'colour'"),
    ("Identity = 'strict'", "unknown_setting", "there is no setting 'Identity'"),
    ("'' = 1", "unknown_setting", "there is no setting ''"),
    ("a.b.c = 1", "unknown_setting", "there is no setting 'a'"),
    ("[dibs]\nidentity = 'strict'", "unknown_setting", "there is no setting 'dibs'"),
    ("'" + "k" * 5000 + "' = 1", "unknown_setting", "there is no setting 'kkk"),
    ('"\\u001b[31m" = 1', "unknown_setting", "there is no setting"),
    ("identity = 'lax'", "bad_setting", "identity is 'lax': it is normal or strict"),
    ("identity = ''", "bad_setting", "it is normal or strict"),
    ("identity = true", "bad_setting", "identity is True: it is a text in quotes"),
    ("identity = '" + HUGE_WORD + "'", "bad_setting", "identity is 'xxx"),
    ("ttl_agent = 7200", "bad_setting", "it is a text in quotes"),
    ("ttl_agent = '0s'", "bad_setting", TTL_RANGE),
    ("ttl_agent = '31d'", "bad_setting", TTL_RANGE),
    ("ttl_human = '1.5h'", "bad_setting", LIKE_90S),
    ("ttl_human = ''", "bad_setting", LIKE_90S),
    ("ttl_human = 2026-11-15", "bad_setting", "it is a text in quotes"),
    ("[ttl_human]\nx = 1", "bad_setting", "it is a text in quotes"),
    ("default_tier = 10", "bad_setting", "it must be between 0 and 9"),
    ("default_tier = -1", "bad_setting", "it is a number from 0 to 9"),
    ("default_tier = '1'", "bad_setting", "it is a number"),
    ("default_tier = 1.5", "bad_setting", "it is a number"),
    ("default_tier = nan", "bad_setting", "it is a number"),
    ("max_attempts = 0", "bad_setting", "it must be between 1 and 1000"),
    ("max_attempts = 1001", "bad_setting", "it must be between 1 and 1000"),
    ("max_attempts = true", "bad_setting", "it is a number"),
    ("max_attempts = [3]", "bad_setting", "it is a number"),
    ("self_review = 1", "bad_setting", "it is true or false"),
    ("self_review = 'yes'", "bad_setting", "it is true or false"),
    ("key_prefix = ''", "bad_setting", "key_prefix is ''"),
    ("key_prefix = '1'", "bad_setting", "key_prefix is '1'"),
    ("key_prefix = 'a b'", "bad_setting", "key_prefix is 'a b'"),
    ("key_prefix = '../x'", "bad_setting", "key_prefix is '../x'"),
    ("key_prefix = '" + "K" * 62 + "'", "bad_setting", "key_prefix is"),
    ("write_wait = '0s'", "bad_setting", "it must be between 1s and 1m"),
    ("write_wait = '2m'", "bad_setting", "it must be between 1s and 1m"),
    ("write_wait = 5", "bad_setting", "it is a text in quotes"),
    ("dispatch = 5", "bad_setting", "dispatch is a table: [dispatch]"),
    ("dispatch_tick = '5s'", "unknown_setting", "there is no setting 'dispatch_tick'"),
    ("[dispatch]\ntock = '5s'", "unknown_setting", "there is no setting 'dispatch.tock'"),
    (
        "[dispatch]\ntick = '0s'",
        "bad_setting",
        "dispatch.tick is '0s': it must be between 1s and 1h",
    ),
    ("[dispatch]\ntick = '2h'", "bad_setting", "it must be between 1s and 1h"),
    (
        "[dispatch]\nmax = 0",
        "bad_setting",
        "dispatch.max is 0: it is 0; it must be between 1 and 1000",
    ),
    ("[dispatch]\ngrace = '2h'", "bad_setting", "it must be between 0s and 1h"),
    ("[dispatch]\nlog_dir = 'logs'", "bad_setting", "it is an absolute path"),
    ("[notify]\ncommand = []", "bad_setting", "notify.command is []: it names no program"),
    ("[notify]\ncommand = 'a \"b'", "bad_setting", "no closing quotation"),
    ("agents = 5", "bad_setting", "agents is a table for each agent: [agents.NAME]"),
    ("[agents]\ncodex = 5", "bad_setting", "agents.codex is a table: [agents.codex]"),
    ("[agents.codex]", "bad_setting", "[agents.codex] has no command"),
    ("[agents.'a b']\ncommand = 'x'", "bad_setting", "[agents.a b]: 'a b' cannot be"),
    ("[agents.x1]\ncommand = 'x'\n[agents.X1]\ncommand = 'x'", "bad_setting", "x1 and X1 are one"),
    ("[agents.codex]\ncommand = 5", "bad_setting", "agents.codex.command is 5: it is a text"),
    ("[agents.codex]\ncommand = ''", "bad_setting", "it names no program"),
    ("[agents.codex]\ncommand = ['a', 1]", "bad_setting", "it is a text in quotes, or a list"),
    ('[agents.codex]\ncommand = ["a\\u0000"]', "bad_setting", "it names no program"),
    ("[agents.codex]\ncommand = 'x'\nmodel = 'y'", "unknown_setting", "'agents.codex.model'"),
    ("[agents.codex]\ncommand = 'x'\ntier = 10", "bad_setting", "agents.codex.tier is 10"),
    ("[agents.codex]\ncommand = 'x'\nmax = 0", "bad_setting", "it must be between 1 and 100"),
    ("[agents.codex]\ncommand = 'x'\ncapabilities = 'y'", "bad_setting", "it is a list of texts"),
    ("[agents.codex]\ncommand = 'x'\ncapabilities = ['a b']", "bad_setting", "'a b' cannot be"),
    ("[agents.codex]\ncommand = 'x'\nenv = {A = 1}", "bad_setting", "it is a table of texts"),
    (
        "[agents.codex]\ncommand = 'x'\nenv = {'A=' = ''}",
        "bad_setting",
        "'A=' cannot be a variable",
    ),
    ("[agents.codex]\ncommand = 'x'\nenv = {DIBS_URL = ''}", "bad_setting", "dibs itself sets"),
]


@pytest.mark.parametrize(
    ("text", "code", "expected"), BAD_SETTINGS, ids=lambda value: ascii(value[:30])
)
def test_settings_that_cannot_be_right_stop_every_command(playground, text, code, expected):
    """The file and the setting are named; nothing is done with half of the settings."""
    file = playground.repo.database.parent / "settings.toml"
    if any(word in str(text) for word in ("log_dir", "notify", "agents")):
        file = users_file(playground.repo)
    before = playground.snapshot()
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        for line in ("list", "claim T-1 --as ana", "init"):
            case = refused(line, 2, code, expected)
            check_text(case, playground.run(*case.arguments))
            check_json(case, playground.run(*case.arguments, "--json"))
    finally:
        file.unlink()
    assert playground.snapshot() == before


def users_file(repo):
    """Where what starts programs is read from."""
    uid = repo.json("init")["board"]
    repo.personal(uid, "")
    return repo.config / "boards" / f"{uid}.toml"


def test_settings_that_are_a_folder_cannot_be_read(fresh):
    """A folder in the place of the file is named."""
    (fresh.repo.database.parent / "settings.toml").mkdir()
    check_text(
        refused("list", 2, "bad_setting", "settings.toml cannot be read: it is not a file"),
        fresh.run("list"),
    )


@pytest.mark.parametrize("text", ["colour = 1", "max_attempts = 0", "not toml"])
def test_the_advice_to_look_at_the_settings_can_be_followed(fresh, text):
    """`dibs config` shows every setting there is, also while one of them is wrong."""
    (fresh.repo.database.parent / "settings.toml").write_text(text)
    assert "dibs config" in fresh.run("list").err
    ran = fresh.run("config")
    assert all(name in ran.out + ran.err for name in SETTINGS), ran.err


def test_strict_identity_asks_for_the_explicit_forms(fresh):
    """With `identity = strict` a harness's variable names no session."""
    (fresh.repo.database.parent / "settings.toml").write_text('identity = "strict"')
    ran = fresh.run("claim", "T-1", "--agent", "codex", CLAUDE_CODE_SESSION_ID="abc")
    check_text(refused("claim", 2, "no_session", "no session given for codex"), ran)


# Notes from standard input.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", "the note is empty"),
        (b" \n\n", "the note is empty"),
        (b"a\0b", NOT_TEXT),
        (b"n" * 20_001, "the note has more than 20000 characters"),
        (b"n" * 100_000, "the note has more than 20000 characters"),
        (b"caf\xe9", NOT_TEXT),
    ],
    ids=["empty", "blank", "nul", "long", "huge", "not-utf8"],
)
def test_a_note_from_standard_input_is_checked_like_any_other(board, given, expected):
    """Empty, too long, or not text: refused, and nothing is kept."""
    before = board.snapshot()
    stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    check_text(bad("note", expected), board.run("note", "T-1", "-", "--as", "ana", stdin=stdin))
    assert board.snapshot() == before


def test_a_note_from_a_closed_standard_input_is_empty(board):
    """Nothing can be read: the note is empty."""
    before = board.snapshot()
    check_text(bad("note", "the note is empty"), board.run("note", "T-1", "-", "--as", "ana"))
    assert board.snapshot() == before


# What looks bad and is accepted.

HOSTILE = "red\x1b[31m \x1b]0;owned\x07 bell\x07 line\nfeed\r back\x08 \u202eturned\u202c \x9b31m"


def test_control_characters_in_a_title_are_kept_and_shown_escaped(fresh):
    """Titles are untrusted text: accepted, shown escaped, and given exactly in JSON."""
    assert fresh.run("add", HOSTILE, "--as", "ana").code == 0
    for line in ("show T-2", "list", "status", "log T-2"):
        shown = fresh.ok(line).out
        assert shown.replace("\n", "").isprintable(), line
    for line in ("show T-2", "list"):
        assert r"red\x1b[31m" in fresh.ok(line).out
        assert r"line\nfeed" in fresh.ok(line).out
    assert json.loads(fresh.ok("show T-2 --json").out)["task"]["title"] == HOSTILE


def test_control_characters_in_notes_and_reasons_are_shown_escaped(fresh):
    """No text that somebody typed can move another's cursor, wherever it is shown."""
    for arguments in (
        ("note", "T-1", HOSTILE),
        ("claim", "T-1", "--reason", HOSTILE),
        ("block", "T-1", "--reason", HOSTILE),
        ("unblock", "T-1", "--note", HOSTILE),
        ("intake", "--channel", "mail", "--ref", "r", "--title", HOSTILE),
        ("edit", "T-1", "--title", HOSTILE),
        ("park", "T-1", "--reason", HOSTILE),
    ):
        assert fresh.run(*arguments, "--as", "ana").code == 0, arguments
        for line in ("show T-1", "status", "list --all", "log", "log T-1", "log --refused"):
            ran = fresh.ok(line)
            assert (ran.out + ran.err).replace("\n", "").isprintable(), (arguments, line)


@pytest.mark.parametrize(
    "line",
    [
        f"add {'t' * 200} {PERSON}",
        f"add t --key {'K' * 64} {PERSON}",
        f"add t --priority 0 --tier 0 --max-attempts 1 {PERSON}",
        f"add t --priority P4 --tier 9 --max-attempts 1000 {PERSON}",
        f"add t --scope {'s' * 256} {PERSON}",
        f"add t {' '.join(f'--scope p{number}' for number in range(64))} {PERSON}",
        f"add t --scope .github/workflows --scope src/ --scope @web {PERSON}",
        f"claim T-1 --ttl 1s {AGENT}",
        f"claim T-1 --ttl 30d {AGENT}",
        f"claim T-1 --agent {'n' * 64} --session {'s' * 128}",
        "claim T-1 --as \u00c5sa",
        f"note T-1 {'n' * 20_000} {PERSON}",
        f"park T-1 --reason {'r' * 2000} {PERSON}",
        f"note T-1 hi --request-id {'r' * 128} {PERSON}",
        f"intake --channel mail --ref {'r' * 1000} {PERSON}",
        "list --limit 100000",
        "list --json --free",
        "--as ana --json add t",
        "who T-1 --at 1970-01-02",
    ],
)
def test_the_last_value_in_range_is_accepted(fresh, line):
    """A limit is where the message says that it is."""
    fresh.ok(line)


# The real command.


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((b"add", b"caf\xe9", b"--as", b"ana"), NOT_TEXT),
        ((b"claim", b"T-\xff", b"--as", b"ana"), NOT_A_KEY),
        ((b"claim", b"T-1", b"--as", b"\xff"), "cannot be a name"),
        ((b"\xff\xfe",), "there is no verb"),
        ((b"list", b"\xff"), "unrecognized arguments"),
    ],
)
def test_bytes_that_are_not_text_are_refused_by_the_real_command(repo, arguments, expected):
    """What the shell passes need not be UTF-8."""
    done = subprocess.run(
        [DIBS.encode(), *arguments], cwd=repo.folder, env=clean_environment(), capture_output=True,
        check=False,
    )  # fmt: skip
    check_text(bad("x", expected), Ran(done.returncode, done.stdout.decode(), done.stderr.decode()))


def test_a_real_process_refuses_like_the_table(repo):
    """The exit code of the process is the exit code of the table."""
    for case in (
        bad("claim '' --as ana", NOT_A_KEY),
        refused("claim T-9 --as ana", 2, "unknown_task", "there is no task T-9"),
        bad("clam", "did you mean claim?"),
    ):
        check_text(case, repo.run(*case.arguments))


def test_a_closed_standard_input_is_an_empty_note_for_the_real_command(repo):
    """`dibs note KEY - <&-` reads nothing, and says so."""
    repo.add()
    done = subprocess.run(
        ["sh", "-c", f'exec "{DIBS}" note T-1 - --as ana <&-'], cwd=repo.folder,
        env=repo.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    check_text(bad("note", "the note is empty"), Ran(done.returncode, done.stdout, done.stderr))


@pytest.mark.parametrize("line", ["add x --as ana", "list --json", "list", "--version", "help"])
def test_a_closed_standard_output_loses_the_output_of_the_real_command(repo, line):
    """`dibs list >&-` is carried out, and says that nobody sees its output."""
    repo.add()
    done = subprocess.run(
        ["sh", "-c", f'exec "{DIBS}" {line} >&-'], cwd=repo.folder,
        env=repo.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 73, done.stderr
    assert "its output cannot be written: Bad file descriptor" in done.stderr


def test_a_closed_standard_output_loses_nothing_of_a_command_that_prints_nothing(repo):
    done = subprocess.run(
        ["sh", "-c", f'exec "{DIBS}" guard commit >&-'], cwd=repo.folder,
        env=repo.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("zone", "when"),
    [("America/New_York", "0001-01-01T00:00:00Z"), ("Asia/Tokyo", "9999-12-31T23:59:59Z")],
)
def test_the_first_and_the_last_instant_are_no_bug_in_any_zone(repo, zone, when):
    """An instant that has no local time is answered in UTC, or refused."""
    repo.add()
    ran = repo.run("who", "T-1", "--at", when, TZ=zone)
    assert ran.code in (0, 2), ran.err


def test_a_title_is_shown_where_the_terminal_cannot_write_its_letters(repo):
    """What cannot be encoded is shown escaped: old terminals and pipes list the board too."""
    repo.add("caf\u00e9 \u2603")
    ran = repo.run("list", PYTHONIOENCODING="ascii")
    assert ran.code == 0, ran.err
    assert "caf" in ran.out


def test_a_branch_whose_name_is_not_utf8_can_be_worked_on(repo):
    """Git allows it, so a claim from there is no bug."""
    repo.add()
    git(repo.folder, "checkout", "-q", "-b", "caf\udce9")
    assert repo.run("claim", "T-1", "--as", "ana").code == 0


# Any text at all.

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=80)
PLAUSIBLE = st.text(
    "T-0129.5smhd/\\*@_ \n\t\0\x1b~:'%$<>{}P\u0661\uff15\u202e\u00df\udcff", max_size=12
)
GARBAGE = st.one_of(ANYTHING, PLAUSIBLE, st.sampled_from(["T-1", "T-2", "1.1", "5m", "src/**"]))
TRIED = settings(max_examples=soak.examples(150), deadline=None)
EXPECTED = set(EXITS) - {70}


def takes_anything(here: Here, *arguments: str) -> None:
    """Some exit code of the contract, never a bug; and if it is refused, nothing changed.

    One refusal may keep something: a former holder's result (exit 5) is kept as a late note.
    """
    before = here.snapshot()
    ran = here.run(*arguments)
    assert ran.code in EXPECTED, (arguments, ran.err)
    assert "Traceback" not in ran.err
    if ran.code != 0:
        assert re.fullmatch(r"dibs: [^\n]+\n  next: [^\n]+\n", ran.err), (arguments, ran.err)
        assert ran.code == 5 or here.snapshot() == before, arguments


@TRIED
@given(verb=st.sampled_from(sorted(WITH_KEY)), key=GARBAGE)
def test_any_text_may_be_given_as_a_key(playground, verb, key):
    """Every verb answers whatever text is in place of its task."""
    takes_anything(playground, *(key if word == "KEY" else word for word in split(WITH_KEY[verb])))


@TRIED
@given(title=GARBAGE)
def test_any_text_may_be_given_as_a_title(playground, title):
    """It becomes a title, or is refused."""
    takes_anything(playground, "add", "--priority=1", "--as=ana", "--", title)


@TRIED
@given(option=st.sampled_from(["agent", "as", "session"]), name=GARBAGE)
def test_any_text_may_be_given_as_a_name_or_a_session(playground, option, name):
    """It names somebody, or is refused."""
    whole = ["--agent=codex"] if option == "session" else []
    whole += ["--session=s1"] if option == "agent" else []
    takes_anything(playground, "note", "T-1", "hello", f"--{option}={name}", *whole)


@TRIED
@given(ttl=st.one_of(GARBAGE, st.from_regex(r"\A-?[0-9]{1,12}[smhdw]\Z")))
def test_any_text_may_be_given_as_a_ttl(playground, ttl):
    """It is a duration in range, or is refused."""
    takes_anything(playground, "renew", "T-2", f"--ttl={ttl}", *split(AGENT))


@TRIED
@given(token=st.one_of(GARBAGE, st.from_regex(r"\A[0-9]{1,20}\.[0-9]{1,20}\Z")))
def test_any_text_may_be_given_as_a_token(playground, token):
    """It is the current token, or is refused."""
    takes_anything(playground, "renew", "T-2", f"--token={token}", *split(AGENT))


@TRIED
@given(option=st.sampled_from(["--add", "--remove"]), scope=GARBAGE)
def test_any_text_may_be_given_as_a_scope(playground, option, scope):
    """It is a path inside the repository, or is refused."""
    takes_anything(playground, "scope", "T-1", f"{option}={scope}", "--as=ana")


@TRIED
@given(option=st.sampled_from(["priority", "tier", "max-attempts"]), number=GARBAGE)
def test_any_text_may_be_given_as_a_number(playground, option, number):
    """It is a number in range, or is refused."""
    takes_anything(playground, "edit", "T-1", f"--{option}={number}", "--as=ana")


@TRIED
@given(
    when=st.one_of(
        GARBAGE,
        st.from_regex(r"\A[0-9]{1,9}[smhd]\Z"),
        st.datetimes().map(str),
        st.times().map(str),
    )
)
def test_any_text_may_be_given_as_an_instant(playground, when):
    """It is an instant, or is refused."""
    takes_anything(playground, "who", "T-1", f"--at={when}")


SHORT_VERBS = sorted(set(verbs.MODULES) - {"demo", "watch"})
"""They need no words; but the demo runs for half a minute, a watch until it is interrupted."""


@TRIED
@given(words=st.lists(st.one_of(GARBAGE, st.sampled_from(SHORT_VERBS)), max_size=5))
def test_any_words_may_be_given(playground, words):
    """No order of any words is a bug."""
    ran = playground.run(*words)
    assert ran.code in EXPECTED, (words, ran.err)
    assert "Traceback" not in ran.err
