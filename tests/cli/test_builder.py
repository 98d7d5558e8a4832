"""The command line and the library build the same commands: a request id stores the digest of a command, so the
library replays what the command line did under the same id, or is refused.
"""

from __future__ import annotations

import shlex
from datetime import timedelta
from functools import partial

import pytest

from dibs import Refused, open_board
from dibs.board.command_builder import CHECKS, build
from dibs.domain import commands as c
from dibs.domain.verbs import typed_verbs
from kit.repositories import Repo

READING = {"show", "list", "why"}

STEPS = (
    ("add One --key A --scope src/** --priority P1 --for any --tier 2 --needs go --allow edit --max-attempts 4 --billable",
     lambda b: b.add("One", key="A", scope="src/**", priority=1, audience="any", tier=2, capabilities=["go"],
                     constraints="edit", max_attempts=4, billable=True)),
    ("add Two --key B --after A --after A --charge-code ACME",
     lambda b: b.add("Two", key="B", after=["A", "A"], charge_code="ACME")),
    ("add Three --key C", lambda b: b.add("Three", key="C")),
    ("intake --channel mail --ref m-1 --title Asked --url https://example.org/1",
     lambda b: b.intake("mail", "m-1", "Asked", url="https://example.org/1")),
    ("edit A --title One-and-a-half --tier 0 --needs '' --allow '' --charge-code ''",
     lambda b: b.edit("A", title="One-and-a-half", tier=0, capabilities=[], constraints=[], charge_code="")),
    ("scope A --add docs/** --remove src/**", lambda b: b.scope("A", add=["docs/**"], remove=["src/**"])),
    ("depend B --on C --on C --not-on A", lambda b: b.depend("B", on=["C"], not_on="A")),
    ("note C thought", lambda b: b.note("C", "thought")),
    ("note C --redact NOTE --reason private", lambda b: b.redact("C", note(b), "private")),
    ("park C --reason later", lambda b: b.park("C", reason="later")),
    ("unpark C", lambda b: b.unpark("C")),
    ("assign C --to ana --ttl 90s --reason hers", lambda b: b.assign("C", "ana", ttl="90s", reason="hers")),
    ("unassign C --reason no", lambda b: b.unassign("C", reason="no")),
    ("claim A --ttl 5m --reserve --reason why",
     lambda b: b.claim("A", ttl=timedelta(minutes=5), reserve=True, reason="why")),
    ("start A --ttl 10m", lambda b: b.start("A", ttl="10m")),
    ("stop A --token TOKEN", lambda b: b.stop("A", token=token(b, "A"))),
    ("renew A --token TOKEN --ttl 7m", lambda b: b.renew("A", token=token(b, "A"), ttl="7m")),
    ("block A --reason unclear --on ana --keep", lambda b: b.block("A", "unclear", on="ana", keep=True)),
    ("unblock A --note clear", lambda b: b.unblock("A", note="clear")),
    ("release A --note back", lambda b: b.release("A", note="back")),
    ("next --ttl 5m --most 3", lambda b: b.next(ttl="5m", most=3)),
    ("handoff A --to ana --ttl 5m --reason ill --note half",
     lambda b: b.handoff("A", "ana", ttl="5m", reason="ill", note="half")),
    ("takeover A --force --reason urgent --ttl 6m",
     lambda b: b.takeover("A", force=True, reason="urgent", ttl="6m")),
    ("submit A --note look", lambda b: b.submit("A", note="look")),
    ("reject A --reason no", lambda b: b.reject("A", "no")),
    ("claim A", lambda b: b.claim("A")),
    ("submit A", lambda b: b.submit("A")),
    ("accept A --note yes", lambda b: b.accept("A", note="yes")),
    ("claim C", lambda b: b.claim("C")),
    ("fail C --reason broken", lambda b: b.fail("C", "broken")),
    ("retry C --reason again", lambda b: b.retry("C", reason="again")),
    ("claim C", lambda b: b.claim("C")),
    ("reset C C --only --assign ana --reason anew --yes",
     lambda b: b.reset("C", only=True, assign="ana", reason="anew", yes=True)),
    ("drop B --reason unwanted", lambda b: b.drop("B", reason="unwanted")),
    ("unassign C --reason mine", lambda b: b.unassign("C", reason="mine")),
    ("claim C", lambda b: b.claim("C")),
    ("complete C --note done", lambda b: b.complete("C", note="done")),
)  # fmt: skip


