"""Each file of the corpus, through a whole life: what is written is what is meant, and nothing else.

The oracle (`kit.item_files`) shares no code with dibs; what a row means for a file is said here anew.
"""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from datetime import datetime
from os.path import isdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs.domain import commands as c
from dibs.domain.refusals import Refused
from dibs.domain.values import iso
from kit import soak
from kit.backlogs import KANO, QUEUE, Yard
from kit.corpus import STORY, TASK, WRK, CorpusFile, broken, corpus
from kit.item_files import ABSENT, OWNED, RECORD, changes, cut, spans, values

SIZE = 20
"""Files of a group, which share a board."""

UID = b"85f4752b9a45"
MODES = (0o644, 0o600, 0o755)
MEANS = {
    "kano": {
        "new": "open", "proposed": "open", "planned": "open", "ready": "open", "review": "review",
        "inprogress": "in_progress", "done": "complete", "blocked": "blocked",
        "dropped": "dropped", "duplicate": "dropped",
    },
    "wrk": {
        "pending": "open", "working": "in_progress", "blocked": "blocked", "done": "complete",
        "archived": "complete",
    },
}  # fmt: skip
WORDS = {
    "kano": {
        "open": "Ready", "in_progress": "InProgress", "complete": "Done", "blocked": "Blocked",
    },
    "wrk": {
        "open": "pending", "in_progress": "working", "complete": "done", "blocked": "blocked",
    },
}  # fmt: skip
GATES = ("gate_not_met", "waits", "locked_in_file")
TELLS = {"started", "completed", "forced", "taken_over", "blocked", "unblocked", "reset"}
"""Events of which each is one line of a Worklog; a release is one, if work had begun."""


def own(number: int, file: CorpusFile) -> CorpusFile:
    """With a uid of its own: many files share a yard."""
    return file._replace(data=file.data.replace(UID, b"85f4752b%04d" % number))


def groups() -> list[list[CorpusFile]]:
    """Files of one group have different ids."""
    named = [own(n, f) for n, f in enumerate(corpus()) if "other_id" not in f.marks]
    return [
        *(named[start : start + SIZE] for start in range(0, len(named), SIZE)),
        [file for file in corpus() if "other_id" in file.marks],
    ]


@pytest.fixture
def quick():
    """A yard in memory, where there is such a place: what survives a power cut is not asked here."""
    with TemporaryDirectory(dir="/dev/shm" if isdir("/dev/shm") else None) as folder:
        yard = Yard(Path(folder))
        yield yard
        yard.close()


SAMPLE = [own(n, f) for n, f in enumerate(corpus()) if "other_id" not in f.marks][::12][:20]


