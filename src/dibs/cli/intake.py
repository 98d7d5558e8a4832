"""`dibs intake`: takes in requests from any channel; the same origin always gives the same task."""

from __future__ import annotations

import os
import signal
import stat
import sys

from dibs.board.command_builder import build
from dibs.board.outcome import task_events
from dibs.cli.call import COMMON, Call, Verb, VerbResult, argument, refuse_inapplicable
from dibs.cli.tasks import SCOPE, TERMS, given_terms, new_terms
from dibs.cli.text import count, progress_bar
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.checks import TITLE_LENGTH
from dibs.domain.events import tasks as e
from dibs.domain.model import Task
from dibs.domain.refusals import Refused, bad_argument, refused, several
from dibs.intake.bulk import Problem, read_requests
from dibs.intake.request import (
    PAYLOAD_MAX,
    BadPayload,
    IntakeRequest,
    NoRequest,
    add_arguments,
    build_request,
)
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, Self

    from dibs.board.outcome import Outcome
    from dibs.cli.call import Call
    from dibs.intake.request import IntakeRequest


SINGLE, GITHUB, EMAIL, MAP, FROM = "a single request", "--github", "--email", "--map", "--from"
WAYS = {"github": GITHUB, "email": EMAIL, "map": MAP, "file": FROM}
"""Options that name the source of a payload; without any, the request is given on the command line."""

HOMES = {
    "channel": (SINGLE, MAP, FROM),
    "ref": (SINGLE,),
    "url": (SINGLE,),
    "title": (SINGLE, GITHUB, EMAIL, MAP),
    "delivery": (SINGLE, GITHUB, EMAIL, MAP),
    "request_id": (SINGLE, GITHUB, EMAIL, MAP),
    "event": (GITHUB,),
    "signature": (GITHUB,),
    "secret_file": (GITHUB,),
}
"""The sources that each option goes with: what the payload contains must not be given again."""


CUT = f"the title is longer than {checks.TITLE_LENGTH} characters and was cut"


def intake(call: Call) -> VerbResult | Iterator[VerbResult]:
    ways = [way for way in WAYS if call[way] not in (None, False)]
    if len(ways) > 1:
        raise bad_argument(f"{WAYS[ways[0]]} and {WAYS[ways[1]]} do not combine")
    here = WAYS[ways[0]] if ways else SINGLE
    refuse_inapplicable(call.arguments, (*VERBS["intake"].arguments, *COMMON), HOMES, here)
    try:
        if ways == ["file"]:
            return in_bulk(call)
        request = read_request(call, ways[0] if ways else "")
    except BadPayload as problem:
        raise bad_argument(f"this request is invalid: {problem.what}") from None
    if isinstance(request, NoRequest):
        line = f"nothing to add: {request.why}"
        return VerbResult(payloads.answer(task=None, created=False, why=request.why), (line,))
    return take_in(call, command_of(call, request), request)


def read_request(call: Call, way: str) -> IntakeRequest | NoRequest:
    """Reads the request from its source."""
    delivery = call["delivery"] or ""
    if way == "github":
        from dibs.intake import github

        body = payload()
        check_signature(call, body)
        return github.read(call["event"] or "", body, delivery)
    if way == "email":
        from dibs.intake import email

        return email.read(payload(email.MESSAGE_MAX), delivery=delivery)
    if way == "map":
        from dibs.intake import mapped

        if not call["channel"]:
            raise bad_argument("--map requires --channel NAME")
        return mapped.read(
            call["channel"], mapped.paths_of(pairs(call["map"])), payload(), delivery
        )
    return request_from_arguments(call, delivery)


def request_from_arguments(call: Call, delivery: str) -> IntakeRequest:
    """A request given on the command line; its arguments serve as the payload."""
    missing = [f"--{name}" for name in ("channel", "ref") if call[name] is None]
    if missing:
        raise bad_argument(f"the following arguments are required: {', '.join(missing)}")
    words = "\n".join(call[name] or "" for name in ("channel", "ref", "title", "url"))
    return build_request(
        call["channel"],
        call["ref"],
        words.encode("utf-8", "surrogatepass"),
        title=checks.title(call["title"]) if call["title"] is not None else "",
        url=call["url"] or "",
        delivery=delivery,
    )


def payload(most: int = PAYLOAD_MAX) -> bytes:
    """Reads stdin, at most one byte more than allowed: enough to detect that it is too large."""
    if sys.stdin is None:
        raise bad_argument("the payload is read from standard input, which is closed")
    return sys.stdin.buffer.read(most + 1)