ANA = ("reject", "accept")
"""Verbs that the author of the work may not use; ben does everything else."""


def token(board, key: str) -> str:
    return board.show(key).token


def note(board) -> int:
    return board.show("C").notes[0].event


def test_the_command_line_and_the_library_build_the_same_commands(tmp_path):
    repo = Repo.create(tmp_path / "shop")
    repo.run("init", "--as", "ana")
    assert repo.run("config", "charge_codes", '["ACME"]', "--as", "ana").code == 0
    repo.run("add", "Zero", "--key", "Z", "--priority", "4", "--as", "ana")  # registers her
    people = {
        name: open_board(repo.folder, person=name, environment=repo.environment()) for name in ("ana", "ben")
    }  # fmt: skip
    for number, (typed, call) in enumerate(STEPS):
        words = shlex.split(typed)
        name = "ana" if words[0] in ANA else "ben"
        board = _Same(people[name], f"r{number}")
        if "TOKEN" in words:
            words[words.index("TOKEN")] = token(board, words[1])
        if "NOTE" in words:
            words[words.index("NOTE")] = str(note(board))
        ran = repo.run(*words, "--as", name, "--request-id", f"r{number}")
        assert ran.code == 0, (typed, ran.err)
        before = people[name].head()
        call(board)  # a command with other fields would be refused: the id was used for another one
        assert people[name].head() == before, typed
    for board in people.values():
        board.close()


class _Same:
    """A board whose every change has one request id."""

    def __init__(self, board, request_id: str) -> None:
        self._board, self._request_id = board, request_id

    def __getattr__(self, verb: str):
        method = getattr(self._board, verb)
        return method if verb == "show" else partial(method, request_id=self._request_id)


def test_every_verb_of_both_is_compared():
    compared = {typed.split()[0] for typed, _ in STEPS}
    of_tasks = {spec.name for spec in typed_verbs() if spec.group in ("tasks", "own", "move")}
    assert of_tasks - READING == compared


def test_a_request_id_of_another_command_is_refused(tmp_path):
    """The comparison above can fail."""
    repo = Repo.create(tmp_path / "shop")
    repo.run("init", "--as", "ana")
    repo.run("add", "One", "--as", "ben", "--request-id", "r1")
    board = open_board(repo.folder, person="ben", environment=repo.environment())
    with board, pytest.raises(Refused) as problem:
        board.add("One", priority=1, request_id="r1")
    assert problem.value.code == "request_reused"


COMMANDS = [
    kind for kind in vars(c).values()
    if isinstance(kind, type) and issubclass(kind, c.Command) and "verb" in vars(kind)
]  # fmt: skip
INTERNAL = {
    "rest",
    "tried",
    "here",
    "items",
    "rebuilt",
    "asks",
    "settings",
    "why",
    "place",
    "siblings",
    "running",
}
"""Fields that only dibs itself sets."""


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.verb)
def test_every_field_of_a_command_has_a_check(kind):
    for field in kind.fields:
        assert field in CHECKS or f"{kind.verb} {field}" in CHECKS or field in INTERNAL


def test_what_is_not_given_is_not_checked_where_the_field_may_be_empty():
    assert build(c.Renew, task="T-1", ttl=None, token=None) == c.Renew("T-1")
    with pytest.raises(Refused, match="the reason is None"):
        build(c.Drop, task="T-1", reason=None)