class Life:
    """One item file: what is done to its task, and what that does to the file."""

    def __init__(self, yard: Yard, dialect: str, path: str, key: str) -> None:
        self.yard, self.dialect, self.path, self.key = yard, dialect, yard.root / path, key
        self.mode = self.path.stat().st_mode
        self.codex, self.ana = yard.agent("codex-9", "kx-1"), yard.person("ana")
        self.word = str(values(self.data).get(self.state_field) or "")
        """The state of the file before anybody began."""
        self.first = values(self.data)

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def state_field(self) -> str:
        return "state" if self.dialect == "kano" else "status"

    def do(self, who, command) -> None:
        """A step, and the file after it."""
        before, was = self.data, self.yard.task(self.key)
        outcome = who.do(command)
        assert all("its lock by" in warning for warning in outcome.warnings), outcome.warnings
        if not outcome.entries and self.yard.task(self.key).lease is None:
            assert self.data == before, "nothing happened"
            return
        written_steps = [e for e in outcome.entries if self.writes_step(e.verb, was.state)]
        wanted = self.wanted(before, reported=bool(written_steps))
        found = changes(before, self.data, self.dialect)
        now = values(self.data)
        assert {key: now.get(key, ABSENT) for key in wanted} == wanted
        old = values(before)
        assert found.keys == {key for key in wanted if old.get(key, ABSENT) != wanted[key]}
        if self.dialect == "kano":
            assert [step["seq"] for step in found.steps] == [str(e.seq) for e in written_steps]
            assert {step["agent"] for step in found.steps} <= {who.identity.name}
        assert self.path.stat().st_mode == self.mode
        assert list(self.path.parent.glob(".*")) == [], "nothing is left beside it"

    def refused(self, who, command) -> str:
        before = self.data
        code = who.refused(command)
        assert self.data == before
        return code

    @staticmethod
    def writes_step(verb: str, state: str) -> bool:
        return verb in TELLS or (verb == "released" and state == "in_progress")

    # What the file is to say.

    def wanted(self, before: bytes, *, reported: bool) -> dict[str, object]:
        old, task = values(before), self.yard.task(self.key)
        with self.yard.store.read() as tx:
            uid = tx.board.uid
            holder = tx.actor(task.lease.actor) if task.lease else None
        wanted = (
            self.of_kano(old, task, holder) if self.dialect == "kano" else self.of_wrk(old, task)
        )
        if self.state_field in old or self.dialect == "wrk":
            wanted[self.state_field] = self.state(old, task.state)
        if holder is not None:
            session = task.lease.session or "*"
            ttl = {"kx-1": "2h", "*": "7d"}[session]
            wanted["dibs"] = f"{uid} {task.token} {holder.name} {session} {ttl}"
        elif task.token.number:
            wanted["dibs"] = f"{uid} {task.token}"
        differs = {key for key in wanted if old.get(key, ABSENT) != wanted[key]}
        runs_on = {"lease_expires_at"} if self.dialect == "kano" else {"locked_at"}
        if differs == runs_on:
            [key] = runs_on
            return wanted if self.is_half_over(old, task) else wanted | {key: old[key]}
        if (differs or reported) and self.dialect == "kano" and "updated" in old:
            wanted["updated"] = iso(self.yard.now())[:10]
        return wanted

    def is_half_over(self, old, task) -> bool:
        """Of the time that the file states, less than half is left."""
        ttl = task.lease.ttl // 1_000_000
        if self.dialect == "kano":
            end = datetime.fromisoformat(old["lease_expires_at"]).timestamp()
        else:
            end = datetime.fromisoformat(old["locked_at"]).timestamp() + ttl
        return 2 * (end - self.yard.now() / 1_000_000) < ttl

    def state(self, old: dict[str, object], state: str) -> object:
        """Its own word, where that means the state; back in the open, the word that it had."""
        word = str(old.get(self.state_field) or "")
        if MEANS[self.dialect].get(word.casefold()) == state:
            return word
        if state == "open" and MEANS[self.dialect].get(self.word.casefold()) == "open":
            return self.word
        return WORDS[self.dialect][state]

    def of_kano(self, old, task, holder) -> dict[str, object]:
        if not task.token.number:
            return {}
        wanted = {key: None if key in self.first else ABSENT for key in (*RECORD, "owner")}
        for key, allowed in (("scope", task.scope), ("constraints", task.terms.constraints)):
            if allowed or key in old:
                wanted[key] = list(allowed) or old.get(key)
        before = self.first.get("owner")
        wanted["dibs_owner"] = ABSENT
        if holder is None and task.state == "open":
            return wanted | ({"owner": before} if before else {})
        owner = holder.name if holder else old.get("owner")
        if before and before != owner:
            wanted["dibs_owner"] = before
        if holder is None:
            return wanted | ({"owner": owner} if owner else {})
        stated = {"handoff_reason": task.lease.reason} if task.lease.reason else {}
        return (
            wanted
            | stated
            | {
                "owner": owner,
                "assignee_agent": holder.name,
                "assignee_tier": 1,
                "assigned_at": iso(task.lease.acquired // 1_000_000 * 1_000_000),
                "lease_ttl": "2h" if holder.kind == "agent" else "7d",
                "lease_expires_at": iso(task.lease.expires // 1_000_000 * 1_000_000),
            }
        )

    def of_wrk(self, old, task) -> dict[str, object]:
        if task.lease is not None:
            at = iso(task.lease.renewed // 1_000_000 * 1_000_000)
            return {"locked_by": task.lease.session or "ana", "locked_at": at}
        if self.is_locked(old) or not (task.token.number or "locked_by" in old):
            return {}
        return {"locked_by": "", "locked_at": ""}

    def is_locked(self, old) -> bool:
        """By the file alone: somebody's lock that is not over, or that makes no sense."""
        by, at = old.get("locked_by"), str(old.get("locked_at") or "")
        if not by or str(by) in str(old.get("dibs")).split():
            return False
        two_hours = iso(self.yard.now() - 7_200_000_000)
        return not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", at) or at >= two_hours

    # From the first word to the last.

    def live(self) -> None:
        """Claimed, started, completed; a person removes what blocks that."""
        task = self.yard.task(self.key)
        if task.state == "blocked":
            assert self.refused(self.codex, c.Claim(self.key)) == "wrong_state"
            self.do(self.ana, c.Unblock(self.key))
        elif task.state != "open":
            assert self.refused(self.codex, c.Claim(self.key)) in ("final", "wrong_state")
            self.do(self.ana, c.Reset((self.key,), reason="once more"))
        if self.is_gated():
            assert self.refused(self.codex, c.Claim(self.key)) in GATES
            self.do(self.ana, c.Force(self.key, reason="it burns"))
            self.do(self.ana, c.Complete(self.key))
        else:
            self.do(self.codex, c.Claim(self.key, reserve=True))
            self.do(self.codex, c.Start(self.key))
            self.do(self.codex, c.Complete(self.key))
        assert self.yard.task(self.key).state == "complete"

    def is_gated(self) -> bool:
        item = self.yard.task(self.key).item
        return bool(item.gate or item.locked)


def filled(yard: Yard, files: list[CorpusFile]):
    """The files in a yard, each with its mode, and synced: not one byte is different."""
    for number, file in enumerate(files):
        yard.put(file.name, file.data)
        (yard.root / file.name).chmod(MODES[number % len(MODES)])
    report = yard.sync()
    assert report.added == len(files), report.problems
    for file in files:
        assert (yard.root / file.name).read_bytes() == file.data
    return report


def id_in(file: CorpusFile) -> str:
    """The id that a file states."""
    return re.search(rb"^id: (\S+)", file.data, re.MULTILINE)[1].decode()


def live_all(yard: Yard, files: list[CorpusFile]) -> None:
    filled(yard, files)
    for file in files:
        Life(yard, file.dialect, file.name, id_in(file)).live()
    yard.sync()
    assert yard.faults() == ()


def test_the_corpus_is_large_and_holds_a_kano_story_and_task():
    files = corpus()
    assert len(files) >= 150
    assert len({file.name for file in files}) == len(files)
    assert {STORY.encode(), TASK.encode(), WRK.encode()} <= {file.data for file in files}


@pytest.mark.parametrize("number", range(len(groups())))
def test_claim_start_and_complete_change_exactly_the_lines_that_they_mean(quick, number):
    live_all(quick, groups()[number])


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_server_writes_the_same_lines(yard):
    live_all(yard, SAMPLE)


# Random edits, and verbs in random order.


OTHERS = (
    "x-a: 1",
    "'x b': it''s",
    '"x-c": "a # b: c"  # why',
    "x-d:\n  - a\n  # state: Done\n\n  - b",
    "x-e: |\n  state: Done\n  dibs: none\n\n  # owner: mallory",
    "x-f: {state: Done, locked_by: [s1]}",
    "x-g: [a,\n  'b, c',\n]",
    "x-h: >-\n  folded\n\n   text",
    "# state: Done",
    "# just a comment",
    "",
    "  # deeper",
    "übung: ä",
)
BODIES = (
    "---\nstate: Done\nlocked_by: s1\ndibs: x 1.1\n---\n",
    "```md\n# Worklog\n\n2026-01-10 01:18 [agent=codex] in code\n```\n",
    "## Worklog of others\n\nstate: Done\n",
    "<!-- # Worklog -->\n",
    "\n\n\n",
    "...\n---\n",
    "# Notes\n\n| owner: x |\n",
)
STYLES = ("{}", "'{}'", '"{}"', "{}  # said ana", "   {} ")
VERBS = {
    "claim": lambda key: c.Claim(key),
    "reserve": lambda key: c.Claim(key, reserve=True),
    "start": lambda key: c.Start(key),
    "complete": lambda key: c.Complete(key, note="done: see\n# Worklog\n---"),
    "release": lambda key: c.Release(key),
    "renew": lambda key: c.Renew(key),
    "block": lambda key: c.Block(key, reason="no key # yet: x"),
    "unblock": lambda key: c.Unblock(key),
    "force": lambda key: c.Force(key, reason="it 'burns': \"now\" # ü"),
}
NUMBERS = itertools.count(1001)


@st.composite
def edited(draw) -> tuple[str, bytes]:
    """A dialect, and a file of the corpus after some edits; its id and uid are its own."""
    file = draw(st.sampled_from([file for file in corpus() if not file.marks]))
    number = next(NUMBERS)
    data = file.data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    data = re.sub(rb"(?m)^(uid: .*-)\w{12}$", rb"\g<1>%012d" % number, data)
    prefix = "KABSD-TSK" if file.dialect == "kano" else "WRK"
    data = re.sub(rb"(?m)^id: \S+", f"id: {prefix}-{number}".encode(), data, count=1)
    opening, block, rest = cut(data)
    gone = draw(st.sets(st.sampled_from(["updated", "owner", "state", "status", "tags"])))
    kept = [chunk for chunk in chunked(block) if chunk[0].partition(":")[0] not in gone]
    chunks = draw(st.permutations(kept))
    for line in draw(st.lists(st.sampled_from(OTHERS), max_size=4, unique=True)):
        chunks.insert(draw(st.integers(0, len(chunks))), line.split("\n"))
    chunks = [restyled(draw, chunk, file.dialect) for chunk in chunks]
    closing, newline, body = rest.partition("\n")
    for piece in draw(st.lists(st.sampled_from(BODIES), max_size=2)):
        at = draw(st.integers(0, body.count("\n\n")))
        parts = body.split("\n\n")
        body = "\n\n".join([*parts[:at], piece, *parts[at:]])
    lines = [opening, *(line for chunk in chunks for line in chunk), closing + newline + body]
    return file.dialect, encoded(draw, "\n".join(lines))


def chunked(block: list[str]) -> list[list[str]]:
    """The keys with the text below each; the text before the first is dropped."""
    starts = [first for first, _ in spans(block).values()]
    return [block[a:b] for a, b in itertools.pairwise([*starts, len(block)])]


def restyled(draw, chunk: list[str], dialect: str) -> list[str]:
    """One of our keys may be written in another way."""
    match = re.fullmatch(r"(\w+): (\w+)", chunk[0])
    if match is None or len(chunk) > 1 or match[1] not in OWNED[dialect] - {"updated"}:
        return chunk
    return [f"{match[1]}: {draw(st.sampled_from(STYLES)).format(match[2])}"]


def encoded(draw, text: str) -> bytes:
    text = text.rstrip("\n") if draw(st.booleans()) else text
    newline = draw(st.sampled_from(["\n", "\r\n", None]))
    if newline is None:
        every = draw(st.integers(2, 5))
        lines = text.split("\n")
        ends = ["\r\n" if n % every == 0 else "\n" for n in range(len(lines) - 1)] + [""]
        text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    else:
        text = text.replace("\n", newline)
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.encode()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["codex", "codex", "ana"]),
        st.sampled_from(list(VERBS)),
        st.sampled_from([0, 7, 3700]),
    ),
    min_size=2,
    max_size=6,
)


