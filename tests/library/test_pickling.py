"""What the library answers with passes between processes, and is copied, as plain data is."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import dibs
from dibs import open_board
from dibs.domain.refusals import Refusal
from dibs.domain.values import Value
from dibs.library.records import LeaseLost
from dibs.storage import errors
from kit import pooled

REFUSAL = Refusal("held", "T-1 is held", {"task": "T-1", "paths": ["a"]})
DAY = datetime(2020, 1, 1, tzinfo=UTC)
OPEN = {"Board", "Lease"}
"""They hold a connection: they stay where they are."""


def opened(repo, **who):
    return open_board(str(repo.folder), environment=repo.around, **who)


@pytest.fixture
def records(repo):
    """One of each public class, as the library really answers."""
    with opened(repo, agent="codex", session="s1") as board:
        added = board.add("Fix login", scope=["src/auth/**"])
        claimed = board.claim("T-1")
        board.stop("T-1")
        found = [
            added, claimed, claimed.task, claimed.lease, board.status(), board.who_owned("T-1"),
            *board.log("T-1"), *board.stints(DAY, DAY + timedelta(days=20_000)),
        ]  # fmt: skip
    with opened(repo, person="ana") as board:
        found += board.reset("T-1", yes=True, reason="again")
    return [*found, REFUSAL, dibs.Refused(REFUSAL), LeaseLost(REFUSAL)]


def same(one, other):
    assert type(one) is type(other)
    if isinstance(one, Exception):
        assert (str(one), one.args, vars(one)) == (str(other), other.args, vars(other))
    elif isinstance(one, dibs.Answer):
        assert (one.task, one.events, one.replayed) == (other.task, other.events, other.replayed)
    else:
        assert one == other


@pytest.mark.parametrize("kind", ["sqlite"])
def test_every_record_of_the_library_can_be_pickled_and_copied(records):
    kinds = {type(one).__name__ for one in records}
    assert kinds >= set(dibs.__all__) - OPEN - {"open_board"}
    for one in records:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            same(pickle.loads(pickle.dumps(one, protocol)), one)
        same(copy.copy(one), one)
        same(copy.deepcopy(one), one)


def test_every_kind_of_value_can_be_pickled_and_copied():
    """Whatever its fields are: also one that is made so often that its constructor is written out."""
    kinds = [Value]
    for kind in kinds:
        kinds += kind.__subclasses__()
    local = [kind for kind in kinds if "<locals>" in kind.__qualname__]
    for kind in set(kinds) - set(local):
        one = kind(**dict.fromkeys(kind.fields, "x"))
        assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one


@pytest.mark.parametrize(
    "error", [errors.Interrupted(REFUSAL), errors.BoardMoved(REFUSAL, "word"), LeaseLost(REFUSAL)]
)
def test_a_refusal_of_any_kind_stays_what_it_is(error):
    error.add_note("while the pool ran")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        same(other, error)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_what_is_open_says_that_it_stays_in_its_process(repo):
    with opened(repo, agent="codex", session="s1") as board:
        board.add("Fix login")
        with board.hold("T-1") as lease:
            for one in (board, lease):
                for way in (pickle.dumps, copy.copy, copy.deepcopy):
                    with pytest.raises(TypeError, match="open a board in each process"):
                        way(one)


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_a_pool_of_processes_brings_answers_and_refusals_back(repo, start):
    repo.ok("add", "Fix login", "--as", "ana")
    where = (str(repo.folder), repo.around)
    context = multiprocessing.get_context(start)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        answer = pool.submit(pooled.claim, *where, "s1").result(timeout=60)
        assert answer.task.key == "T-1"
        refusal = pool.submit(pooled.claim, *where, "s2").exception(timeout=60)
        assert isinstance(refusal, dibs.Refused)
        assert refusal.code == "held"
        assert refusal.refusal.facts["holder"] == "codex"
        assert pool.submit(pooled.task, *where).result(timeout=60) == answer.task
