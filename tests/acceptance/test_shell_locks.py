"""Session locking of WRK items from shell scripts.

The item is that document itself, word for word. The shells are those that are found here.
"""

from __future__ import annotations

import functools
import os
import random
import re
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dibs.backlogs.formats.wrk import Wrk
from dibs.domain.values import SECOND, Instant
from kit.backlogs import QUEUE, WRK, difference, replaced
from kit.repositories import DIBS, Ran, Repo
from kit.running import as_in_a_terminal, lives, until

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "workspace-hub"
SHELLS = [
    pytest.param(shell, id=shell[-1] if shell[0] == "busybox" else shell[0])
    for shell in (["bash"], ["dash"], ["busybox", "ash"], ["zsh"])
    if shutil.which(shell[0])
]
LIBRARY = 'eval "$(dibs shellenv)"\n'
READ_BEFORE = 'eval "$SHELLENV"; unset SHELLENV\n'
"""The same text, which is the same everywhere and was asked for once: half the starts of `dibs`."""

STRICT = "set -eu\n(set -o pipefail) 2>/dev/null && set -o pipefail\n"


class Hub(Repo):
    """A repository with a work queue, and shells in it."""

    shell: list[str]

    def put(self, id_: str = "WRK-157", folder: str = "pending", **fields: str) -> Path:
        text = WRK.replace("id: WRK-157", f"id: {id_}")
        for key, value in fields.items():
            text = replaced(text, key, value)
        path = self.folder / QUEUE / folder / f"{id_}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def begin(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        path = f"{Path(DIBS).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment(**{"PATH": path} | environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=as_in_a_terminal,  # noqa: PLW1509
        )  # fmt: skip

    def does(self, command: list[str], **environment: str) -> Ran:
        process = self.begin(command, **environment)
        out, err = process.communicate(timeout=60)
        return Ran(process.returncode, out, err)

    def sh(self, script: str, session: str = "s1", **environment: str) -> Ran:
        command = [*self.shell, "-c", STRICT + READ_BEFORE + script]
        return self.does(command, **{"DIBS_SESSION": session, "SHELLENV": shellenv()} | environment)

    def script(self, path: str, *arguments: str, session: str = "s1", **environment: str) -> Ran:
        return self.does([f"scripts/{path}", *arguments], DIBS_SESSION=session, **environment)


@functools.cache
def shellenv() -> str:
    return Repo(Path("/")).ok("shellenv").out


@pytest.fixture
def hub(tmp_path):
    hub = Hub.create(tmp_path / "hub")
    hub.shell = ["bash"]
    shutil.copytree(EXAMPLE, hub.folder, dirs_exist_ok=True)
    hub.put()
    hub.ok("sync", "--as", "ana")
    return hub


@pytest.fixture(params=SHELLS)
def queue(hub, request):
    """The same, in each shell."""
    hub.shell = request.param
    return hub


def field(path: Path, name: str) -> str:
    return re.search(rf"^{name}: *(.*)$", path.read_text(), re.MULTILINE)[1].strip('"')


def lock(path: Path) -> tuple[str, str]:
    return field(path, "locked_by"), field(path, "locked_at")


def ago(seconds: float) -> str:
    return f"{datetime.now(UTC) - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


# `locked_by` and `locked_at` fields added to WRK frontmatter schema.


def test_the_fields_are_in_the_template_and_a_claim_fills_them(hub):
    text = (EXAMPLE / "templates" / "work-item.md").read_text()
    assert 'locked_by: ""\nlocked_at: ""\n' in text
    path = hub.folder / QUEUE / "pending" / "WRK-7.md"
    path.write_text(text.replace("WRK-000", "WRK-7"))
    began = ago(1)
    assert hub.sh("claim_wrk WRK-7").code == 0
    assert lock(path)[0] == "s1" and began <= lock(path)[1] <= ago(0)


# `workflow-guards.sh` gains `claim_wrk` and `release_wrk`; the plan calls them `wrk_claim` and
# `wrk_release`.


@pytest.mark.parametrize(("take", "give"), [("claim_wrk", "release_wrk"), ("wrk_claim", "wrk_release")])  # fmt: skip
def test_a_claim_and_its_release_are_a_round_trip(queue, take, give):
    path = queue.put("WRK-8", locked_by='""', locked_at='""')
    before = path.read_text()
    assert queue.sh(f"{take} WRK-8").code == 0
    assert field(path, "status") == "pending", "locked, not begun"
    assert queue.sh(f"{give} WRK-8").code == 0
    assert lock(path) == ("", "")
    changed = difference(before, path.read_text())
    assert [line[: len("+ dibs:")] for line in changed] == ["+ dibs:"]


def test_the_guards_of_the_example_have_both(hub):
    ran = hub.does(
        ["bash", "-euc", ". scripts/agents/lib/workflow-guards.sh; claim_wrk WRK-157; wrk_release WRK-157"],
        DIBS_SESSION="s1",
    )  # fmt: skip
    assert ran.code == 0, ran.err


def test_a_claim_by_the_session_that_has_the_lock_renews_it(queue):
    assert queue.sh("claim_wrk WRK-157; claim_wrk WRK-157").code == 0
    [lease] = [queue.json("show", "WRK-157")["task"]]
    assert (lease["token"], lease["session"], lease["lease_ttl"]) == ("1.1", "s1", "2h")


def test_the_lock_is_that_of_session_get(queue):
    """Phase 1, step 3: `session_get session_id` is the lock value, whatever else is in the air."""
    get = 'session_get() { [ "$1" = session_id ] && echo from-the-store; }\n'
    path = queue.folder / QUEUE / "pending" / "WRK-157.md"
    assert queue.sh(get + "claim_wrk WRK-157", session="s1").code == 0
    assert lock(path)[0] == "from-the-store"
    assert queue.sh("release_wrk WRK-157", session="s1").code == 4
    assert queue.sh(get + "release_wrk WRK-157", session="s2").code == 0


def test_a_session_store_without_a_session_is_a_usage_error(queue):
    """`null` would be one session for everybody; another id would be a guess."""
    for answer in ("true", "false", "echo null", "echo '-x y'", 'echo "$nothing"'):
        ran = queue.sh(f"session_get() {{ {answer}; }}\nclaim_wrk WRK-157")
        assert ran.code == 2 and "session" in ran.err, answer
    assert (queue.folder / QUEUE / "pending" / "WRK-157.md").read_text() == WRK


def test_the_agent_is_the_one_that_the_environment_names_else_claude(queue):
    queue.sh("claim_wrk WRK-157")
    assert queue.json("show", "WRK-157")["task"]["assignee_agent"] == "claude"
    queue.put("WRK-8")
    queue.sh("claim_wrk WRK-8", DIBS_AGENT="codex-2")
    assert queue.json("show", "WRK-8")["task"]["assignee_agent"] == "codex-2"


def test_the_harness_names_the_session_where_nobody_else_does(queue):
    get = ["-c", LIBRARY + "claim_wrk WRK-157"]
    ran = queue.does([*queue.shell, *get], CLAUDE_CODE_SESSION_ID="0b6c-9")
    assert ran.code == 0, ran.err
    assert lock(queue.folder / QUEUE / "pending" / "WRK-157.md")[0] == "0b6c-9"
    assert queue.does([*queue.shell, *get]).code == 2


# `claim_wrk` is atomic.


def test_kill_9_at_any_moment_leaves_both_fields_of_one_claim(hub):
    """Never a new holder with an old time, nor one field without the other."""
    path = hub.put("WRK-9", locked_by='""', locked_at='""')
    hub.sh("claim_wrk WRK-9; release_wrk WRK-9")
    chance = random.Random(157)
    for turn in range(16):
        session, began = f"turn-{turn}", ago(0)
        loop = "echo begun; while :; do claim_wrk WRK-9; release_wrk WRK-9; done >/dev/null"
        process = hub.begin(["bash", "-c", LIBRARY + loop], DIBS_SESSION=session)
        assert process.stdout.readline() == "begun\n"
        time.sleep(chance.random() * 0.5)  # no hope: any moment will do
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        holder, at = lock(path)
        pointer = field(path, "dibs").split()
        assert (holder == "") == (at == "") == (len(pointer) == 2), path.read_text()
        if holder:
            assert (holder, pointer[3]) == (session, session) and at >= began
        assert path.read_text().endswith(WRK.partition("\n## What")[2])
        hub.ok("release", "WRK-9", "--agent", "claude", "--session", session)
        hub.ok("sync", "--as", "ana")
        assert lock(path) == ("", "")


# `claim_wrk` fails with exit code 4 if item already locked by another session.


def test_of_two_rapid_claims_one_wins(queue):
    """Phase 4, step 10: from two session ids."""
    both = [
        queue.begin([*queue.shell, "-c", LIBRARY + "claim_wrk WRK-157"], DIBS_SESSION=session)
        for session in ("s1", "s2")
    ]
    outputs = [process.communicate(timeout=60) for process in both]
    assert sorted(process.returncode for process in both) == [0, 4], outputs
    holder = lock(queue.folder / QUEUE / "pending" / "WRK-157.md")[0]
    assert (holder == "s1") == (both[0].returncode == 0)


RACER = """
for item in $ITEMS; do
    : > $ARENA/ready.$item.$DIBS_SESSION
    while [ ! -e $ARENA/go.$item ]; do sleep 0.01; done
    code=0
    claim_wrk $item > /dev/null 2> $ARENA/said.$item.$DIBS_SESSION || code=$?
    echo $code > $ARENA/part; mv $ARENA/part $ARENA/code.$item.$DIBS_SESSION
done
"""


def test_of_eight_sessions_one_wins_and_seven_learn_who(queue, tmp_path):
    """With 8 concurrent sessions, as observed on 2026-02-16."""
    items = [f"WRK-{number}" for number in range(1, 4)]
    for item in items:
        queue.put(item)
    arena, sessions = tmp_path / "arena", [f"terminal-{number}" for number in range(8)]
    arena.mkdir()
    racer = LIBRARY + RACER.replace("$ARENA/part", "$ARENA/part.$DIBS_SESSION")
    racer = racer.replace("$ITEMS", " ".join(items))  # zsh does not split what a variable holds
    command = [*queue.shell, "-c", racer]
    racers = [queue.begin(command, DIBS_SESSION=name, ARENA=str(arena)) for name in sessions]
    for item in items:
        until(lambda item=item: len([*arena.glob(f"ready.{item}.*")]) == 8)
        (arena / f"go.{item}").touch()
        until(lambda item=item: len([*arena.glob(f"code.{item}.*")]) == 8)
        codes = {name: int((arena / f"code.{item}.{name}").read_text()) for name in sessions}
        [winner] = [name for name, code in codes.items() if code == 0]
        assert sorted(codes.values()) == [0] + [4] * 7
        assert lock(queue.folder / QUEUE / "pending" / f"{item}.md")[0] == winner
        for name in sessions:
            if name != winner:
                output = (arena / f"said.{item}.{name}").read_text()
                assert f"{item} is held by claude (session {winner})" in output
    assert {process.wait(60) for process in racers} == {0}
    for process in racers:
        process.communicate()


def test_who_does_not_hold_the_lock_cannot_release_it(queue):
    queue.sh("claim_wrk WRK-157")
    ran = queue.sh("release_wrk WRK-157", session="s2")
    assert ran.code == 4 and "session s1" in ran.err
    assert lock(queue.folder / QUEUE / "pending" / "WRK-157.md")[0] == "s1"


@pytest.mark.parametrize("status", ["pending", "working", "blocked"])
def test_the_lock_that_another_sessions_script_wrote_is_not_given_back(queue, status):
    path = queue.put(locked_by="old", locked_at=ago(60), status=status)
    before = path.read_text()
    ran = queue.sh("release_wrk WRK-157")
    assert ran.code == 4 and not ran.out, ran.err
    assert "the lock in the file of WRK-157 stays" in ran.err
    assert ('WRK-157 is locked by "old since' in ran.err) == (status != "blocked")
    assert path.read_text() == before


@pytest.mark.parametrize("session", ["s1", "ünï"])
def test_the_lock_that_an_old_script_of_this_session_wrote_is_given_back(queue, session):
    path = queue.put(locked_by=session, locked_at=ago(60))
    ran = queue.sh("release_wrk WRK-157", session=session)
    assert (ran.code, ran.out) == (0, "WRK-157 is released\n"), ran.err
    assert lock(path) == ("", "")
    get = f"session_get() {{ echo {session}; }}\n"
    queue.put(locked_by=session, locked_at=ago(60))
    assert queue.sh(get + "release_wrk WRK-157", session="other").code == 0
    assert lock(path) == ("", "")


def test_a_release_of_what_nobody_has_is_done_and_leaves_no_trace(queue):
    before = queue.json("log", "WRK-157")["events"]
    ran = queue.sh("release_wrk WRK-157")
    assert (ran.code, ran.out) == (0, "WRK-157 is open: nothing to do\n"), ran.err
    assert queue.json("log", "WRK-157")["events"] == before


def test_a_release_after_the_lock_was_lost_is_done_and_takes_nothing_from_the_next(queue):
    """As the page says: what a script gives back at its end is not its own any more; a claim is 4."""
    queue.sh("claim_wrk WRK-157")
    queue.ok("takeover", "WRK-157", "--force", "--reason", "wrong branch", "--as", "ana")
    assert queue.sh("claim_wrk WRK-157").code == 4
    assert queue.sh("release_wrk WRK-157").code == 0
    assert lock(queue.folder / QUEUE / "pending" / "WRK-157.md")[0] == "ana"


# Stale lock recovery: locks older than 2 hours are auto-released with warning.


def test_a_lock_older_than_two_hours_is_released_with_a_warning(queue):
    path = queue.put(locked_by="old", locked_at=ago(7201))
    ran = queue.sh("claim_wrk WRK-157")
    assert ran.code == 0 and "its lock by old is older than two hours" in ran.err
    assert lock(path)[0] == "s1"


def test_a_lock_younger_than_two_hours_is_not(queue):
    path = queue.put(locked_by="old", locked_at=ago(7000))
    ran = queue.sh("claim_wrk WRK-157")
    assert ran.code == 4 and 'WRK-157 is locked by "old since' in ran.err
    assert lock(path)[0] == "old"


@pytest.mark.parametrize(("age", "held"), [(7199, True), (7200, True), (7201, False)])
def test_exactly_two_hours_is_not_older(age, held):
    since = datetime(2026, 2, 16, 19, 30, tzinfo=UTC)
    now = Instant((int(since.timestamp()) + age) * SECOND)
    text = replaced(replaced(WRK, "locked_by", "old"), "locked_at", "2026-02-16T19:30:00Z")
    [item], problems = Wrk().read(f"{QUEUE}/pending/WRK-157.md", text.encode(), now)
    assert (item.lock is not None) == held
    assert [problem.warns for problem in problems] == ([] if held else [True])


@pytest.mark.parametrize("at", ["garbage", '""', "2099-01-01T00:00:00Z", "17700000"])
def test_a_lock_from_no_known_instant_holds_until_a_person_forces_it(hub, at):
    path = hub.put(locked_by="old", locked_at=at)
    ran = hub.sh("claim_wrk WRK-157")
    assert ran.code == 4 and "its lock by old is from" in ran.err
    assert lock(path)[0] == "old"
    hub.ok("takeover", "WRK-157", "--force", "--reason", "nobody is there", "--as", "ana")
    hub.ok("release", "WRK-157", "--as", "ana")
    assert hub.sh("claim_wrk WRK-157").code == 0


# Dead session detection: `locked_by` not in active `session-state.yaml`.


SEVERAL = "sessions:\n  - session_id: s1\n    started_at: 2026-02-16\n  - session_id: s2\n"


@pytest.mark.parametrize("locker", ["a script", "dibs"])
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (SEVERAL, 0),
        (SEVERAL.replace("s2", "gone"), 4),
        ("session_id: s1\nlast_command: review\n", 4),
        ("", 4),
    ],
    ids=["not among several", "among them", "only one is listed", "none is"],
)
def test_a_locker_is_dead_only_if_a_list_of_several_does_not_name_it(hub, locker, state, code):
    if locker == "dibs":
        assert hub.sh("claim_wrk WRK-157", session="gone").code == 0
    else:
        hub.put(locked_by="gone", locked_at=ago(60))
    listed = hub.folder / ".claude" / "state" / "session-state.yaml"
    listed.parent.mkdir()
    listed.write_text(state)
    ran = hub.sh("claim_wrk WRK-157")
    assert ran.code == code, ran.err
    assert "gone" in ran.err


