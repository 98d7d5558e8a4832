"""One call of the command line: its arguments, its board, its caller; and what it answers."""

from __future__ import annotations

import os
import sys

from dibs.board.identity import Given, Identity, Surroundings, agents_run, identify
from dibs.board.locate import Place, locate
from dibs.core import checks
from dibs.core.instants import SECOND, Duration
from dibs.core.refusals import Refused, bad_argument, refused
from dibs.core.values import Value
from dibs.interfaces.cli.arguments import Argument, argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from dibs.board.execute import Board
    from dibs.board.outcome import Outcome
    from dibs.core.commands import Command
    from dibs.core.model import TaskKey, Token


class Answer(Value):
    """What a verb has to say: as JSON (or what makes it, when asked), as lines, as warnings."""

    payload: dict[str, Any] | Callable[[], dict[str, Any]]
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    exit: int = 0
    afresh: bool = False
    """Whether it takes the place of the one before, on a terminal."""
    file: str = ""
    """In the place of lines: the contents of a file, to the last byte."""

    def json(self) -> dict[str, Any]:
        return self.payload if isinstance(self.payload, dict) else self.payload()


class CannotPrint(Exception):  # noqa: N818 - it is no error of the program
    """A verb that prints by itself could not."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Verb(Value):
    """A verb: what it takes, and the function that answers: once, or again and again.

    One that goes on answers with `None` where there is nothing to say but that it is still there.
    """

    run: Callable[[Call], Answer | Iterator[Answer | None]]
    arguments: tuple[Argument, ...] = ()
    misused: int | None = None
    """The exit code if its arguments cannot be read, where the usual one says something else to the caller."""
    looks: bool = False
    """Whether it changes nothing: then it is asked again when it was cut off in the middle."""


def on_terminal() -> bool:
    """Whether a person could be there: one stream may be redirected."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return any(stream is not None and stream.isatty() for stream in streams)


def here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise refused("no_board", "the current directory is not there any more") from None


KEY = argument("key", metavar="KEY", help="the task, like T-42")
TTL = argument("--ttl", metavar="TIME", help="how long the lease runs: 90s, 30m, 2h, 7d")
TOKEN = argument("--token", metavar="TOKEN", help="the token of your lease; it is checked")
REASON = argument("--reason", metavar="TEXT", default="", help="why")
NOTE = argument("--note", metavar="TEXT", default="", help="a note, kept with the task")
WAIT = argument("--wait", metavar="TIME", help="wait so long for work: 30s, 10m")
MOST = argument("--most", metavar="N", help="not if you hold as many tasks already")
LIMIT = argument("--limit", metavar="N", default="100", help="how many at most (100)")