def test_after_any_edit_any_verbs_change_exactly_the_lines_that_they_mean(quick):
    @settings(max_examples=soak.examples(120))
    @given(edited(), STEPS)
    def promise(file, steps):
        dialect, data = file
        key = re.search(rb"(?m)^id: ([\w-]+)", data)[1].decode()
        folder = f"{KANO}/task" if dialect == "kano" else f"{QUEUE}/pending"
        path = quick.put(f"{folder}/{key}.md", data)
        report = quick.sync()
        try:
            assert (quick.root / path).read_bytes() == data
            assert quick.task(key) is not None, report.problems
            life = Life(quick, dialect, path, key)
            for who, verb, seconds in steps:
                quick.advance(seconds)
                attempt(life, life.codex if who == "codex" else life.ana, VERBS[verb](key))
        finally:
            (quick.root / path).unlink()
            with suppress(Refused):
                quick.person("ana").do(c.Drop(key, reason="the next one"))

    promise()


def attempt(life: Life, who, command) -> None:
    """What is refused changes nothing."""
    before = life.data
    try:
        life.do(who, command)
    except Refused:
        assert life.data == before


# What is no item, and what has another name.


@pytest.mark.parametrize("dialect", ["wrk", "kano"])
def test_what_is_no_item_is_reported_cannot_be_claimed_and_stays_as_it_is(quick, dialect):
    quick.kano() if dialect == "kano" else quick.wrk()
    files = {}
    for file in broken():
        name, data = Path(file.name).name, file.data
        if dialect == "kano":
            files[f"{KANO}/task/{name}"] = data.replace(b"status", b"state")
        else:
            files[file.name] = data
    for path, data in files.items():
        quick.put(path, data)
    report = quick.sync()
    assert report.added == 1
    assert {problem.path for problem in report.problems} >= set(files)
    codex = quick.agent("codex", "kx-1")
    for key in ["WRK-1", *(Path(path).stem for path in files)]:
        assert codex.refused(c.Claim(key)) == "unknown_task"
    for path, data in files.items():
        assert (quick.root / path).read_bytes() == data