# `execute.sh` calls `claim_wrk` before dispatch, `release_wrk` after completion.


@pytest.mark.parametrize("code", [0, 1, 7])
def test_execute_locks_while_the_command_runs_and_ends_with_its_code(hub, code):
    path = hub.folder / QUEUE / "pending" / "WRK-157.md"
    command = f"grep ^locked_by {path}; echo $DIBS_AGENT $DIBS_SESSION; exit {code}"
    ran = hub.script("agents/execute.sh", "WRK-157", "sh", "-c", command)
    assert (ran.code, ran.out) == (code, "locked_by: s1\nclaude s1\n"), ran.err
    assert lock(path) == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_execute_ends_the_command_and_releases_on_a_signal(hub, number):
    path = hub.folder / QUEUE / "pending" / "WRK-157.md"
    command = "sleep 600 & echo $$ $!; wait"
    process = hub.begin(
        ["scripts/agents/execute.sh", "WRK-157", "sh", "-c", command], DIBS_SESSION="s1"
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert lock(path)[0] == "s1" and all(map(lives, pids))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert lock(path) == ("", "")
    assert not any(map(lives, pids))


def test_execute_stops_the_work_when_the_lock_is_lost(hub):
    process = hub.begin(
        ["scripts/agents/execute.sh", "WRK-157", "sh", "-c", "echo $$; sleep 600"],
        DIBS_SESSION="s1", WRK_RENEW_EVERY="0.2",
    )  # fmt: skip
    pid = int(process.stdout.readline())
    hub.ok("takeover", "WRK-157", "--force", "--reason", "wrong branch", "--as", "ana")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "the lock of WRK-157 is lost" in err
    assert not lives(pid)
    assert lock(hub.folder / QUEUE / "pending" / "WRK-157.md")[0] == "ana"


def test_execute_dispatches_nothing_while_another_session_has_the_lock(hub):
    hub.sh("claim_wrk WRK-157", session="s2")
    ran = hub.script("agents/execute.sh", "WRK-157", "touch", "begun")
    assert ran.code == 4 and "session s2" in ran.err
    assert "not released" not in ran.err, "it was not even tried"
    assert not (hub.folder / "begun").exists()
    assert lock(hub.folder / QUEUE / "pending" / "WRK-157.md")[0] == "s2"


# `review.sh` calls `release_wrk` on archive, and on error paths.


def test_review_archives_and_releases(hub):
    ran = hub.script("review.sh", "WRK-157", "looks good")
    assert ran.code == 0, ran.err
    path = hub.folder / QUEUE / "archive" / "WRK-157.md"
    assert [*hub.folder.glob(f"{QUEUE}/**/*.*")] == [path]
    assert (field(path, "status"), lock(path)) == ("archived", ("", ""))
    hub.ok("sync", "--as", "ana")
    assert field(path, "status") == "archived"
    assert hub.json("show", "WRK-157")["task"]["state"] == "complete"
    assert hub.sh("claim_wrk WRK-157").code == 1


@pytest.mark.parametrize(
    ("word", "folder", "state"),
    [
        ("archived", "archive", "complete"),
        ("blocked", "waiting", "blocked"),
        ("pending", "later", "open"),
    ],
)
def test_the_status_that_the_holder_wrote_counts_once_the_lock_is_released(
    hub, word, folder, state
):
    """The order of the plan: an old script writes and moves the item first, and releases then."""
    path = hub.folder / QUEUE / "pending" / "WRK-157.md"
    moved = path.parent.parent / folder / path.name
    moved.parent.mkdir()
    hub.sh("claim_wrk WRK-157")
    path.write_text(replaced(path.read_text(), "status", word))
    path.rename(moved)
    assert hub.sh("release_wrk WRK-157").code == 0
    assert (field(moved, "status"), lock(moved)) == (word, ("", ""))
    assert hub.json("show", "WRK-157")["task"]["state"] == state


@pytest.mark.parametrize("word", ["working", "blocked", "pending"])
def test_an_item_that_its_holder_moved_to_the_archive_is_complete_whatever_its_status(hub, word):
    path = hub.folder / QUEUE / "pending" / "WRK-157.md"
    moved = path.parent.parent / "archive" / path.name
    moved.parent.mkdir()
    hub.sh("claim_wrk WRK-157")
    path.write_text(replaced(path.read_text(), "status", word))
    path.rename(moved)
    assert hub.sh("release_wrk WRK-157").code == 0
    assert (field(moved, "status"), lock(moved)) == ("done", ("", ""))
    assert hub.json("show", "WRK-157")["task"]["state"] == "complete"
    assert hub.sh("claim_wrk WRK-157").code == 1


def test_a_release_of_begun_work_gives_it_back_as_pending(hub):
    path = hub.folder / QUEUE / "pending" / "WRK-157.md"
    hub.ok("claim", "WRK-157", "--agent", "claude", "--session", "s1")
    assert field(path, "status") == "working"
    assert hub.sh("release_wrk WRK-157").code == 0
    assert (field(path, "status"), lock(path)) == ("pending", ("", ""))


def test_review_releases_when_it_fails(hub):
    path = hub.put(constraints="[edit]")
    ran = hub.script("review.sh", "WRK-157")
    assert ran.code == 1, ran.err
    assert (field(path, "status"), lock(path)) == ("pending", ("", ""))


def test_review_leaves_the_lock_of_another_session_alone(hub):
    hub.sh("claim_wrk WRK-157", session="s2")
    assert hub.script("review.sh", "WRK-157").code == 4
    assert lock(hub.folder / QUEUE / "pending" / "WRK-157.md")[0] == "s2"


# No regressions in existing gate exit codes (1, 2, 3).


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (1, {"status": "blocked"}),
        (1, {"status": "archived"}),
        (3, {"plan_approved": "false"}),
        (3, {"plan_approved": '""'}),
        (3, {"blocked_by": "[WRK-8]"}),
        (3, {"status": "nonsense"}),
        (0, {"plan_approved": "true"}),
    ],
    ids=str,
)
def test_each_gate_keeps_its_code(hub, code, fields):
    hub.put("WRK-8")
    hub.put(**fields)
    ran = hub.sh("claim_wrk WRK-157")
    assert ran.code == code, ran.err