class Call:
    """Everything that a verb may need, made when it is first asked for."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self._place: Place | None = None
        self._board: Board | None = None
        self._deadline: float | None = None

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def place(self) -> Place:
        """Where the board is, or would be; what belongs to another user is refused."""
        self.found.check_ours()
        return self.found

    @property
    def found(self) -> Place:
        """The same, though it may be another user's: nothing of it is read."""
        if self._place is None:
            self._place = locate(here(), os.environ)
        return self._place

    def stand(self, place: Place) -> None:
        """The board is looked for from here, not from the current directory."""
        self._place = place

    @property
    def board(self) -> Board:
        if self._board is None:
            from dibs.opening import open_at

            self._board = open_at(self.place, deadline=self._deadline)
        return self._board

    def in_a_hook(self) -> None:
        """Whoever is hooked waits: for a server not longer than a hook may."""
        from time import monotonic

        from dibs.core.ground import HOOK_SECONDS

        self._deadline = monotonic() + HOOK_SECONDS

    def open_within(self, wait: Duration | None) -> None:
        """Opens the board; a server that is away is waited for so long, and no longer."""
        if self._board is None:
            from dibs.opening import open_at

            self._board = open_at(self.place, wait=wait)

    def opened_within(self, wait: Duration) -> Duration:
        """The same for who waits for something; what is left of the time then."""
        from time import monotonic

        began = monotonic()
        self.open_within(wait or None)  # who does not want to wait has a server that is there
        return Duration(max(0, wait - int((monotonic() - began) * SECOND)))

    def board_or_none(self) -> Board:
        """The place of a board, though there may be none there, or none that can be used."""
        from dibs.opening import place_of

        if self._board is None:
            self._board = place_of(self.place)
        return self._board

    @property
    def ignored(self) -> str:
        """What was found in a file where it does not count, and how a person adopts it."""
        settings = None if self._board is None else self._board.settings
        if settings is None or not settings.proposed:
            return ""
        names = ", ".join(settings.proposed)
        what = "what starts programs or names servers counts only in your own configuration"
        return (
            f"{settings.proposed_in}: {names} ignored: {what}; to take it over: dibs config --adopt"
        )

    @property
    def skewed(self) -> bool:
        return self._board is not None and self._board.store.skewed

    def is_damaged(self) -> bool:
        """Whether something unforeseen is the board's fault, not the program's."""
        if self._board is None:
            return False
        from dibs.board.upkeep import checkup

        try:
            return checkup(self._board).damaged
        except Exception:  # noqa: BLE001 - a board that cannot even be examined
            return True

    def adopt(self, board: Board) -> None:
        self._board = board

    def close(self) -> None:
        if self._board is not None:
            self._board.store.close()

    # What was typed.

    @property
    def key(self) -> TaskKey:
        return checks.task_key(self["key"])

    @property
    def ttl(self) -> Duration | None:
        return None if self["ttl"] is None else checks.ttl(self["ttl"])

    @property
    def wait(self) -> Duration | None:
        return None if self["wait"] is None else checks.duration(self["wait"], "the wait")

    @property
    def most(self) -> int | None:
        return None if self["most"] is None else checks.whole(self["most"], "the most", 1, 10_000)

    @property
    def token(self) -> Token | None:
        return None if self["token"] is None else checks.token(self["token"])

    @property
    def reason(self) -> str:
        return checks.reason(self["reason"])

    @property
    def note(self) -> str:
        return checks.note(self["note"])

    @property
    def limit(self) -> int:
        return checks.whole(self["limit"], "the limit", 1, 100_000)

    # Who calls, and what is done.

    def who(self) -> Identity:
        board = self.board

        def registered(name: str, process: Any) -> str | None:
            from dibs.board.views import session_of_process

            return session_of_process(board, name, process)

        return identify(
            Given(self["agent"], self["person"], self["session"]),
            self._around(),
            strict=board.settings.identity == "strict",
            registered=registered,
            registry=self._registry,
        )

    def agents_run(self) -> str:
        """The `dibs run` of an agent that this is part of, or ""."""
        return agents_run(self._around(), self._registry)

    def _around(self) -> Surroundings:
        machine = self.board.store.machine
        return Surroundings(os.environ, machine, self.place.repository, on_terminal())

    def _registry(self) -> Any:
        from dibs.board.meeting import Registry

        return Registry(self.board)

    @property
    def request_id(self) -> str | None:
        given = self["request_id"]
        return None if given is None else checks.request_id(given)

    def refuse_request_id(self) -> None:
        """Of a verb that keeps no answers: it would promise something that is not so."""
        if self["request_id"] is not None:
            raise bad_argument(
                "--request-id is of no use here: it would be done again all the same"
            )

    def do(self, command: Command) -> Answer:
        """Carries a command out, and says what came of it."""
        return self.told(self.execute(command))

    def execute(self, command: Command) -> Outcome:
        return self.board.execute(self.caller(command), command, self.request_id)

    def caller(self, command: Command) -> Identity:
        """Who calls; if it is an impostor, that is written down."""
        try:
            return self.who()
        except Refused as problem:
            if problem.code == "in_harness":
                impostor = Identity(self["person"], True, "")
                self.board.log_refusal(impostor, command, problem.refusal)
            raise

    def told(self, outcome: Outcome) -> Answer:
        from dibs.interfaces.cli import say

        warnings = say.warnings(outcome)

        def payload() -> dict[str, Any]:
            from dibs.interfaces import payloads

            return payloads.outcome(outcome, warnings)

        return Answer(payload, say.outcome(outcome), warnings)

    def told_beside(self, outcome: Outcome, lines: tuple[str, ...], **told: Any) -> Answer:
        """The same of what is not about a task, with words of its own."""
        from dibs.interfaces import payloads
        from dibs.interfaces.cli import say

        warnings = say.warnings(outcome)
        payload = payloads.answer(**told, replayed=outcome.replayed, warnings=list(warnings))
        return Answer(payload, lines, warnings)