def test_each_id_that_is_not_the_name_of_its_file_is_reported(quick):
    for file in corpus():
        quick.put(file.name, file.data)
    quick.put(f"{QUEUE}/pending/WRK-15.md", WRK)
    quick.put(f"{QUEUE}/pending/WRK-1578.md", WRK)
    quick.put(f"{QUEUE}/pending/WRK-9-wrk-157.md", WRK)
    quick.put(f"{QUEUE}/pending/WRK-157-session-locking.md", WRK)
    quick.put(f"{KANO}/task/kabsd-tsk-0141_small-letters.md", TASK)
    problems = [problem for problem in quick.sync().problems if "its id is" in problem.what]
    other = {file.name for file in corpus() if "other_id" in file.marks}
    wrong = {f"{QUEUE}/pending/WRK-{name}.md" for name in ("15", "1578", "9-wrk-157")}
    assert {problem.path for problem in problems} == other | wrong


@pytest.mark.parametrize("at", ["600", "-7200", "yesterday"], ids=["lives", "future", "nonsense"])
def test_the_lock_of_another_tool_stays_until_somebody_begins_a_lease_against_it(quick, at):
    since = at if at == "yesterday" else iso(quick.now() - int(at) * 1_000_000)
    path = quick.wrk("WRK-1", locked_by='"s7"', locked_at=f'"{since}"')
    quick.sync()
    life = Life(quick, "wrk", path, "WRK-1")
    before = life.data
    life.do(life.ana, c.Edit("WRK-1", max_attempts=7))
    assert life.data == before
    assert life.refused(life.codex, c.Claim("WRK-1")) == "locked_in_file"
    life.do(life.ana, c.Force("WRK-1", reason="s7 is gone"))
    life.do(life.ana, c.Complete("WRK-1"))
    assert b"s7" not in life.data