def test_each_gate_of_the_example_keeps_its_code(queue):
    queue.put("WRK-1", status="blocked")
    queue.put("WRK-3", plan_approved="false")
    queue.put("WRK-4", plan_approved="true")
    guards = ". scripts/agents/lib/workflow-guards.sh\n"
    for id_, code in (("WRK-1", 1), ("WRK-2", 2), ("WRK-3", 3), ("WRK-4", 0), ("WRK-157", 0)):
        ran = queue.sh(f"{guards}wrk_gate {id_}")
        assert ran.code == code, (id_, ran.err)
    assert queue.sh(guards + "wrk_gate").code == 2


@pytest.mark.parametrize(
    "words", ["", "''", "WRK-157 WRK-8", "--help", "-- WRK-157", "'WRK 157'", "'WRK-157;ls'", "WRK-999", "../x", "é"]
)  # fmt: skip
@pytest.mark.parametrize("function", ["claim_wrk", "wrk_release"])
def test_a_wrong_call_is_a_usage_error_and_does_nothing(hub, function, words):
    before = hub.json("log")["events"]
    for session in ("", "session_get() { echo s3; }\n"):
        ran = hub.sh(f"{session}{function} {words}")
        assert ran.code == 2 and ran.err and not ran.out
    assert hub.json("log")["events"] == before


