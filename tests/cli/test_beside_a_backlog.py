"""Every command beside a backlog of item files: none of them is a bug there.

Files are read before a command and written after it, whatever the command is about. So each verb is
carried out once, with all its subcommands that change something, on a board that has items.
"""

from __future__ import annotations

from shlex import split

from dibs.cli import verbs
from kit.corpus import TASK
from kit.repositories import Ran, Repo

ITEMS = "_kano/backlog/products/demo/items/task/0000"
A, B, ANA, BEN = "--agent codex --session s1", "--agent claude --session s2", "--as ana", "--as ben"
NIGHT = "--from '2026-01-05 01:00' --to '2026-01-05 02:00' --tz UTC --yes --backdated"

STORY = f"""
    sync {ANA}
    init
    config
    setup git
    actor set ana --zone Europe/Berlin {ANA}
    actor set ana --zone Europe/Berlin {ANA}
    actor set ben --kind human {ANA}
    actor set claude --kind agent {ANA}
    actor list
    dispatch --pause --reason lunch {ANA}
    dispatch --pause --reason lunch {ANA}
    next {A} -> 75
    dispatch --resume {ANA}
    dispatch --resume {ANA}
    doctor --set-clock --reason test {ANA}
    doctor {ANA}
    add 'no file has this' --scope src {ANA}
    edit T-1 --priority 3 {ANA}
    intake --channel mail --ref r-1 --title asked {ANA}
    depend T-2 --on T-1 {ANA}
    why T-2
    scope I-2 --add lib {ANA}
    claim I-1 {A}
    start I-1 {A}
    stop I-1 {A}
    renew I-1 --ttl 3h {A}
    renew {A}
    note I-1 seen {A}
    note I-1 --redact 1 --reason none {ANA} -> 2
    show I-1
    list
    status
    log I-1
    who I-1
    watch I-1 --timeout 1s --since 1
    wait I-1 --for free --timeout 1s -> 75
    stint list
    prime {A}
    statusline {A}
    guard allow lib/x --reason urgent --to codex {ANA} -> 1
    guard commit {A}
    hook claude
    handoff I-1 --to claude --note yours {A}
    start I-1 {B}
    block I-1 --reason stuck --keep {B}
    unblock I-1 {B}
    release I-1 --note later {B}
    next {A}
    release I-1 {A}
    assign I-1 --to ana {ANA}
    unassign I-1 {ANA}
    park I-1 {ANA}
    unpark I-1 {ANA}
    takeover I-1 {A}
    submit I-1 {A}
    reject I-1 --reason thin {ANA}
    claim I-1 {A}
    submit I-1 {A}
    accept I-1 {ANA}
    claim I-2 {A}
    complete I-2 --note it {A}
    claim I-3 {A}
    fail I-3 --reason tried {A}
    retry I-3 {ANA}
    takeover I-3 --force --reason now {ANA}
    reset I-1 I-3 --yes --reason anew {ANA}
    sweep {ANA}
    run I-4 {A} -- true
    dispatch --once {ANA} -> 2
    drop I-5 --reason unwanted {ANA}
    stint add I-2 {NIGHT} --actor codex --reason forgotten {ANA}
    stint usage N --tokens 5 --source actual {ANA}
    stint amend N --to '2026-01-05 01:30' --tz UTC --reason less --yes {ANA}
    timesheet
    day codex
    approve codex --week 2026-W02 --tz UTC {ANA}
    reopen codex --week 2026-W02 --tz UTC --reason wrong {ANA}
    sync {ANA}
    shellenv
    export board.jsonl {ANA}
    import board.jsonl {ANA} -> 1
    board list
    board backup ../backup {ANA}
    setup git --remove
    uninstall --dry-run
    demo --help
"""
"""The line, and the exit it has, if that is not 0. I-1 is the first item, N the stint that was added."""

HEARD = '{"hook_event_name": "SessionStart", "session_id": "s9", "cwd": "."}'


def orders(*, on_server: bool = False) -> list[tuple[list[str], int]]:
    """The clock of a server is not ours to set."""
    found = []
    for line in STORY.strip().replace(" I-", " DEMO-TSK-000").splitlines():
        words, _, code = line.partition(" -> ")
        refused = on_server and "--set-clock" in words
        found.append((split(words), 1 if refused else int(code or 0)))
    return found


def items(repo: Repo) -> None:
    (repo.folder / ITEMS).mkdir(parents=True)
    for number in range(1, 6):
        id_ = f"DEMO-TSK-{number:04}"
        text = TASK.replace("KABSD-TSK-0141", id_).replace("85f4752b9a45", f"85f4752b{number:04}")
        (repo.folder / ITEMS / f"{id_}_work.md").write_text(text)


def run(repo: Repo, words: list[str]) -> Ran:
    if "N" in words:
        stints = repo.json("stint", "list", "--from", "2026-01-05", "--to", "2026-01-05")["stints"]
        words = [str(stints[-1]["number"]) if word == "N" else word for word in words]
    return repo.run(*words, fed=HEARD if words[0] == "hook" else "")


def test_no_command_is_a_bug_beside_a_backlog(repo):
    """Each ends as it should: 70 would say that it is not known whether anything was changed."""
    items(repo)
    wrong = [
        f"{' '.join(words)} -> {ran.code}, not {code}: {ran.out[-300:]}{ran.err[-300:]}"
        for words, code in orders(on_server=bool(repo.around))
        if (ran := run(repo, words)).code != code
    ]
    assert "\n".join(wrong) == ""
    repo.ok("log", "--verify")


def test_the_story_has_every_verb():
    assert {words[0] for words, _ in orders()} == verbs.MODULES.keys()