def check_signature(call: Call, body: bytes) -> None:
    """Checks the signature, if one is given; each line of the secret file is one secret."""
    if bool(call["signature"]) != bool(call["secret_file"]):
        raise bad_argument("--signature requires --secret-file, and the reverse")
    if not call["signature"]:
        return
    from dibs.intake.signatures import NotSigned, check_github

    try:
        with open(call["secret_file"], encoding="utf-8") as file:
            secrets = [line.strip() for line in file if line.strip()]
    except (OSError, ValueError) as error:
        raise bad_argument(f"{call['secret_file']} cannot be read: {error}") from None
    try:
        check_github(body, call["signature"], secrets)
    except NotSigned as problem:
        raise refused("not_signed", f"the signature is invalid: {problem.what}") from None


def pairs(given: list[str]) -> dict[str, object]:
    """Parses `ref=data.id` pairs: which path of the payload holds which field."""
    found: dict[str, object] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or not name or not path:
            raise bad_argument(f"--map is {checks.quoted(one)}; write it like ref=data.id")
        found[name] = path
    return found


def command_of(call: Call, request: IntakeRequest) -> c.Add:
    terms = new_terms(call, request.title if call["title"] is None else call["title"])
    return build(c.Add, terms=terms, scope=call["scope"] or (), **add_arguments(request))


def take_in(call: Call, command: c.Add, request: IntakeRequest) -> VerbResult:
    """Adds the task, or finds that of the same origin; differences from it are reported, not written."""
    outcome = call.execute(command)
    result = call.render(outcome)
    if is_new(outcome) or outcome.task is None:
        warnings = result.warnings + ((CUT,) if request.cut and call["title"] is None else ())
        payload = result.json() | {"created": True, "differences": [], "warnings": [*warnings]}
        return result.but(payload=payload, warnings=warnings)
    differences = differing(call, outcome.task, command)
    if any(isinstance(event, e.Received) and event.differs for event in outcome.events):
        retitled = not request.untitled and request.title != outcome.task.terms.title
        differences = differences or ["title" if retitled else "payload"]
    line = f"{outcome.task.key} already has this origin" + (
        f"; it differs in: {', '.join(differences)}" if differences else ""
    )
    payload = result.json() | {"created": False, "differences": differences}
    return result.but(payload=payload, lines=(line,))


def is_new(outcome: Outcome) -> bool:
    return any(isinstance(event, e.Added) for event in outcome.events)


def differing(call: Call, task: Task, command: c.Add) -> list[str]:
    """The names of given fields that differ from the task of the same origin."""
    given = [name for name, value in given_terms(call).items() if value is not None]
    given += ["title"] if call["title"] is not None else []
    wanted, has = command.terms.named(), task.terms.named()
    names = [name for name in given if wanted[name] != has[name]]
    return names + (["scope"] if command.scope and command.scope != task.scope else [])


# --from: many requests, as JSON lines.


BATCH = 500
"""Requests per transaction."""

SHOWN = 20


class Tally:
    """Counters and problems of the import so far."""

    def __init__(self) -> None:
        self.requests = self.added = self.cut = 0
        self.differing: dict[str, None] = {}
        self.problems: list[Problem] = []

    def execute(self, call: Call, batch: list[c.Add]) -> None:
        """Takes in one batch in one transaction; counts new tasks, and notes those whose payload differs."""
        if not batch:
            return
        outcome = call.board.execute(call.who(), c.Intake(tuple(batch)))
        for key, _, event in task_events(outcome):
            if isinstance(event, e.Received) and event.differs:
                self.differing[key] = None
        self.requests += len(batch)
        self.added += sum(isinstance(event, e.Added) for event in outcome.events)

    def result(self, *, complete: bool) -> VerbResult:
        payload = {
            "requests": self.requests,
            "added": self.added,
            "known": self.requests - self.added,
            "differing": [*self.differing],
            "cut": self.cut,
            "problems": [one.named() for one in self.problems],
            "complete": complete,
        }
        lines = tuple(self.lines(complete=complete))
        return VerbResult(payloads.answer(intake=payload), lines, exit=1 if self.problems else 0)

    def lines(self, *, complete: bool) -> Iterator[str]:
        known = self.requests - self.added
        yield f"{count(self.requests, 'request')}: {self.added} new, {known} already known"
        if self.differing:
            yield f"  differ from their earlier payload: {several([*self.differing], SHOWN)}"
        if self.cut:
            yield f"  longer than {TITLE_LENGTH} characters, and cut: {count(self.cut, 'title')}"
        yield from (f"  line {one.line}: {one.what}" for one in self.problems[:SHOWN])
        if len(self.problems) > SHOWN:
            yield f"  and {len(self.problems) - SHOWN} more: --json lists them all"
        if not complete:
            yield "stopped early: the rest was not read; it is safe to run it again"