def test_every_code_of_dibs_becomes_one_of_five(queue, tmp_path):
    """A stand-in that ends with each code: most of them cannot be had from the real one at will."""
    stand_in = tmp_path / "bin" / "dibs"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh\nexit $CODE\n")
    stand_in.chmod(0o755)
    codes = [*range(6), 64, 70, 74, 75, 126, 127, 130, 143, 255]
    script = "for CODE in {}; do export CODE; code=0; {} WRK-1 || code=$?; echo $CODE $code; done"
    path = f"PATH={stand_in.parent}:$PATH; "
    for function in ("claim_wrk", "wrk_release"):
        ran = queue.sh(path + script.format(" ".join(map(str, codes)), function))
        became = dict(tuple(map(int, line.split())) for line in ran.out.splitlines())
        assert became == {code: code if code < 5 else 4 if code == 5 else 1 for code in codes}
        assert re.findall(r"code (\d+), given as 1", ran.err) == [str(c) for c in codes if c > 5]
        assert queue.sh(f"{path}{function} WRK-1", CODE="5").code == 4, "under set -e"


def test_without_dibs_it_fails_and_says_so(queue):
    ran = queue.sh("PATH=/nowhere; claim_wrk WRK-157")
    assert ran.code == 1 and "dibs is not found: code 127" in ran.err


