"""Graphs as workgraph writes them, and as people and old versions left them; records for them."""

from __future__ import annotations

import json
import random

from hypothesis import strategies as st

from dibs.backlogs.formats.workgraph_fields import STATES, stamp
from dibs.backlogs.item import Record, Step
from dibs.domain.model import (
    COMPLETE,
    FINAL,
    HOLDABLE,
    IN_PROGRESS,
    OPEN,
    Actor,
    Lease,
    Task,
    Terms,
    Token,
)
from dibs.domain.model import STATES as ALL_STATES
from dibs.domain.values import HOUR, MINUTE, SECOND

NOW = 1_794_700_000_000_000
BOARD = "0198c2a4-7000-7000-8000-000000000001"
PATH = ".wg/graph.jsonl"


def line(**fields) -> str:
    """A line of the tool's own: no space, no escapes, `kind` first."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def node(id_: str, **fields) -> str:
    return line(kind="task", id=id_, **{"title": f"Task {id_}", "status": "open", **fields})


def file(*lines: str, end: str = "\n") -> bytes:
    return "".join(text + end for text in lines).encode()


def entry(message: str, actor: str = "agent-1", at: int = NOW) -> dict[str, str]:
    return {"timestamp": stamp(at), "actor": actor, "message": message}


def old_graph(agents: int, tasks: int) -> bytes:
    """Every second task is claimed by one of the agents; every fourth was not begun by it."""
    lines = ["# kept by hand since 2024"]
    for number in range(tasks):
        claim = {}
        if number % 2:
            begun = {"status": "in-progress", "started_at": stamp(NOW - 14 * HOUR)}
            claim = {
                "assigned": f"agent-{number // 2 % agents}",
                **(begun if number % 4 == 1 else {}),
            }
        lines.append(node(f"t{number}", **claim))
    return file(*lines)


def large_graph(tasks: int, seed: int = 0) -> bytes:
    """As a long-lived project has it: mostly done, with edges to earlier tasks and logs."""
    chance = random.Random(seed)
    lines = []
    for number in range(tasks):
        status = chance.choice(("done", "done", "done", "open", "open", "in-progress", "failed"))
        fields = {"description": "What is to be done, and why. " * chance.randrange(8)}
        fields |= {"status": status, "priority": chance.choice((0, 5, 10, 50, 100))}
        if status != "open":
            fields["assigned"] = f"agent-{number % 500}"
        if number:
            earlier = chance.sample(range(max(0, number - 200), number), k=min(number, 2))
            fields["after"] = [f"task-{other}" for other in earlier]
        fields["created_at"] = "2026-04-28T22:23:26.155276213+00:00"
        fields["log"] = [entry(f"step {step} was taken") for step in range(chance.randrange(4))]
        lines.append(node(f"task-{number}", **fields))
    return file(*lines)


def task(state=OPEN, holder="", token=(1, 1), attempts=1, **given) -> Task:
    """A task of a board; `holder`: with a lease that was acquired ten minutes ago."""
    lease = given.pop("lease", None)
    if holder and lease is None:
        lease = Lease(1, "s1", NOW - 10 * MINUTE, NOW - 10 * SECOND, HOUR)
    return Task(
        id=1, uid="u", key="T-1", terms=Terms("a task"), created=NOW - HOUR, updated=NOW,
        creator=1, state=state, token=Token(*token), lease=lease, attempts=attempts, **given,
    )  # fmt: skip


def record(state=OPEN, holder="", steps=(), now=NOW, **given) -> Record:
    who = Actor(1, holder, "agent") if holder else None
    return Record(task(state, holder, **given), BOARD, now, who, tuple(steps))


def step(seq: int, verb="claim", state=IN_PROGRESS, actor="codex-2", token=(1, 1), **given) -> Step:
    return Step(seq, NOW - MINUTE + seq, actor, verb, state, Token(*token), **given)


# By chance.

SPACES = st.sampled_from(("", "", "", " ", "  ", "\t"))
NUMBERS = st.sampled_from(("0", "-0", "1", "1.0", "1e3", "1E+2", "-2.50", "12345678901234567890"))
WORDS = st.text(max_size=8)


@st.composite
def strings(draw, words=WORDS) -> str:
    """A string as JSON has it: with escapes, or without."""
    return json.dumps(draw(words), ensure_ascii=draw(st.booleans()))


def values(depth: int = 2):
    """The text of a value, in any of the forms that JSON allows."""
    plain = st.one_of(strings(), NUMBERS, st.sampled_from(("true", "false", "null")))
    if not depth:
        return plain
    return st.one_of(plain, arrays(values(depth - 1)), objects(values(depth - 1)))


@st.composite
def arrays(draw, elements) -> str:
    space = draw(SPACES)
    inside = f"{space},{space}".join(draw(st.lists(elements, max_size=3)))
    return f"[{space}{inside}{space}]"


@st.composite
def objects(draw, elements) -> str:
    return spaced(draw, draw(st.dictionaries(WORDS, elements, max_size=3)))


def spaced(draw, members: dict[str, str]) -> str:
    """An object of keys and texts of values, with some space of its own."""
    before, after, inside = draw(SPACES), draw(SPACES), draw(SPACES)
    ascii_only = draw(st.booleans())
    members_text = [
        f"{json.dumps(key, ensure_ascii=ascii_only)}{before}:{after}{text}"
        for key, text in members.items()
    ]
    return "{" + inside + f"{before},{after}".join(members_text) + inside + "}"


def lines_of_tasks(id_: str):
    """A task's line with some fields of ours, some of the tool's, and some that nobody knows."""
    times = st.sampled_from((NOW, NOW - HOUR)).map(stamp).map(json.dumps)
    logs = st.lists(st.sampled_from(("begun", "done (dibs 1.1 #1)")).map(entry), max_size=2)
    optional = {
        "status": st.sampled_from([json.dumps(word) for word in STATES] + ['"odd"', "null"]),
        "assigned": st.sampled_from(('"agent-7"', '"codex-2"', "null")),
        "started_at": times,
        "completed_at": times,
        "lease_expires_at": times,
        "retry_count": st.sampled_from(("0", "3", "1.0")),
        "dibs": st.sampled_from((f'"{BOARD} 1.1"', f'"{BOARD} 1.1 codex-2 s1 1h"', '"odd"')),
        "log": logs.map(json.dumps),
        "after": arrays(strings()),
        "title": strings(),
    }
    unknown = st.dictionaries(
        WORDS.filter(lambda key: key not in {*optional, "id", "kind"}), values()
    )

    @st.composite
    def drawn(draw) -> str:
        members = {"kind": '"task"', "id": json.dumps(id_)} | draw(unknown)
        members |= draw(st.fixed_dictionaries({}, optional=optional))
        order = draw(st.permutations(list(members)))
        return draw(SPACES) + spaced(draw, {key: members[key] for key in order}) + draw(SPACES)

    return drawn()


OTHERS = st.sampled_from(
    (
        "", "   ", "# a comment", "// another", '{"kind":"resource","id":"gpu"}',
        '{"kind":"actor","id":"t0","name":"Ana"}', '{"kind":"task"', "not json", "[1]", "\u2028",
        '{"kind":"task","title":"no id"}', '{"kind":"task","id":"t1","n":NaN}',
    )
)  # fmt: skip


@st.composite
def graphs(draw, tasks: int = 4) -> bytes:
    """Tasks `t0`, `t1`, ... in one line each, with other lines between them, and any line ends."""
    lines = []
    for number in range(draw(st.integers(0, tasks))):
        lines += draw(st.lists(OTHERS, max_size=2))
        lines.append(draw(lines_of_tasks(f"t{number}")))
    lines += draw(st.lists(OTHERS, max_size=2))
    ends = [draw(st.sampled_from(("\n", "\r\n"))) for _ in lines]
    if ends and draw(st.booleans()):
        ends[-1] = ""
    mark = draw(st.sampled_from(("", "\ufeff")))
    return (mark + "".join(text + end for text, end in zip(lines, ends))).encode()


@st.composite
def records(draw) -> Record:
    state = draw(st.sampled_from(ALL_STATES))
    held = state == IN_PROGRESS or (state in HOLDABLE and draw(st.booleans()))
    steps = [
        step(
            seq, state=state, text=draw(st.text(max_size=5)), model=draw(st.sampled_from(("", "m")))
        )
        for seq in draw(st.lists(st.integers(1, 4), unique=True, max_size=3))
    ]
    return record(
        state, "codex-2" if held else "", steps, attempts=draw(st.integers(0, 5)),
        token=(1, draw(st.integers(int(held or state in FINAL or state == COMPLETE), 2))),
    )  # fmt: skip


def stale_claims(items):
    """Those that are claimed in the file, and held by nobody: no live agent, no lease of a board.

    On an open task as on one in progress: its agent may have died before it began.
    """
    return [
        item
        for item in items
        if item.owner and item.state in HOLDABLE and item.lock is None
        if item.pointer is None or not item.pointer.held
    ]