class Signals:
    """Defers SIGINT and SIGTERM until the current batch is committed; a second signal interrupts at once.

    While lines are only being read, the first signal interrupts at once too.
    """

    def __init__(self) -> None:
        self._came = 0
        self._waits = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        import threading

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _come(self, number: int, _frame: object) -> None:
        again, self._came = self._came, number
        if again or not self._waits:
            raise stopped_by(number)

    def after(self, act: Callable[[Call, list[c.Add]], None], *of: Any) -> None:
        """Runs `act` to its end before a pending signal is raised."""
        self._waits = True
        try:
            act(*of)
        finally:
            self._waits = False
        if self._came:
            raise stopped_by(self._came)


def stopped_by(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def in_bulk(call: Call) -> VerbResult | Iterator[VerbResult]:
    tally = Tally()
    try:
        with Signals() as signals:
            read_lines(call, tally, signals)
    except (Refused, KeyboardInterrupt, SystemExit) as problem:
        if isinstance(problem, Refused) and not tally.requests and not tally.problems:
            raise
        return cut_short(tally.result(complete=False), problem)
    return tally.result(complete=True)


def cut_short(summary: VerbResult, problem: BaseException) -> Iterator[VerbResult]:
    """Yields the summary, then raises what stopped the import."""
    yield summary
    raise problem


def read_lines(call: Call, tally: Tally, signals: Signals) -> None:
    batch: list[c.Add] = []
    show = progress_bar("bytes")
    with stream(call["file"]) as file:
        size = whole(file)
        try:
            for found in lines_of(file, call):
                if isinstance(found, Problem):
                    tally.problems.append(found)
                    continue
                batch.append(command_of(call, found))
                tally.cut += found.cut
                if len(batch) == BATCH:
                    signals.after(tally.execute, call, batch)
                    batch = []
                    if show is not None and size:
                        show(file.tell(), size)
            signals.after(tally.execute, call, batch)
        finally:
            if show is not None and size:
                show(size, size)


def lines_of(file: BinaryIO, call: Call) -> Iterator[IntakeRequest | Problem]:
    try:
        yield from read_requests(file, call["channel"] or "")
    except OSError as error:
        raise unreadable(call["file"], error) from None


def stream(path: str) -> BinaryIO:
    if path == "-":
        if sys.stdin is None:
            raise bad_argument("the lines are read from standard input, which is closed")
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> Refused:
    return bad_argument(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")


def whole(file: BinaryIO) -> int:
    """The size of the file in bytes; 0 if unknown (a pipe)."""
    there = os.fstat(file.fileno())
    return there.st_size if stat.S_ISREG(there.st_mode) else 0


VERBS = {
    "intake": Verb(
        intake,
        (
            argument(
                "--channel",
                metavar="NAME",
                help="where the request came from; implied by --github and --email",
            ),
            argument(
                "--ref",
                metavar="REF",
                help="the channel's reference of the request, without a payload",
            ),
            argument(
                "--title", metavar="TITLE", help="one line, at most 200 characters; not with --from"
            ),
            argument("--url", metavar="URL", help="a link for people, without a payload"),
            argument(
                "--delivery",
                metavar="ID",
                help="the channel's id of this delivery; not with --from",
            ),
            argument("--github", action="store_true", help="a webhook's payload on standard input"),
            argument("--event", metavar="NAME", help="with --github: the event: issues, ..."),
            argument(
                "--signature",
                metavar="TEXT",
                help="with --github: X-Hub-Signature-256, to be checked",
            ),
            argument(
                "--secret-file",
                metavar="FILE",
                help="with --github: the secrets, one per line",
            ),
            argument("--email", action="store_true", help="a message on standard input"),
            argument(
                "--map",
                action="append",
                metavar="NAME=PATH",
                help="JSON on standard input: ref=data.id, title=..., url=..., delivery=...",
            ),
            argument("--from", dest="file", metavar="FILE", help="JSON lines, one request each"),
            SCOPE,
            *TERMS,
        ),
    ),
}