def test_the_gate_tables_name_every_code():
    rows = re.findall(r"^\| (\d) \|", (EXAMPLE / "docs" / "gates.md").read_text(), re.MULTILINE)
    cells = re.findall(r"<tr><td>(\d)", (EXAMPLE / "docs" / "workflow-visual.html").read_text())
    assert rows == cells == ["0", "1", "2", "3", "4"]


# A library in somebody else's shell.


def test_the_callers_shell_is_left_as_it_was(queue):
    """Options, traps and variables, also after the library was brought in twice."""
    look = 'set +o > "$1.options"; trap > "$1.traps"; set > "$1.variables"'
    script = f"""
{LIBRARY}
trap 'echo the trap of the caller' EXIT
IFS=-
code=9
look() {{ {look}; }}
look before
look before
claim_wrk WRK-157 > /dev/null
claim_wrk nothing 2> /dev/null || :
release_wrk WRK-157 > /dev/null
look after
"""
    ran = queue.sh(script)
    assert (ran.code, ran.out) == (0, "the trap of the caller\n"), ran.err
    for what in ("options", "traps"):
        before, after = ((queue.folder / f"{w}.{what}").read_text() for w in ("before", "after"))
        assert before == after, what
    before, after = (names_in(queue.folder / f"{w}.variables") for w in ("before", "after"))
    assert after - before <= {"PIPESTATUS", "ERRNO", "pipestatus"}