def test_a_line_that_another_clones_board_wrote_does_not_hide_ones_own(quick):
    key = "KABSD-TSK-0001"
    path = quick.kano(key)
    quick.sync()
    life = Life(quick, "kano", path, key)
    life.do(life.codex, c.Claim(key))
    seq = quick.events(key)[-1].seq + 1
    other = f"2026-01-11 09:00 [agent=eve] [model=unknown] Done: completed (dibs 1.1 #{seq})"
    quick.put(path, life.data.decode() + other + "\n")
    life.do(life.codex, c.Complete(key))
    assert life.data.decode().count(f"(dibs 1.1 #{seq})") == 2


@pytest.mark.parametrize(
    ("heading", "below"),
    [("Worklog", 0), ("WORKLOG (latest last)", 0), ("Worklog of others", 1), ("Work", 1)],
)
def test_only_a_worklog_is_written_to(quick, heading, below):
    """Where there is none, one is made at the end."""
    key = "KABSD-TSK-0001"
    text = TASK.replace("# Worklog", f"# {heading}")
    path = quick.kano(key, text)
    quick.sync()
    quick.agent("codex", "kx-1").claim(key)
    after = quick.text(path)
    assert after.count("# Worklog\n") == below + (heading == "Worklog")
    assert "InProgress: started" in after[after.rindex("# W") :]