def names_in(path: Path) -> set[str]:
    return set(re.findall(r"^([A-Za-z_]\w*)=", path.read_text(errors="replace"), re.MULTILINE))


def test_it_defines_its_own_names_only(hub):
    library = hub.ok("shellenv").out
    assert set(re.findall(r"^(\w+)\(\)", library, re.MULTILINE)) == {
        "claim_wrk", "release_wrk", "wrk_claim", "wrk_release", "_dibs_wrk", "_dibs_in_file",
    }  # fmt: skip
    assert all(
        name.startswith("_dibs_") for name in re.findall(r"^ *(\w+)=", library, re.MULTILINE)
    )


def test_it_needs_neither_a_board_nor_a_repository(tmp_path):
    assert Repo(tmp_path).ok("shellenv").out.startswith("# dibs in shell scripts")
    assert "claim_wrk()" in Repo(tmp_path).json("shellenv")["shellenv"]


def test_it_reads_nothing_of_what_a_loop_reads(queue):
    queue.put("WRK-8")
    curious = 'dibs() { cat > /dev/null; command dibs "$@"; }\n'
    loop = "printf 'WRK-157\\nWRK-8\\n' | while read -r item; do claim_wrk $item; done"
    assert queue.sh(curious + loop).out.count("is yours") == 2