def test_who_gave_an_item_back_does_not_own_what_others_make_of_it(quick):
    key = "KABSD-TSK-0001"
    life = Life(quick, "kano", quick.kano(key), key)
    quick.sync()
    life.do(life.codex, c.Claim(key))
    life.do(life.codex, c.Release(key))
    life.do(life.ana, c.Block(key, reason="not now"))
    assert values(life.data)["owner"] is None


def test_a_copy_of_an_item_under_another_name_does_not_take_its_place(quick):
    """Both have been written by dibs: the copy was made of the file as it was then."""
    key = "KABSD-TSK-0001"
    path = quick.kano(key)
    quick.sync()
    quick.agent("codex", "kx-1").claim(key)
    copy = quick.put(f"{KANO}/a-copy.md", quick.text(path))
    [problem] = [p for p in quick.sync().problems if "the same item" in p.what]
    assert (problem.path, problem.choice) == (copy, f"{path} counts")
    before = quick.text(copy)
    quick.agent("codex", "kx-1").do(c.Complete(key))
    assert "state: Done" in quick.text(path)
    assert quick.text(copy) == before


def test_what_cannot_be_written_with_certainty_costs_no_claim_and_is_reported(quick):
    """A line of the Worklog would be in code that does not end."""
    key = "KABSD-TSK-0001"
    path = quick.kano(key, TASK + "\n```\nstate: Done\n")
    quick.sync()
    before = quick.text(path)
    outcome = quick.agent("codex", "kx-1").claim(key)
    assert outcome.task.state == "in_progress"
    assert "code or a comment that does not end" in outcome.warnings[0]
    assert quick.text(path) == before
    quick.put(path, before + "```\n")
    assert quick.sync().written == 1
    assert "state: InProgress" in quick.text(path)


@pytest.mark.parametrize("verb", ["release", "complete"])
def test_a_holder_that_is_typed_into_the_file_counts_for_nothing(quick, verb):
    key = "KABSD-TSK-0001"
    path = quick.kano(key)
    quick.sync()
    codex = quick.agent("codex", "kx-1")
    codex.claim(key)
    quick.edit(path, "assignee_agent: codex", "assignee_agent: mallory")
    quick.edit(path, "owner: codex", "owner: mallory")
    quick.edit(path, " codex kx-1 2h", " mallory m1 30d")
    quick.sync()
    assert quick.agent("mallory", "m1").refused(c.Renew(key)) == "held"
    codex.do(VERBS[verb](key))
    assert "mallory" not in quick.text(path)


def test_what_is_open_again_has_no_owner(quick):
    key = "KABSD-TSK-0001"
    life = Life(quick, "kano", quick.kano(key), key)
    quick.sync()
    life.do(life.codex, c.Claim(key))
    life.do(life.codex, c.Complete(key))
    assert values(life.data)["owner"] == "codex-9"
    life.do(life.ana, c.Reset((key,), reason="once more"))
    assert values(life.data)["owner"] is None
